"""Ollama's own API: generate, chat, models and their windows. Source: https://docs.ollama.com/api.

`num_ctx` is the window that the server is to use for this request; without it the server takes its
own default, which is small, and cuts what does not fit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from uuid import uuid4

from helmdash.providers.ollama.http import post
from helmdash.providers.ollama.listing import models_in, models_request
from helmdash.providers.ollama.reply import said_in
from helmdash.providers.ollama.shown import Shown, show_request, shown_in
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import Json, Object
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.logs.request_log import LogEntry, LoggedError, LoggedReply, RequestLog
from helmdash.upstream.ollama.errors import OllamaError
from helmdash.upstream.ollama.values import OllamaReply, Piece, Ping, read_answer
from helmdash.upstream.ollama.wire import (
    DEFAULT_TIMEOUT_S,
    PING_TIMEOUT_S,
    OllamaTransport,
    milliseconds_since,
)

_GENERATE, _CHAT = "generate", "chat"

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is known of a prompt before it is sent, for the log: never its text."""

    token_estimate: int | None = None
    prompt_hash: str = ""
    chunks: tuple[Mapping[str, object], ...] = ()
    conversation: str = ""


class NativeClient(OllamaTransport):
    """A client of one server, for asynchronous code. Use it as a context manager, or close it."""

    def __init__(
        self,
        base_url: str,
        *,
        client: UpstreamClient | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        allow_private: bool = False,
        include_context: bool = False,
        log: RequestLog | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`include_context`: replies of generate keep their array of token ids. `log` takes an
        entry for each call, with the time of `clock`."""
        super().__init__(
            base_url,
            client=client,
            timeout_s=timeout_s,
            api_key=api_key,
            allow_private=allow_private,
        )
        self._include_context = include_context
        self._log = log
        self._clock = clock or _utc_now

    # --- replies

    async def generate(
        self,
        model: str,
        prompt: str,
        *,
        system: str | None = None,
        num_ctx: int | None = None,
        options: Object | None = None,
        context: Sequence[int] | None = None,
        include_context: bool | None = None,
        timeout_s: float | None = None,
        receipt: Receipt | None = None,
        **more: Json,
    ) -> OllamaReply:
        """Complete a prompt. `context` is that of an earlier reply, to go on from; `more` are other
        members of the request (format, keep_alive, images, think …).

        None: not sent, so the server's default holds; `include_context` and `timeout_s` (seconds)
        None: the client's own. Raises OllamaError, OllamaTimeout, and ValueError for a window that
        is none.
        """
        body = _generate_body(model, prompt, system, num_ctx, options, context, more)
        return await self._ask(_GENERATE, body, include_context, timeout_s, receipt)

    async def chat(
        self,
        model: str,
        messages: Sequence[Object],
        *,
        num_ctx: int | None = None,
        options: Object | None = None,
        timeout_s: float | None = None,
        receipt: Receipt | None = None,
        **more: Json,
    ) -> OllamaReply:
        """OllamaReply a conversation; `more`, None and what is raised are as for `generate` (tools,
        too)."""
        body = _chat_body(model, messages, num_ctx, options, more)
        return await self._ask(_CHAT, body, False, timeout_s, receipt)

    def stream_generate(
        self,
        model: str,
        prompt: str,
        *,
        system: str | None = None,
        num_ctx: int | None = None,
        options: Object | None = None,
        context: Sequence[int] | None = None,
        include_context: bool | None = None,
        timeout_s: float | None = None,
        receipt: Receipt | None = None,
        **more: Json,
    ) -> AsyncIterator[Piece]:
        """As `generate`, piece by piece; the last piece has the whole. `timeout_s` is for each."""
        body = _generate_body(model, prompt, system, num_ctx, options, context, more)
        return self._stream(_GENERATE, body, include_context, timeout_s, receipt)

    def stream_chat(
        self,
        model: str,
        messages: Sequence[Object],
        *,
        num_ctx: int | None = None,
        options: Object | None = None,
        timeout_s: float | None = None,
        receipt: Receipt | None = None,
        **more: Json,
    ) -> AsyncIterator[Piece]:
        """As `chat`, piece by piece; the last piece has the whole. `timeout_s` is for each."""
        body = _chat_body(model, messages, num_ctx, options, more)
        return self._stream(_CHAT, body, False, timeout_s, receipt)

    # --- the server and its models

    async def ping(self, *, timeout_s: float = PING_TIMEOUT_S) -> Ping:
        """Whether the server lists its models. Never raises."""
        began = monotonic()
        try:
            models = await self.models(timeout_s=timeout_s)
        except OllamaError as error:
            return Ping(is_available=False, error=str(error))
        return Ping(is_available=True, models=models, latency_ms=milliseconds_since(began))

    async def models(self, *, timeout_s: float = PING_TIMEOUT_S) -> tuple[str, ...]:
        """The models that are installed, with their tags. Raises OllamaError."""
        request = models_request(endpoint=self.endpoint)
        value = await self.ask(request, timeout_s=timeout_s)
        try:
            return models_in(value)
        except ValueError as error:
            raise OllamaError(str(error), endpoint=request.path, status=200) from None

    async def show(self, model: str, *, timeout_s: float = PING_TIMEOUT_S) -> Shown:
        """A model's windows, as far as they are told. Raises OllamaError."""
        request = show_request(self.endpoint, model)
        return shown_in(await self.ask(request, timeout_s=timeout_s))

    # --- how

    async def _ask(
        self,
        method: str,
        body: dict[str, Json],
        include_context: bool | None,
        timeout_s: float | None,
        receipt: Receipt | None,
    ) -> OllamaReply:
        began = monotonic()
        request = post(self.endpoint, method, to_json({**body, "stream": False}))
        try:
            value = await self.ask(request, timeout_s=timeout_s)
        except OllamaError as error:
            self._note(body, receipt, began, error=error)
            raise
        answer = read_answer(value, keeps_context=self._keeps(include_context))
        self._note(body, receipt, began, answer=answer)
        return answer

    async def _stream(
        self,
        method: str,
        body: dict[str, Json],
        include_context: bool | None,
        timeout_s: float | None,
        receipt: Receipt | None,
    ) -> AsyncIterator[Piece]:
        began = monotonic()
        request = post(self.endpoint, method, to_json({**body, "stream": True}))
        said: list[str] = []
        try:
            async for value in self.lines(request, timeout_s=timeout_s):
                text = said_in(value)
                said.append(text)
                if value.get("done") is not True:
                    yield Piece(text=text)
                    continue
                answer = read_answer(
                    value, keeps_context=self._keeps(include_context), text="".join(said)
                )
                self._note(body, receipt, began, answer=answer)
                yield Piece(text=text, answer=answer)
                return
            raise OllamaError(
                "the stream ended before the reply did", endpoint=request.path, status=200
            )
        except OllamaError as error:
            self._note(body, receipt, began, error=error)
            raise

    def _keeps(self, include_context: bool | None) -> bool:
        return self._include_context if include_context is None else include_context

    def _note(
        self,
        body: Mapping[str, Json],
        receipt: Receipt | None,
        began: float,
        *,
        answer: OllamaReply | None = None,
        error: OllamaError | None = None,
    ) -> None:
        if self._log is None:
            return
        known = receipt or Receipt()
        took = milliseconds_since(began)
        options = body.get("options")
        num_ctx = options.get("num_ctx") if isinstance(options, Mapping) else None
        self._log.add(
            LogEntry(
                at=self._clock(),
                request_id=str(uuid4()),
                model=str(body["model"]),
                token_estimate=known.token_estimate,
                actual_prompt_tokens=answer.prompt_eval_count if answer else None,
                prompt_hash=known.prompt_hash,
                chunk_manifest=known.chunks,
                reply=_logged(answer, took) if answer else None,
                error=LoggedError(code=error.code, message=error.message) if error else None,
                conversation=known.conversation,
                num_ctx=num_ctx if isinstance(num_ctx, int) else None,
            )
        )


def _logged(answer: OllamaReply, took_ms: int) -> LoggedReply:
    return LoggedReply(
        done=answer.done,
        done_reason=answer.done_reason,
        eval_count=answer.eval_count,
        prompt_eval_count=answer.prompt_eval_count,
        duration_ms=took_ms,
    )


def _generate_body(
    model: str,
    prompt: str,
    system: str | None,
    num_ctx: int | None,
    options: Object | None,
    context: Sequence[int] | None,
    more: Mapping[str, Json],
) -> dict[str, Json]:
    return {
        "model": model,
        "prompt": prompt,
        **without_nones(
            system=system,
            options=_options(num_ctx, options),
            context=list(context) if context is not None else None,
        ),
        **more,
    }


def _chat_body(
    model: str,
    messages: Sequence[Object],
    num_ctx: int | None,
    options: Object | None,
    more: Mapping[str, Json],
) -> dict[str, Json]:
    told = without_nones(options=_options(num_ctx, options))
    return {"model": model, "messages": list(messages), **told, **more}


def _options(num_ctx: int | None, options: Object | None) -> dict[str, Json] | None:
    if num_ctx is not None and num_ctx < 1:
        raise ValueError(f"num_ctx must be at least 1, not {num_ctx}")
    told = {**(options or {}), **without_nones(num_ctx=num_ctx)}
    return told or None


def _utc_now() -> datetime:
    # The clock of whoever has none to give: only stamps lines of the log.
    return datetime.now(UTC)  # noqa: TID251
