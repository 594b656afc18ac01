"""Capture: everything one call told us, as it was reported, before anything is concluded.

The same shape whether the call was posted to the API, seen by the gateway or ingested. None means
"not told", which is never the same as 0 or "".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from helmdash.answers import answer
from helmdash.core.calls.beside import Beside
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.lanes import Lane, lane_of
from helmdash.core.calls.routes import CallRoute
from helmdash.core.calls.tool_schemas import OfferedTools
from helmdash.core.conversations.fingerprints import ChainLinks
from helmdash.core.values import quick_value

Status = Literal["success", "error", "cancelled"]

# Purposes whose reply a program reads: JSON is due, and a cut reply is of no use.
STRUCTURED_PURPOSES = frozenset({"plan", "route", "filter", "verify"})

# What a conversation may be called: what a path carries unescaped. No link can carry "." or "..".
CONVERSATION_PATTERN = r"^(\.{3,}|\.*[A-Za-z0-9_:@+=-][A-Za-z0-9._:@+=-]*)$"
CONVERSATION_CHARS = 255
# As far as clocks and their time zones go wrong; what is later would begin months of its own.
CLOCK_AHEAD = timedelta(days=1)
# OpenAI's have 55 characters; before it stands what tells it from ids of calls.
MOST_REPLY_ID_CHARS = 100
# What programs call a context: a number, an id, or a hash.
CONTEXT_CHARS = 64

# What proxies answer when the caller hung up before the reply (nginx's 499).
HTTP_CLIENT_CLOSED = 499


@quick_value(frozen=True, slots=True, kw_only=True)
class CapturedTrim:
    """What the caller says was cut before sending (bytes; labels in the order of cutting)."""

    before_bytes: int
    after_bytes: int
    dropped: tuple[str, ...] = ()


@answer("Sent")
@quick_value(frozen=True, slots=True, kw_only=True)
class SentSizes:
    """The size of what was sent.

    bytes: of the body. messages, images: how many. tools_bytes: of the schemas of tools.
    None: not reported.
    """

    bytes: int | None = None
    messages: int | None = None
    tools_bytes: int | None = None
    images: int | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Capture:
    """One request to a model and what came back, in the caller's own words.

    None: the caller did not say. `attempt` counts from 1; `*_len` are UTF-8 bytes, `*_ms`
    milliseconds, windows tokens.
    """

    model: str
    id: str | None = None
    # Other ids that it is known by, which another door may tell it by: a provider's own.
    also_known: tuple[str, ...] = ()
    # The provider's id of its reply, where another door tells of it; not sure to be one call's.
    reply_id: str | None = None
    # Ids of what it lies in, the nearest first: were they told as calls, this one counts instead.
    inside: tuple[str, ...] = ()
    conversation: str | None = None
    parent: str | None = None  # the conversation that this one is a part of, as a sub-agent's is
    lane: Lane | None = None  # as it was told; `effective_lane` says what holds
    # How its program calls the context it was made in; another one after a compaction.
    context: str | None = None
    routes: tuple[CallRoute, ...] = ()  # the doors it came by
    round_number: int | None = None  # the round it was begun in, where the caller knows
    provider: str | None = None
    pack: str | None = None
    purpose: str = "chat"
    correlation_id: str | None = None
    attempt: int = 1
    caller: str | None = None
    upstream_model: str | None = None
    prompt_variant: str | None = None
    response_format: str | None = None
    usage: Mapping[str, object] | None = None
    finish_reason: str | None = None
    raw_content_len: int | None = None
    latency_ms: int | None = None
    ttft_ms: int | None = None
    overhead_ms: float | None = None
    status: Status | None = None
    http_status: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    # Whether the message is a sentence of HelmDash's, which quotes nobody; False: a provider's, as
    # the gateway had it or telemetry tells it; None: that of a report, which somebody wrote.
    error_is_own: bool | None = None
    trim: CapturedTrim | None = None
    sent: SentSizes | None = None
    # False: the provider adds to what was sent, or leaves out of it, so its bytes say nothing of
    # the tokens that are reported.
    sent_is_prompt: bool | None = None
    composition: Composition | None = None
    offered: OfferedTools | None = None  # the tools that were sent, which `sent` has the bytes of
    messages: tuple[Mapping[str, object], ...] | None = None
    content: str | None = None
    decoded: bool | None = None
    unusable: str | None = None  # why what was decoded is of no use, as a sentence
    started_at: datetime | None = None
    metadata: Mapping[str, object] | None = None
    fit_id: str | None = None
    client_name: str | None = None  # the program that made the call (core.conversations.clients)
    client_version: str | None = None
    client_window: int | None = None  # tokens of context that the client counts on
    attempts: tuple[Mapping[str, object], ...] = ()
    # The trial whose budget ruled it (core.budgets.trials.told); "": none; None: its door does not
    # know budgets.
    trial: str | None = None
    # What only a gateway sees.
    budget_model: str | None = None  # the id that budgets know the model by, if not `model`
    tool_calls: int | None = None  # calls of tools in the reply
    window: int | None = None  # tokens of context the upstream was told to use (Ollama's num_ctx)
    refused_window: int | None = None  # tokens of context that a refusal names
    server_window: int | None = None  # tokens of context the upstream says the model has
    reasoning_len: int | None = None  # bytes of reasoning that came beside the content
    kept_reply_id: str | None = None  # by which the provider keeps the reply
    is_kept_by_own: bool | None = None  # for an account of the project's own; None: it keeps none
    may_be_truncated: bool | None = None  # the provider was told to leave out what does not fit
    links: ChainLinks | None = None  # what tells the conversation where none was named
    beside: Beside | None = None  # for whoever asked for an answer; read and never stored

    @property
    def effective_lane(self) -> Lane:
        """The lane as told, else by the purpose."""
        return lane_of(self.lane, self.purpose)

    @property
    def effective_status(self) -> Status:
        """The status as given; otherwise read from the HTTP status and the error code."""
        if self.status is not None:
            return self.status
        if self.http_status == HTTP_CLIENT_CLOSED:
            return "cancelled"
        if self.error_code or (self.http_status or 0) >= 400:
            return "error"
        return "success"


def is_too_old(capture: Capture, kept_since: datetime | None) -> bool:
    """Whether a transcript tells of a call that its project does not keep any more.

    Files of agents are read again whenever they grow. What retention has deleted would come back
    each time, and be counted once more among the figures that outlive it.
    """
    began = capture.started_at
    is_old = kept_since is not None and began is not None and began < kept_since
    return is_old and capture.routes == (CallRoute.TRANSCRIPT,)
