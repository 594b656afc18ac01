"""Smoke tests of an Ollama server and of what stands between it and us (`manage.py ollama_smoke`).

`ping`: the server answers. `truncate`: a prompt that its window cannot hold does not go unnoticed.
`guard`: a prompt over the budget leads to no HTTP request at all. Source: "Context Manager"
(docs/sources.md; its smoke tests).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from helmdash.core.assembly.assembly import OverBudget
from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.core.text.tokens import Estimator
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.ollama.checking import Verdict, check_prompt
from helmdash.upstream.ollama.client import NativeClient
from helmdash.upstream.ollama.discovery import discover
from helmdash.upstream.ollama.errors import OllamaError, OllamaTimeout
from helmdash.upstream.ollama.manager import ContextManager
from helmdash.upstream.ollama.openai_client import OpenAIClient
from helmdash.upstream.ollama.values import OllamaReply
from helmdash.upstream.ollama.wire import (
    DEFAULT_TIMEOUT_S,
    PING_TIMEOUT_S,
    milliseconds_since,
)
from helmdash.upstream.transport import Answered

# Small, so that the test is quick; every model has as much.
SMALL_WINDOW = 2048
# Times the window: a prompt that no window of this size can hold.
_TIMES = 2
# Statuses of a server that will not take a prompt.
_TOO_LONG = (400, 413)
# Of "Context Manager": 32k less the reserve.
_GUARD_WINDOW = 32_768
_GUARD_WORDS = 200_000


class SmokeTest(StrEnum):
    """The tests, in the order they run."""

    PING = "ping"
    TRUNCATE = "truncate"
    GUARD = "guard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one test. `hint` says what to do about a failure."""

    name: SmokeTest
    passed: bool
    message: str
    details: dict[str, object] = field(default_factory=dict)
    duration_ms: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which server to try. `model` "" is the first that it lists."""

    base_url: str
    api_key: str | None = None
    model: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S


class CountingClient(UpstreamClient):
    """Counts the HTTP requests at the one place where all of them leave."""

    requests = 0

    async def send(self, endpoint: Endpoint, request: HttpRequest, url: str) -> Answered:
        """Counts before it sends, so that a request which fails counts as well."""
        self.requests += 1
        return await super().send(endpoint, request, url)


async def run_smoke(target: Target, tests: tuple[SmokeTest, ...]) -> tuple[Result, ...]:
    """Run tests in their order. Never raises for what a server does.

    After a ping that failed, `truncate` has failed, too: nobody knows what the server would do.
    """
    results: list[Result] = []
    client = UpstreamClient()
    try:
        for test in tests:
            before = next((each for each in results if each.name is SmokeTest.PING), None)
            if test is SmokeTest.TRUNCATE and before is not None and not before.passed:
                message = "Skipped: the server did not answer the ping."
                results.append(Result(name=test, passed=False, message=message))
                continue
            began = monotonic()
            found = await _TESTS[test](target, client)
            results.append(_timed(found, began))
    finally:
        await client.aclose()
        # The loop ends with its caller; a connection closes its socket in the next turn.
        await asyncio.sleep(0)
    return tuple(results)


async def ping(target: Target, client: UpstreamClient) -> Result:
    """Both APIs; the native one has to answer, since only it can be told the window."""
    native, openai = _native(target, client), _openai(target, client)
    patience = min(PING_TIMEOUT_S, target.timeout_s)
    told, other = await asyncio.gather(
        native.ping(timeout_s=patience), openai.ping(timeout_s=patience)
    )
    details: dict[str, object] = {
        "native": {"available": told.is_available, "latency_ms": told.latency_ms},
        "openai": {"available": other.is_available, "latency_ms": other.latency_ms},
    }
    if not told.is_available:
        details["error"] = told.error
        also = " Its OpenAI-shaped API does answer." if other.is_available else ""
        return Result(
            name=SmokeTest.PING,
            passed=False,
            message=f"The server does not respond: {told.error}{also}",
            details=details,
            hint="Start it with `ollama serve`, or name another with --url or OLLAMA_HOST.",
        )
    found = await discover(native, timeout_s=patience)
    details["models"] = [
        {
            "name": each.name,
            "window_tokens": each.window_tokens,
            "trained_tokens": each.shown.trained_tokens,
            "configured_tokens": each.shown.configured_tokens,
        }
        for each in found
    ]
    also = "" if other.is_available else " Its OpenAI-shaped API does not."
    message = f"The server answers and lists {_models(len(found))}.{also}"
    return Result(name=SmokeTest.PING, passed=True, message=message, details=details)


async def truncate(target: Target, client: UpstreamClient) -> Result:
    """Send what cannot fit into a small window, and see whether that is noticed.

    A short prompt goes first: a server that refuses that one, too, refuses something else.
    """
    native = _native(target, client)
    model = target.model
    try:
        model = model or await _first_model(native)
        window = min(SMALL_WINDOW, (await _window_of(native, model)) or SMALL_WINDOW)
        await _generate(native, model, f"{secrets.token_hex(4)} Say yes.", window)
    except (OllamaError, LookupError) as error:
        return _cannot(str(error), {"model": model} if model else None)
    prompt, words = _long_prompt(window)
    sizes = {"model": model, "num_ctx": window, "least_tokens": words}
    try:
        answer = await _generate(native, model, prompt, window)
    except OllamaError as error:
        return _refused(error, sizes)
    return _counted(answer, prompt, sizes, window=window, words=words)


async def guard(target: Target, client: UpstreamClient) -> Result:
    """Try to send what is over the budget, and count the requests; then one that fits.

    Both go to a listener of our own, which counts what reaches it, so that the counter is shown to
    count. The server itself is left alone, and need not be there.
    """
    counting = CountingClient()
    try:
        async with _listener() as heard:
            native = NativeClient(heard.url, client=counting, allow_private=True)
            manager = ContextManager(native, model="guard", window_tokens=_GUARD_WINDOW)
            refusal = await _try(manager, "A " * _GUARD_WORDS)
            before, reached = counting.requests, heard.requests
            control = await _try(manager, "Say yes.")
            after, arrived = counting.requests, heard.requests
    except (OllamaError, OSError) as error:
        return Result(name=SmokeTest.GUARD, passed=False, message=f"It cannot be told: {error}")
    finally:
        await counting.aclose()
    details: dict[str, object] = {
        "requests": before,
        "requests_received": reached,
        "control_requests": after - before,
        "control_requests_received": arrived - reached,
    }
    if refusal is None:
        return Result(
            name=SmokeTest.GUARD,
            passed=False,
            message="A prompt over the budget was not refused.",
            details=details,
        )
    details["estimated_tokens"] = refusal.estimated_tokens
    details["budget_tokens"] = refusal.budget_tokens
    details["over_by"] = refusal.over_by
    passed = (before, reached) == (0, 0) and control is None and (after, arrived) == (1, 1)
    sizes = f"{refusal.estimated_tokens:,} tokens for a budget of {refusal.budget_tokens:,}"
    message = (
        f"Refused {sizes} with no HTTP request; one that fits made one."
        if passed
        else f"Refused {sizes}, but {before} HTTP requests were made, and {after - before} for one "
        "that fits."
    )
    return Result(name=SmokeTest.GUARD, passed=passed, message=message, details=details)


_TESTS: dict[SmokeTest, Callable[[Target, UpstreamClient], Awaitable[Result]]] = {
    SmokeTest.PING: ping,
    SmokeTest.TRUNCATE: truncate,
    SmokeTest.GUARD: guard,
}


def _counted(
    answer: OllamaReply, prompt: str, sizes: dict[str, object], *, window: int, words: int
) -> Result:
    """What the reported count tells of a prompt that was taken."""
    check = check_prompt(
        estimated_tokens=Estimator().tokens(prompt),
        reported_tokens=answer.prompt_eval_count,
        num_ctx=window,
        least_tokens=words,
    )
    details = {
        **sizes,
        "estimated_tokens": check.estimated_tokens,
        "prompt_eval_count": check.reported_tokens,
        "verdict": check.verdict.value,
    }
    if check.verdict is Verdict.SUSPECTED_CUT:
        return Result(
            name=SmokeTest.TRUNCATE,
            passed=True,
            message=f"Truncation caught: the server took {check.reported_tokens:,} of at least "
            f"{words:,} tokens into a window of {window:,}, and its count shows it.",
            details={**details, "outcome": "caught"},
        )
    found = f"counts {check.reported_tokens:,} of them" if check.reported_tokens else "counts none"
    message = (
        f"Truncation missed: at least {words:,} tokens went into a window of {window:,}, and the "
        f"server {found} (prompt_eval_count)."
    )
    return Result(
        name=SmokeTest.TRUNCATE,
        passed=False,
        message=message,
        details={**details, "outcome": "missed"},
        hint="A cut prompt cannot be told from a whole one on this server. Update it, and keep "
        "prompts below the budget (enforce mode).",
    )


def _refused(error: OllamaError, sizes: dict[str, object]) -> Result:
    """What an error tells, now that a short prompt was fine."""
    is_refusal = error.status in _TOO_LONG or (
        error.status is not None
        and not isinstance(error, OllamaTimeout)
        and kind_of_error(None, error.message) is ErrorKind.CONTEXT
    )
    details = {**sizes, "status": error.status, "error": error.message}
    if not is_refusal:
        return _cannot(str(error), details)
    return Result(
        name=SmokeTest.TRUNCATE,
        passed=True,
        message=f"The server refuses what its window cannot hold ({error.status}): nothing is cut.",
        details={**details, "outcome": "refused"},
    )


def _cannot(why: str, details: dict[str, object] | None = None) -> Result:
    return Result(
        name=SmokeTest.TRUNCATE,
        passed=False,
        message=f"It cannot be told what the server does: {why}",
        details={**(details or {}), "outcome": "unknown"},
        hint="Install a model (`ollama pull`), name one with --model, or give it more time with "
        "--timeout.",
    )


async def _first_model(native: NativeClient) -> str:
    names = await native.models(timeout_s=min(PING_TIMEOUT_S, native.timeout_s))
    if not names:
        raise LookupError("it lists no models.")
    return names[0]


async def _window_of(native: NativeClient, model: str) -> int | None:
    """The model's own window; a server that cannot tell is tried all the same."""
    try:
        shown = await native.show(model, timeout_s=min(PING_TIMEOUT_S, native.timeout_s))
    except OllamaError:
        return None
    return shown.trained_tokens


