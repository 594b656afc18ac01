"""A task of 100 results with the real Claude Code, in a window that holds about 20 of them.

    npm i @anthropic-ai/claude-code    # anywhere outside the repository
    CLAUDE=…/node_modules/.bin/claude python -m bench long_task

Claude Code is asked, headless, to read 100 files one after the other. Behind the gateway stands a
simulated model that knows nothing but its prompt (tests.support.upstreams.forgetful). Without care
the task ends where the window does; with it every file has to be read, once and in order. Takes
two to five minutes, most of them Claude Code's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from bench.table import Row
from tests.support.server import Served
from tests.support.upstreams.forgetful import BYTES_PER_TOKEN, Forgetful

PARTS = 100
HELD = 20
"""Results that the window has room for, beside what every prompt holds."""
_PART_BYTES = 6_000
_MODEL = "claude-sonnet-4-5"
_MOST_SECONDS = 900
# Claude Code numbers the lines it reads, and JSON escapes their ends.
_RESULT_BYTES = _PART_BYTES * 1.15


def rows() -> list[Row]:
    """Measure; nothing where CLAUDE names no program."""
    program = os.environ.get("CLAUDE")
    if not program:
        return [
            Row(
                name="long task",
                figure="not measured: set CLAUDE",
                against="",
                ratio=None,
                goal="",
                ok=None,
            )
        ]
    return [_row(program, wish) for wish in ("off", "on")]


def _row(program: str, wish: str) -> Row:
    with ExitStack() as stack:
        # What Claude Code has started may end after it, and writes there until then.
        place = tempfile.TemporaryDirectory(prefix="helmdash-bench-", ignore_cleanup_errors=True)
        parent = Path(stack.enter_context(place))
        os.environ["HELMDASH_DATA_DIR"] = str(parent)
        model = Forgetful(window=10_000_000)
        model.server.start()
        stack.callback(model.server.stop)
        served = _serve(stack, parent, model)
        book = _book(parent)
        # What every prompt of this client holds: its system prompt and its tools.
        _run(program, served, parent, wish="off", parts=1, book=book)
        base = max(model.tokens)
        model.window = base + int(HELD * _RESULT_BYTES / BYTES_PER_TOKEN)
        _budget(served, model.window)
        model.read.clear()
        model.tokens.clear()
        began = time.monotonic()
        said = _run(program, served, parent, wish=wish, parts=PARTS, book=book)
        seconds = time.monotonic() - began
        actions = _actions(served)
    is_whole = model.read == list(range(1, PARTS + 1)) and f"all {PARTS} parts" in said
    return Row(
        name=f"long task, Claude Code, care {wish}",
        figure=f"{len(set(model.read))} of {PARTS} parts read, {len(model.read)} calls,"
        f" {actions.get('clear', 0)} clears, {seconds:.0f} s",
        against=f"window {model.window:,}, of which {base:,} are in every prompt;"
        f" {model.refused} refused, {model.asides} calls aside; {actions}; said: {said[-60:]!r}",
        ratio=None,
        goal="all, in order" if wish == "on" else "",
        ok=is_whole if wish == "on" else None,
    )


def _serve(stack: ExitStack, parent: Path, model: Forgetful) -> Served:
    own = parent / "own"
    own.mkdir()
    served = Served(
        data_dir=own,
        database_url="",
        settings={
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": model.server.root_url,
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        },
    )
    served.start()
    stack.callback(served.kill)
    return served


def _book(parent: Path) -> Path:
    book = parent / "book"
    book.mkdir()
    line = "It was a dark and stormy night, and nobody had counted the tokens.\n"
    for number in range(1, PARTS + 1):
        text = f"Part {number}\n" + line * (_PART_BYTES // len(line))
        (book / f"part-{number}.txt").write_text(text)
    return book


def _run(program: str, served: Served, parent: Path, *, wish: str, parts: int, book: Path) -> str:
    """What Claude Code says at the end."""
    home = parent / "home"
    home.mkdir(exist_ok=True)
    task = f"Please read all {parts} parts of the book in {book}, one after the other."
    done = subprocess.run(
        [
            program,
            "-p",
            task,
            "--model",
            _MODEL,
            "--allowedTools",
            "Read",
            "--output-format",
            "json",
            "--add-dir",
            str(book),
            "--max-turns",
            "400",
        ],
        cwd=book,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home),
            "ANTHROPIC_BASE_URL": served.base_url,
            "ANTHROPIC_AUTH_TOKEN": served.api_key,
            "ANTHROPIC_CUSTOM_HEADERS": f"x-helmdash-remediation: {wish}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    try:
        told: Any = json.loads(done.stdout)
    except ValueError:
        return (done.stdout + done.stderr)[-300:]
    return str(told.get("result") if isinstance(told, dict) else told)


def _budget(served: Served, window: int) -> None:
    row = {
        "key": "anthropic/claude-sonnet-4-5",
        "input_tokens": window,
        "output_tokens": 1_000,
        "tier": "A",
        "context_length": window,
        "evidence": "the simulated model of the benchmark",
    }
    for key in (row["key"], _MODEL):
        answer = httpx.post(
            f"{served.base_url}/api/v1/budgets",
            json={**row, "key": key},
            headers=served.headers,
            trust_env=False,
        )
        if answer.status_code not in (201, 409):
            raise RuntimeError(answer.text)
    time.sleep(1.2)  # what holds for a key is at most 0.9 s old


def _actions(served: Served) -> dict[str, int]:
    """What was done before the calls, by kind."""
    code = (
        "import json; from collections import Counter;"
        "from helmdash.records.models import Guidance;"
        "print(json.dumps(Counter(f'{g.action} {g.strength}'.strip()"
        " for g in Guidance.objects.all())))"
    )
    found: dict[str, int] = json.loads(served.manage("shell", "-v0", "-c", code).stdout)
    return found
