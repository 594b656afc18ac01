"""Calls: how they are looked for, and what is told about them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.api.schemas.common import FieldError, StatusText
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.shapes.answers import Cause, Client, ClientWindow, Health, ModelKey


class ExportQuery(TypedDict, total=False):
    """Filters of calls."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    conversation: QueryText
    model: Annotated[QueryText, Field(description="In any spelling.")]
    client: Annotated[
        QueryText, Field(description="Name of the program that made the call: claude-code, curl …")
    ]
    level: Level
    cause: FailureCause
    finish_reason: FinishReason
    purpose: QueryText
    pack: QueryText
    since: Annotated[TimeBound, Field(description="Started at this time or later.")]
    until: Annotated[TimeBound, Field(description="Started before this time.")]
    q: Annotated[
        QueryText,
        Field(description="The beginning of a call's, a conversation's or a correlation id."),
    ]


class ListQuery(ExportQuery, total=False):
    """Filters of calls, and the place in the list."""

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


EXPORT_QUERY = Shape(ExportQuery)
LIST_QUERY = Shape(ListQuery)


class Rejected(TypedDict):
    """A call of a batch that was not stored, by its place in the batch, and why."""

    index: int
    errors: list[FieldError]


class BatchResult(TypedDict):
    """A stored call of a batch."""

    index: int
    id: str
    level: Level


class BatchAnswer(TypedDict):
    """What became of a batch."""

    stored: int
    duplicates: int
    rejected: list[Rejected]
    results: list[BatchResult]


class Reconciled(TypedDict):
    """Which ids are recorded and which are not, each in the order asked."""

    stored: list[str]
    missing: list[str]


class Usage(TypedDict):
    """Tokens as reported, in our words; null means not reported."""

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None


class TrimBytes(TypedDict):
    """The prompt before and after it was made to fit."""

    before_bytes: int
    after_bytes: int


class TrimDetail(TrimBytes):
    """The same, with the labels of what was dropped."""

    dropped: list[str]


class Sent(TypedDict):
    """The size of what was sent."""

    bytes: int | None
    messages: int | None
    tools_bytes: int | None
    images: int | None


class SuspectedCut(TypedDict):
    """Why the provider is suspected of having cut the prompt; tokens, as integers.

    `expected_tokens` is null where only the reported count told.
    """

    version: str
    rule: str
    detail: str
    expected_tokens: int | None
    reported_tokens: int


class CallCore(TypedDict):
    """What lists and details have in common."""

    id: str
    conversation: str | None
    round: int | None
    generation: int | None
    attempt: int
    model: str
    model_key: ModelKey
    client: Client | None
    client_window: ClientWindow
    upstream_model: str | None
    provider: str | None
    pack: str | None
    purpose: str
    correlation_id: str | None
    caller: str | None
    prompt_variant: str | None
    response_format: str | None
    usage: Usage
    status: StatusText
    http_status: int | None
    finish_reason: FinishReason | None
    finish_reason_raw: str | None
    error_code: str | None
    error_message: str | None
    cause: Cause | None
    raw_content_len: int | None
    content_len: int | None
    latency_ms: int | None
    ttft_ms: int | None
    overhead_ms: float | None
    health: Health
    budget_key: str
    fit_id: str | None
    sent: Sent
    estimate_tokens: int | None
    prompt_hash: str | None
    placed_by: str | None
    started_at: datetime
    recorded_at: datetime


class Call(CallCore):
    """One call as lists show it."""

    trim: TrimBytes | None


class CallDetail(CallCore):
    """One call with all that lies beside it."""

    trim: TrimDetail | None
    suspected_cut: SuspectedCut | None
    rules: Annotated[
        dict[str, str] | None,
        Field(description="Version of each rule that decided, by subject; null: not stored then."),
    ]
    usage_raw: Any
    metadata: Any
    attempts: list[Any]
    messages: list[Any] | None
    content: str | None
    related: list[Call]


class CallList(TypedDict):
    """A page of calls, newest first."""

    items: list[Call]
    next: str | None
