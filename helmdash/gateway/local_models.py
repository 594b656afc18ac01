"""What servers say of their windows, and what a call to one of Ollama's needs beyond others.

Ollama takes a small window unless a request says `num_ctx`, and cuts what does not fit without a
word: so the window that counts is sent along.
"""

from __future__ import annotations

from helmdash import conf
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import OUTSIDE
from helmdash.core.budgets.windows import served_window, with_room_of, within_window
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.usage import normalise_usage
from helmdash.core.calls.withheld import without_words
from helmdash.core.conversations.fingerprints import CHAIN_VERSION
from helmdash.core.text.tokens import TOKENS_PER_IMAGE
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway.requests.exchange import KEEPS_NOTHING, Exchange
from helmdash.operations.recording.judged.masking import masker
from helmdash.providers.ollama.shown import own_num_ctx
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listings import Listings
from helmdash.upstream.logs.request_log import LogEntry, LoggedError, LoggedReply, RequestLog
from helmdash.upstream.ollama.windows import Windows

_FOLDER = ("logs", "ollama")


class LocalModels:
    """One for each gateway, used on its event loop."""

    def __init__(self, client: UpstreamClient, listings: Listings) -> None:
        self._windows = Windows(client)
        self._listings = listings
        settings = conf.env()
        self._log: RequestLog | None = None
        if settings.ollama_log:
            directory = settings.data_dir.joinpath(*_FOLDER)
            self._log = RequestLog(directory, keep_days=settings.ollama_log_days)

    def close(self) -> None:
        """Give up lookups, and write what the log still holds."""
        self._windows.close()
        if self._log is not None:
            self._log.close()

    async def fit(self, exchange: Exchange) -> None:
        """Note what the server of a placed call says of its window, and judge by that from here on.

        One of Ollama's is told which window to use. One that the client names itself stays, and is
        the one that counts.
        """
        endpoint, budget, request = exchange.endpoint, exchange.budget, exchange.request
        if endpoint is None or budget is None or request is None:
            return
        if endpoint.kind is not ProviderKind.OLLAMA:
            tokens = self._listings.window(endpoint, exchange.served_model)
            if tokens is not None:
                exchange.look_up_budget(server_window=tokens)
            return
        is_named, named = own_num_ctx(request)
        # A server that nobody has asked yet is waited for where there is nothing but a guess.
        waits = not is_named and _is_a_guess(budget)
        told = await self._windows.of_model(endpoint, exchange.served_model, waits=waits)
        if told.tokens is not None:
            budget = exchange.look_up_budget(server_window=told.tokens)
        window = named if is_named else served_window(budget, told.most_tokens or told.tokens)
        exchange.window = window
        exchange.budget = within_window(
            with_room_of(budget), window, most_reply_tokens=request.max_tokens
        )
        if window is not None:
            self._windows.sent(endpoint, exchange.served_model, window)

    def note(self, exchange: Exchange, capture: Capture) -> None:
        """After a call: the model's window for next time, and for Ollama a line in the request log.

        Windows are asked for after an answer only: a refused request leads to no other one.
        """
        endpoint = exchange.endpoint
        if endpoint is None:
            return
        if endpoint.kind is not ProviderKind.OLLAMA:
            if exchange.status == "success":
                self._listings.learn(endpoint)
            return
        if exchange.status == "success":
            self._windows.learn(endpoint, exchange.served_model)
        if self._log is not None:
            self._log.add(_entry(exchange, capture))


def _is_a_guess(budget: EffectiveBudget) -> bool:
    """Whether a window would be sent that nobody has told: that of a row which HelmDash ships."""
    return (
        budget.is_shipped and budget.limit_tokens is not None and budget.limit_source not in OUTSIDE
    )


def _entry(exchange: Exchange, capture: Capture) -> LogEntry:
    usage = normalise_usage(capture.usage)
    estimate = None
    if exchange.budget is not None:
        text = exchange.budget.estimator.tokens_of_bytes(exchange.outgoing.text_bytes)
        estimate = text + exchange.outgoing.images * TOKENS_PER_IMAGE
    links = capture.links
    project = exchange.key_context.caller.project
    if project.payload == KEEPS_NOTHING:
        capture = without_words(capture)
    reply = LoggedReply(
        done=capture.finish_reason is not None,
        done_reason=capture.finish_reason,
        eval_count=usage.completion_tokens,
        prompt_eval_count=usage.prompt_tokens,
        duration_ms=capture.latency_ms,
    )
    error = None
    if capture.status != "success":
        message = masker(project).text(capture.error_message or "")
        error = LoggedError(code=_error_code(capture), message=message)
    return LogEntry(
        at=exchange.started_at,
        request_id=exchange.call_id,
        call_id=exchange.call_id,
        conversation=capture.conversation or "",
        upstream=capture.provider or "",
        model=capture.upstream_model or capture.model,
        num_ctx=capture.window,
        token_estimate=estimate,
        actual_prompt_tokens=usage.prompt_tokens,
        prompt_hash=f"{CHAIN_VERSION}:{links.head[1:]}" if links and links.head else "",
        # Without a reply it holds the time that passed, and nothing else.
        reply=reply,
        error=error,
    )


def _error_code(capture: Capture) -> str:
    """The HTTP status of a refusal: the server's own word for it is always the same."""
    status = capture.http_status
    if status is not None and status >= 400:
        return f"http_{status}"
    return capture.error_code or str(capture.status)
