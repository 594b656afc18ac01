"""`manage.py ollama_smoke [ping|truncate|guard]`: is the Ollama server to be relied on?

Exit codes: 0 all passed, 1 one failed, 2 the command was not understood.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.core.upstreams.addresses import shown_url, url_problem
from helmdash.core.upstreams.upstream_variables import OLLAMA_KEY, ollama_url
from helmdash.upstream.ollama.smoke import Result, SmokeTest, Target, run_smoke
from helmdash.upstream.ollama.wire import DEFAULT_TIMEOUT_S, root_url

# The "Context Manager" command counts in milliseconds (60000): numbers from here on are those.
_LEAST_MILLISECONDS = 1_000
_LONGEST_SECONDS = 3_600
# The name that the command of "Context Manager" knows one of them by, too.
_OTHER_NAMES = {"truncation": SmokeTest.TRUNCATE.value}


class Command(BaseCommand):
    help = "Check an Ollama server, and that no prompt is cut on its way to it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        names = [test.value for test in SmokeTest]
        parser.add_argument(
            "test",
            nargs="?",
            type=lambda name: _OTHER_NAMES.get(name, name),
            choices=names,
            help="Default: all of them. guard needs no server.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        parser.add_argument(
            "--model", default="", help="Model for truncate. Default: the first that is listed."
        )
        parser.add_argument(
            "--timeout",
            type=_seconds,
            default=DEFAULT_TIMEOUT_S,
            help="Seconds to wait for an answer, or, from 1000 on, milliseconds. "
            f"Default: {DEFAULT_TIMEOUT_S:g}.",
        )
        parser.add_argument(
            "--url",
            type=_url,
            default=None,
            help="The server. Default: OLLAMA_HOST, else http://127.0.0.1:11434.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tests = (SmokeTest(options["test"]),) if options["test"] else tuple(SmokeTest)
        own = _own_url()
        url = options["url"] or own
        target = Target(
            base_url=url,
            # The key of one server is no other's affair.
            api_key=conf.environment_key(OLLAMA_KEY) if url == own else None,
            model=options["model"],
            timeout_s=options["timeout"],
        )
        results = asyncio.run(run_smoke(target, tests))
        if options["json"]:
            told = _told(results, target)
            self.stdout.write(json.dumps(told, ensure_ascii=False, indent=2))
        else:
            self._print(results, target)
        if not all(result.passed for result in results):
            raise SystemExit(1)

    def _print(self, results: tuple[Result, ...], target: Target) -> None:
        self.stdout.write(f"Ollama at {shown_url(target.base_url)}")
        for result in results:
            style = self.style.SUCCESS if result.passed else self.style.ERROR
            mark = "ok  " if result.passed else "FAIL"
            self.stdout.write(f"{mark} {result.name.value}: {result.message}", style)
            if result.hint:
                self.stdout.write(f"     {result.hint}")
            for model in _models(result):
                self.stdout.write(f"     {model['name']}: {_window(model['window_tokens'])}")


def _told(results: tuple[Result, ...], target: Target) -> dict[str, object]:
    model = next((each.details["model"] for each in results if "model" in each.details), None)
    return {
        "ok": all(result.passed for result in results),
        "url": shown_url(target.base_url),
        "model": model or target.model or None,
        "tests": [
            {
                "name": result.name.value,
                "passed": result.passed,
                "message": result.message,
                "details": result.details,
                "duration_ms": result.duration_ms,
            }
            for result in results
        ],
    }


def _models(result: Result) -> list[dict[str, Any]]:
    models = result.details.get("models")
    return models if isinstance(models, list) else []


def _window(tokens: int | None) -> str:
    return "window unknown" if tokens is None else f"window of {tokens:,} tokens"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if seconds >= _LEAST_MILLISECONDS:
        seconds /= 1_000
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds between 0 and {_LONGEST_SECONDS}"
        )
    return seconds


def _own_url() -> str:
    try:
        return _url(conf.ollama_host())
    except argparse.ArgumentTypeError as error:
        raise CommandError(f"OLLAMA_HOST: {error}", returncode=2) from None


def _url(text: str) -> str:
    url = root_url(ollama_url(text))
    problem = url_problem(url, allow_private=True)
    if problem is not None:
        raise argparse.ArgumentTypeError(f"{text!r}: {problem}")
    return url
