"""One call on its way through the gateway: all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter_ns

from helmdash.core.agents.values import AgentCall
from helmdash.core.budgets import trials
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.calls.capture import Status
from helmdash.core.calls.lanes import Lane, lane_of
from helmdash.core.calls.tool_schemas import OfferedTools
from helmdash.core.conversations.clients import Client
from helmdash.core.conversations.fingerprints import ChatTraces
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.doors.callers.directory import KeyContext
from helmdash.gateway.message_digest import traces_of
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.remediation_state import RemediationState
from helmdash.gateway.requests.options import RequestOptions
from helmdash.gateway.requests.routes import Route
from helmdash.operations.recorder import Unit
from helmdash.providers.shared.collecting import Collector
from helmdash.providers.wire import ChatRequest, Object, Reply, WireError

NS_PER_MS = 1_000_000
KEEPS_NOTHING = "off"


@dataclass(slots=True, kw_only=True)
class Exchange:
    """The state of one call, filled in by one stage after the other; capturing.py reads it all."""

    call_id: str
    route: Route
    key_context: KeyContext
    options: RequestOptions
    headers: Mapping[bytes, bytes] = field(repr=False)
    model: str
    started_at: datetime
    started_ns: int
    outgoing: OutgoingRequest  # what is sent; as it came, until remediation has looked at it
    client: Client | None = None
    client_window: int | None = None  # tokens of context that the client counts on
    purpose: str = "chat"
    request: ChatRequest | None = None  # as it came
    remediation: RemediationState | None = None  # None: not wanted, or not possible
    tools_bytes: int | None = None
    offered: OfferedTools | None = None
    metadata: Object | None = None
    agent: AgentCall | None = None  # what its program says of the call by itself
    conversation: str | None = None  # as the client names it
    parent: str | None = None  # the conversation that this one is a part of
    endpoint: Endpoint | None = None
    upstream_model: str | None = None
    is_native: bool = False  # the upstream is spoken to in the client's own format
    budget: EffectiveBudget | None = None
    budget_model: str | None = None
    window: int | None = None  # tokens of context the upstream is told to use
    server_window: int | None = None  # tokens of context the upstream says the model has
    refused_window: int | None = None  # tokens of context that a refusal names
    sent_ns: int | None = None
    heard_ns: int | None = None  # when the upstream's part was over, or began to stream
    first_ns: int | None = None
    http_status: int | None = None
    request_id: str | None = None  # the upstream's own, as it tells the client
    status: Status = "success"
    error: WireError | None = None
    error_is_own: bool = True  # its message is ours, and not the provider's
    attempts: tuple[Mapping[str, object], ...] = ()
    refused_attempts: tuple[Mapping[str, object], ...] = ()  # before the request was made shorter
    notes: dict[str, object] = field(default_factory=dict)
    collector: Collector | None = None  # of a stream
    reply: Reply | None = None  # of a whole reply
    is_settled: bool = False
    unkept: Unit | None = None  # its record, while that lies in memory alone
    _traces: ChatTraces | None = field(default=None, init=False, repr=False)

    @property
    def traces(self) -> ChatTraces:
        """What the request leaves to be known by; read when it is first asked for."""
        assert self.request is not None
        if self._traces is None:
            self._traces = traces_of(self.request)
        return self._traces

    @property
    def told_purpose(self) -> str:
        """What the call is for: as our header says, else its program, else what was asked for."""
        by_agent = self.agent.purpose if self.agent is not None else None
        return self.options.purpose or by_agent or self.purpose

    @property
    def told_lane(self) -> Lane | None:
        """The lane as our header says it, else its program; None: neither does."""
        return self.options.lane or (self.agent.lane if self.agent is not None else None)

    @property
    def is_side(self) -> bool:
        """Whether it is made beside its conversation, which is then left as it is."""
        return lane_of(self.told_lane, self.told_purpose) is Lane.SIDE

    @property
    def asker(self) -> tuple[int, str]:
        """Whose conversations the call may go on with: its project, and the name of its key."""
        return self.key_context.caller.project.id, self.key_context.caller.name

    @property
    def model_key(self) -> str:
        """The name of the model in figures, by the upstream that serves it."""
        provider = self.endpoint.name if self.endpoint else None
        return self.key_context.rules.key_of(self.model, provider=provider)

    def look_up_budget(self, *, server_window: int | None = None) -> EffectiveBudget:
        """Find the budget that governs the call, by all that is known of it and its upstream.

        server_window: tokens of context the upstream says the model has; None: it does not say.
        """
        self.server_window = server_window
        rules = self.key_context.rules.for_conversation(self.conversation)
        self.budget = rules.lookup(
            self.budget_model or self.model,
            key=self.model_key,
            client_window=self.client_window,
            server_window=server_window,
        )
        return self.budget

    @property
    def told_trial(self) -> str:
        """The trial whose budget ruled the call, as captures say it."""
        ruled_by = self.budget.trial if self.budget is not None else None
        return trials.told(ruled_by, self.conversation)

    @property
    def served_model(self) -> str:
        """The upstream's own id of the model."""
        return self.upstream_model or self.model

    @property
    def before_ms(self) -> float:
        """What the gateway took until it sent the request, or so far; in milliseconds."""
        return ((self.sent_ns or perf_counter_ns()) - self.started_ns) / NS_PER_MS

    @property
    def own_ms(self) -> float:
        """What the gateway itself has taken so far, in milliseconds: not the upstream's part."""
        after = perf_counter_ns() - self.heard_ns if self.heard_ns is not None else 0
        return self.before_ms + after / NS_PER_MS

    def fail(
        self, error: WireError, *, http_status: int | None = None, is_own: bool = True
    ) -> None:
        """Note what went wrong; the first fault is the one that counts.

        http_status None: none was received. is_own: the message is ours; False: it is the
        provider's, who may quote the prompt.
        """
        if self.error is None:
            self.error = error
            self.error_is_own = is_own
            self.status = "error"
            self.http_status = self.http_status or http_status

    def cancel(self, error: WireError) -> None:
        """Note that the client left (or that we had to).

        One that has read the finish reason, or an error, had no more to wait for: what ended the
        reply is then not that it left.
        """
        seen = self.collector
        if self.error is not None or (seen is not None and (seen.error or seen.finish_reason)):
            return
        self.status = "cancelled"
        self.error = error
