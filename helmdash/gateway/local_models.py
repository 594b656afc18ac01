"""What a call to an Ollama server needs beyond others: its window, and a line in the request log.

Source: issue 5, spec/dominds-and-ollama.md 2.8. Ollama takes a small window unless a request says
`num_ctx`, and cuts what does not fit without a word: so the window that the budget counts on is
sent along.
"""

from __future__ import annotations

from helmdash import conf
from helmdash.core.budgets import MatchRule
from helmdash.core.capture import Capture
from helmdash.core.chains import CHAIN_VERSION
from helmdash.core.endpoints import ProviderKind
from helmdash.core.tokens import TOKENS_PER_IMAGE
from helmdash.core.usage import normalise_usage
from helmdash.core.windows import wanted_window, within_window
from helmdash.core.withheld import without_words
from helmdash.gateway.exchange import KEEPS_NOTHING, Exchange
from helmdash.providers.ollama.shown import own_num_ctx
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.ollama.windows import Windows
from helmdash.upstream.request_log import LogEntry, LoggedError, LoggedReply, RequestLog

_FOLDER = ("logs", "ollama")


class LocalModels:
    """One for each gateway, used on its event loop."""

    def __init__(self, client: UpstreamClient) -> None:
        self._windows = Windows(client)
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

    def fit(self, exchange: Exchange) -> None:
        """Note the window that the server of a placed call is to use, if it is one of Ollama's.

        A window that the client names itself stays, and is the one that counts. From here on the
        budget of the exchange is the one that holds within that window.
        """
        request, endpoint = exchange.request, exchange.endpoint
        if request is None or endpoint is None or endpoint.kind is not ProviderKind.OLLAMA:
            return
        is_named, window = own_num_ctx(request)
        exchange.window = window if is_named else self._window(exchange)
        if exchange.budget is not None:
            exchange.budget = within_window(
                exchange.budget, exchange.window, most_reply_tokens=request.max_tokens
            )

    def note(self, exchange: Exchange, capture: Capture) -> None:
        """After a call to such a server: a line in the request log, and the model's window for next
        time. Only then, so that a request that is refused leads to no other one."""
        endpoint = exchange.endpoint
        if endpoint is None or endpoint.kind is not ProviderKind.OLLAMA:
            return
        if exchange.status == "success":
            self._windows.learn(endpoint, exchange.upstream_model or exchange.model)
        if self._log is not None:
            self._log.add(_entry(exchange, capture))

    def _window(self, exchange: Exchange) -> int | None:
        """The budget's window, lowered to the model's own; None where neither is known.

        The fallback row tells nothing about a model, so alone it is not enough.
        """
        assert exchange.endpoint is not None
        own = self._windows.known(exchange.endpoint, exchange.upstream_model or exchange.model)
        budget = exchange.budget
        if budget is None or (own is None and budget.rule is MatchRule.FALLBACK):
            return None
        wanted = wanted_window(budget)
        return wanted if own is None else min(wanted, own)


def _entry(exchange: Exchange, capture: Capture) -> LogEntry:
    usage = normalise_usage(capture.usage)
    estimate = None
    if exchange.budget is not None:
        text = exchange.budget.estimator.tokens_of_bytes(exchange.text_bytes)
        estimate = text + exchange.images * TOKENS_PER_IMAGE
    links = capture.links
    reply = LoggedReply(
        done=capture.finish_reason is not None,
        done_reason=capture.finish_reason,
        eval_count=usage.completion_tokens,
        prompt_eval_count=usage.prompt_tokens,
        duration_ms=capture.latency_ms,
    )
    error = None
    if capture.status != "success":
        if exchange.standing.caller.project.payload == KEEPS_NOTHING:
            capture = without_words(capture)
        message = capture.error_message or ""
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