async def _generate(native: NativeClient, model: str, prompt: str, window: int) -> OllamaReply:
    options = {"num_predict": 1, "temperature": 0}
    return await native.generate(model, prompt, num_ctx=window, options=options)


def _long_prompt(window: int) -> tuple[str, int]:
    """A prompt and how many tokens it has at least: a token never spans two words of letters.

    It begins as no other does, for what is cached from an earlier run is left out of some counts.
    """
    words = [secrets.token_hex(4), *(f"word{number:04}" for number in range(_TIMES * window))]
    return " ".join(words), len(words)


async def _try(manager: ContextManager, query: str) -> OverBudget | None:
    """Assemble and send; the refusal, if there was one."""
    try:
        assembled = manager.assemble(user_query=query)
    except OverBudget as refusal:
        return refusal
    await manager.generate(assembled)
    return None


@dataclass(slots=True)
class _Heard:
    url: str = ""
    requests: int = 0


@asynccontextmanager
async def _listener() -> AsyncIterator[_Heard]:
    """A server on this machine that counts requests, and answers each like Ollama."""
    heard = _Heard()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        heard.requests += 1
        length = next(
            int(line.partition(":")[2])
            for line in head.splitlines()
            if line.startswith("content-length:")
        )
        await reader.readexactly(length)
        body = b'{"model":"guard","response":"yes","done":true,"prompt_eval_count":3}'
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        heard.url = f"http://127.0.0.1:{port}"
        yield heard
    finally:
        server.close()
        await server.wait_closed()


def _native(target: Target, client: UpstreamClient) -> NativeClient:
    return NativeClient(
        target.base_url,
        client=client,
        timeout_s=target.timeout_s,
        api_key=target.api_key,
        # Whoever runs the command may call any server that they can reach.
        allow_private=True,
    )


def _openai(target: Target, client: UpstreamClient) -> OpenAIClient:
    return OpenAIClient(
        target.base_url,
        client=client,
        timeout_s=target.timeout_s,
        api_key=target.api_key,
        allow_private=True,
    )


def _timed(result: Result, began: float) -> Result:
    return Result(
        name=result.name,
        passed=result.passed,
        message=result.message,
        details=result.details,
        duration_ms=milliseconds_since(began),
        hint=result.hint,
    )


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"
