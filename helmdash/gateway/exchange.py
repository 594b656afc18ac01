"""One call on its way through the gateway: all that is known of it, and its record at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter_ns
from typing import Any

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import Capture, SentSizes, Status
from helmdash.core.calls.usage import Usage, normalise_usage
from helmdash.core.calls.withheld import kept_code
from helmdash.core.conversations import fingerprints
from helmdash.core.conversations.clients import Client
from helmdash.core.text.tokens import utf8_bytes
from helmdash.core.truncation.sizes import Sizes
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.doors.directory import KeyContext
from helmdash.gateway import message_digest
from helmdash.gateway.cared import Care
from helmdash.gateway.options import RequestOptions, conversation_of
from helmdash.gateway.routes import Route
from helmdash.operations.recording import truncation
from helmdash.providers.shared.collecting import Collector
from helmdash.providers.wire import ChatRequest, Object, Reply, WireError

_NS_PER_MS = 1_000_000
KEEPS_NOTHING = "off"


@dataclass(slots=True, kw_only=True)
class Exchange:
    """The state of one call. Filled in as it goes; `capture` is taken once, at its end."""

    call_id: str
    route: Route
    key_context: KeyContext
    options: RequestOptions
    model: str
    started_at: datetime
    started_ns: int
    body_bytes: int
    client: Client | None = None
    client_window: int | None = None  # tokens of context that the client counts on
    purpose: str = "chat"
    request: ChatRequest | None = None  # as it came
    sent_request: ChatRequest | None = None  # where that is another one
    care: Care | None = None
    tools_bytes: int | None = None
    metadata: Object | None = None
    images: int = 0
    image_bytes: int = 0
    endpoint: Endpoint | None = None
    upstream_model: str | None = None
    budget: EffectiveBudget | None = None
    budget_model: str | None = None
    window: int | None = None  # tokens of context the upstream is told to use
    server_window: int | None = None  # tokens of context the upstream says the model has
    refused_window: int | None = None  # tokens of context that a refusal names
    sent_ns: int | None = None
    heard_ns: int | None = None  # when the upstream's part was over, or began to stream
    first_ns: int | None = None
    http_status: int | None = None
    status: Status = "success"
    error: WireError | None = None
    error_is_own: bool = True  # its message is ours, and not the provider's
    attempts: tuple[Mapping[str, Any], ...] = ()
    refused_attempts: tuple[Mapping[str, Any], ...] = ()  # before the request was made shorter
    notes: dict[str, object] = field(default_factory=dict)
    collector: Collector | None = None  # of a stream
    reply: Reply | None = None  # of a whole reply
    is_settled: bool = False

    @property
    def model_key(self) -> str:
        """The name of the model in figures, by the upstream that serves it."""
        provider = self.endpoint.name if self.endpoint else None
        return self.key_context.rules.key_of(self.model, provider=provider)

    @property
    def text_bytes(self) -> int:
        """The bytes of the request without its images."""
        return max(self.body_bytes - self.image_bytes, 0)

    def look_up_budget(self) -> None:
        """Find the budget by all that is known of the call and its upstream so far."""
        self.budget = self.key_context.rules.lookup(
            self.budget_model or self.model,
            key=self.model_key,
            client_window=self.client_window,
            server_window=self.server_window,
        )

    def own_ms(self, now_ns: int) -> float:
        """What the gateway itself has taken so far, in milliseconds: not the upstream's part."""
        before = (self.sent_ns or now_ns) - self.started_ns
        after = now_ns - self.heard_ns if self.heard_ns is not None else 0
        return (before + after) / _NS_PER_MS

    def level(self, usage: Object | None) -> str:
        """The health level of these counts; unknown where they look as if the prompt was cut."""
        counts = normalise_usage(usage)
        if self.budget is None or self._looks_cut(counts):
            return Level.UNKNOWN.value
        return assess(counts.prompt_tokens, self.budget).level.value

    def _looks_cut(self, counts: Usage) -> bool:
        request = self.sent_request or self.request
        if request is None:
            return False
        reply = self.reply or Reply()
        return truncation.looks_cut(
            self.key_context.caller.project.id,
            self.model_key,
            reply.model or self.upstream_model,
            Sizes(
                bytes=self.text_bytes,
                tokens=counts.prompt_tokens,
                messages=len(request.messages),
                reasoning=counts.reasoning_tokens,
                window=self.window,
                is_blind=bool(self.images),
            ),
        )

    def fail(
        self, error: WireError, *, http_status: int | None = None, is_own: bool = True
    ) -> None:
        """Note what went wrong; the first fault is the one that counts.

        is_own: the message is ours; False: it is the provider's, who may quote the prompt.
        """
        if self.error is None:
            self.error = error
            self.error_is_own = is_own
            self.status = "error"
            self.http_status = self.http_status or http_status

    def cancel(self, message: str) -> None:
        """Note that the client left (or that we had to).

        One that has read the finish reason, or an error, had no more to wait for: what ended the
        reply is then not that it left.
        """
        seen = self.collector
        if self.error is not None or (seen is not None and (seen.error or seen.finish_reason)):
            return
        self.status = "cancelled"
        self.error = WireError(message=message, code="client_disconnected")

    def capture(self) -> Capture:
        """Everything this call told us."""
        now_ns = perf_counter_ns()
        reply, text_len, reasoning_len = self._outcome()
        request = self.sent_request or self.request
        error = self.error or reply.error
        project = self.key_context.caller.project
        keeps_texts = project.payload != KEEPS_NOTHING
        has_reply = text_len is not None
        return Capture(
            id=self.call_id,
            model=self.model,
            budget_model=self.budget_model,
            conversation=self.options.conversation or conversation_of(self.metadata),
            round_number=self.care.round_number if self.care is not None else None,
            provider=self.endpoint.name if self.endpoint else None,
            pack=self.options.pack,
            purpose=self.options.purpose or self.purpose,
            correlation_id=self.options.correlation_id,
            attempt=max(len(self.attempts), 1),
            caller=self.key_context.caller.name,
            client_name=self.client.name if self.client else None,
            client_version=(self.client.version or None) if self.client else None,
            client_window=self.client_window,
            upstream_model=reply.model or self.upstream_model,
            response_format=_response_format(request),
            usage=reply.usage,
            finish_reason="refusal" if reply.refusal and has_reply else reply.finish_reason,
            raw_content_len=text_len,
            latency_ms=(now_ns - self.started_ns) // _NS_PER_MS,
            ttft_ms=(
                (self.first_ns - self.started_ns) // _NS_PER_MS
                if self.first_ns is not None
                else None
            ),
            overhead_ms=round(self.own_ms(self.heard_ns or now_ns), 3),
            status="error" if error is not None and self.status == "success" else self.status,
            http_status=self.http_status,
            error_code=self._error_code(error, keeps_texts=keeps_texts) if error else None,
            error_message=error.message if error else None,
            error_is_own=self.error is not None and self.error_is_own,
            sent=self._sent(),
            messages=message_digest.kept_messages(request) if request and keeps_texts else None,
            content=(reply.text or reply.refusal or "") if has_reply else None,
            tool_calls=len(reply.tool_calls) if has_reply else None,
            reasoning_len=reasoning_len,
            window=self.window,
            server_window=self.server_window,
            refused_window=self.refused_window,
            links=self._links(reply),
            started_at=self.started_at,
            metadata=self._metadata(),
            attempts=self.attempts,
        )

    def _error_code(self, error: WireError, *, keeps_texts: bool) -> str | None:
        """Of a provider that repeats the prompt there, nothing where the prompt is not kept: this
        is the last place that knows both."""
        code, request = error.code or error.type, self.request
        if (
            keeps_texts
            or not code
            or request is None
            or (error is self.error and self.error_is_own)
        ):
            return code
        return kept_code(code, (turn.text for turn in message_digest.turns_of(request.messages)))

    def bare_capture(self) -> Capture:
        """What is certain of this call whatever its request and reply hold. Never raises."""
        return Capture(
            id=self.call_id,
            model=self.model,
            budget_model=self.budget_model,
            conversation=self.options.conversation,
            provider=self.endpoint.name if self.endpoint else None,
            pack=self.options.pack,
            purpose=self.options.purpose or self.purpose,
            correlation_id=self.options.correlation_id,
            upstream_model=self.upstream_model,
            latency_ms=(perf_counter_ns() - self.started_ns) // _NS_PER_MS,
            status=self.status,
            http_status=self.http_status,
            started_at=self.started_at,
            metadata={
                "gateway": self.route.client.name,
                "not_stored": "HelmDash failed on what the call holds; see its log",
            },
        )

    def _outcome(self) -> tuple[Reply, int | None, int | None]:
        """The reply as far as it came, and the bytes of its text and reasoning; null for none."""
        if self.collector is not None:
            return self.collector.reply(), self.collector.text_bytes, self.collector.reasoning_bytes
        reply = self.reply
        if reply is not None and self.request is not None:
            return reply, utf8_bytes(reply.text), utf8_bytes(reply.reasoning)
        # Without a chat request there is no text in a reply that could be missing.
        return reply or Reply(), None, None

    def _sent(self) -> SentSizes:
        request = self.sent_request or self.request
        return SentSizes(
            bytes=self.text_bytes,
            messages=len(request.messages) if request else None,
            tools_bytes=self.tools_bytes,
            images=self.images if request else None,
        )

    def _links(self, reply: Reply) -> fingerprints.ChainLinks | None:
        if self.request is None:
            return None
        return fingerprints.links_of(
            message_digest.turns_of(self.request.messages),
            reply=message_digest.reply_turn(reply),
            is_retry=self.options.is_retry,
        )

    def _metadata(self) -> dict[str, object]:
        told: dict[str, object] = {"gateway": self.route.client.name, **self.notes}
        if self.request is not None:
            told["stream"] = self.request.stream
        if self.care is not None:
            told["remediation"] = self.care.action
        if self.metadata:
            told["client"] = dict(self.metadata)
        return told


def _response_format(request: ChatRequest | None) -> str | None:
    if request is None or request.json_mode is None:
        return None
    return "json_object" if request.json_mode.schema is None else "json_schema"
