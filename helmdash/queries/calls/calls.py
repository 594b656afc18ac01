"""Recorded calls: one with all beside it, and which ids are known; `call_listing` has the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any

from django.db import connection
from django.db.models import Max

from helmdash.answers import HIDDEN, INLINE, Doc, JsonName, Words, answer, member
from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import split_routes
from helmdash.core.calls.tool_schemas import OfferedTools, offered_of
from helmdash.core.calls.usage import Usage
from helmdash.core.conversations.clients import Client
from helmdash.core.evidence.cache_misses import CacheMiss
from helmdash.queries.calls.cache_misses import cache_miss_of
from helmdash.records.call_names import (
    calls_at,
    find_call,
    find_correlated,
    find_places,
)
from helmdash.records.models import (
    Call,
    CallPayload,
    Conversation,
    RollupState,
    StoredMessage,
    UncountedCalls,
)
from helmdash.records.replica import connection_for
from helmdash.records.statements.direct import ask

# What fills a prompt, in the order of core.calls.composition.
COMPOSITION_COLUMNS = (
    "sent_system_bytes",
    "sent_tools_bytes",
    "sent_user_bytes",
    "sent_assistant_bytes",
    "sent_results_bytes",
    "sent_image_bytes",
    "sent_other_bytes",
    "sent_results_by_tool",
)
_composition_columns = attrgetter(*COMPOSITION_COLUMNS)
# With the call itself.
_MOST_RELATED = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimBytes:
    """The prompt before and after it was made to fit."""

    before_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimDetail(TrimBytes):
    """The same, with the labels of what was dropped."""

    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedCut:
    """Why the provider is suspected of having cut the prompt; tokens, as integers.
    `expected_tokens` is null where only the reported count told."""

    version: str
    rule: str
    detail: str
    expected_tokens: int | None
    reported_tokens: int


ModelKey = Annotated[str, Doc("What figures and filters know the model by, however it is spelled.")]
ClientWindow = Annotated[int | None, Doc("Tokens of context that the client counts on.")]


@answer("Call")
@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call as lists show it.

    None means not reported.
    """

    id: str
    conversation: str | None
    round_number: Annotated[int | None, JsonName("round")]
    generation: Annotated[int | None, Doc("Null: of no conversation, or a side call.")]
    lane: Lane
    routes: Annotated[
        tuple[str, ...],
        Doc(
            "The doors that told of it: gateway, api, mcp, otlp_log, otlp_span, transcript, "
            "planner; empty: unknown."
        ),
    ]
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
    status: Annotated[str, Words(("success", "error", "cancelled"))]
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
    trim: TrimBytes | None
    sent: SentSizes
    composition: Annotated[Composition | None, Doc("What fills the prompt; null: not known.")]
    estimate_tokens: int | None
    prompt_hash: str | None
    placed_by: str | None
    started_at: datetime
    recorded_at: datetime
    # A stream that was asked for again: a later attempt has its generation.
    is_asked_again: Annotated[bool, HIDDEN] = False

    @property
    def is_judged_by_beginning(self) -> bool:
        """Whether the budget's key is what the model's id begins with, and not all of it."""
        key, model = self.budget_key.lower(), self.model_key.lower()
        return bool(key) and key != model and model.startswith(key)


@answer("ContextEdit")
@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEdit:
    """What the provider left out of a prompt by itself, as it told the gateway."""

    kind: Annotated[str, Doc("In the provider's own word, such as compaction.")]
    cleared_tokens: int | None
    cleared_tool_uses: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetail:
    """One call with all that lies beside it.

    Texts only as far as the project keeps them.
    """

    call: Annotated[CallView, INLINE]
    usage_raw: object
    metadata: object
    trim_dropped: Annotated[tuple[str, ...], HIDDEN]
    attempts: tuple[object, ...]
    messages: tuple[object, ...] | None
    content: str | None
    related: tuple[CallView, ...]
    suspected_cut: SuspectedCut | None = None
    offered: Annotated[
        OfferedTools | None,
        Doc("The tools that were sent, `sent.tools_bytes` in all; null: not told, or none."),
    ] = None
    cache_miss: Annotated[
        CacheMiss | None,
        Doc(
            "What the provider's cache did not have of the prompt, and why. Null: nearly all was "
            "read, or one of the calls does not tell."
        ),
    ] = None
    rules: Annotated[
        Mapping[str, str] | None,
        Doc("Version of each rule that decided, by subject; null: not stored then."),
    ] = None

    @property
    @member
    def context_edits(self) -> tuple[ContextEdit, ...]:
        """What the provider left out of the prompt by itself; empty where it told of nothing."""
        told = self.metadata.get("context_edits") if isinstance(self.metadata, Mapping) else None
        return tuple(
            ContextEdit(
                kind=edit["type"],
                cleared_tokens=_told_count(edit.get("cleared_input_tokens")),
                cleared_tool_uses=_told_count(edit.get("cleared_tool_uses")),
            )
            for edit in (told if isinstance(told, list) else ())
            if isinstance(edit, Mapping) and isinstance(edit.get("type"), str)
        )

    @property
    @member
    def notes(self) -> tuple[str, ...]:
        """What of the request was left out, since the upstream's format has no word for it."""
        told = self.metadata.get("notes") if isinstance(self.metadata, Mapping) else None
        found = told if isinstance(told, list) else []
        return tuple(note for note in found[:_MOST_NOTES] if isinstance(note, str))

    @property
    @member
    def trim(self) -> TrimDetail | None:
        """What was cut of the prompt before it was sent; None where nothing was told of it."""
        sizes = self.call.trim
        if sizes is None:
            return None
        return TrimDetail(
            before_bytes=sizes.before_bytes,
            after_bytes=sizes.after_bytes,
            dropped=self.trim_dropped,
        )


# A translation tells of eight at most; metadata is anybody's.
_MOST_NOTES = 16


def _told_count(value: object) -> int | None:
    """Metadata is anybody's."""
    return value if type(value) is int and value >= 0 else None


def find(*, project_id: int, call_id: str) -> CallDetail | None:
    """One call, its payload, and the first other calls of its correlation id. At most ten
    queries. None if it does not exist in the project."""
    row = find_call(project_id, call_id).select_related("conversation", "rules").first()
    if row is None:
        return None
    payload = CallPayload.objects.filter(
        project_id=project_id, started_at=row.started_at, call_id=row.pk
    ).first()
    related: tuple[CallView, ...] = ()
    if row.correlation_id:
        places = find_correlated(project_id, [row.correlation_id], _MOST_RELATED, oldest=True)
        others = calls_at(project_id, places).exclude(pk=row.pk).select_related("conversation")
        related = tuple(view(other) for other in others.order_by("started_at", "id"))
    return CallDetail(
        call=view(row),
        usage_raw=payload.usage_raw if payload else None,
        metadata=payload.metadata if payload else None,
        trim_dropped=tuple(payload.trim_dropped or ()) if payload else (),
        attempts=tuple(payload.attempts or ()) if payload else (),
        messages=_messages(project_id, payload.message_hashes if payload else None),
        content=payload.content if payload else None,
        related=related,
        suspected_cut=_suspected_cut(payload.cut) if payload else None,
        offered=offered_of(payload.offered) if payload else None,
        cache_miss=cache_miss_of(row, payload),
        rules=row.rules.versions if row.rules else None,
    )


def stored_ids(*, project_id: int, ids: Sequence[str]) -> frozenset[str]:
    """Which of the ids are recorded. One query."""
    return frozenset(find_places(project_id, ids))


def newest_mark(*, project_id: int) -> int:
    """The primary key of the call that started last; 0 while the project has none."""
    # Every page asks it: without the ORM, which takes ten times as long to word it.
    table = connection.ops.quote_name(Call._meta.db_table)
    order = "ORDER BY started_at DESC, id DESC LIMIT 1"
    statement = f"SELECT id FROM {table} WHERE project_id = %s {order}"
    rows = ask(statement, [project_id], of=connection_for(Call))
    return int(rows[0][0]) if rows else 0


def change_mark() -> int:
    """What live fragments are compared by: another number after every transaction that recorded or
    erased calls, of whatever project and time. Two queries at most, of small tables.

    Not the largest key of all calls, for which every month would be asked.
    """
    waiting = UncountedCalls.objects.order_by("-id").values_list("id", flat=True).first()
    if waiting is None:
        waiting = RollupState.objects.aggregate(newest=Max("folded_to"))["newest"]
    return waiting or 0


def health_of(row: Call | Conversation) -> Health:
    """The health stored with a row, judged by the thresholds of its day."""
    prompt, limit, optimal = row.prompt_tokens, row.limit_tokens, row.optimal_max_tokens
    return Health(
        level=Level(row.level),
        reason=HealthReason(row.level_reason) if row.level_reason else None,
        prompt_tokens=prompt,
        limit_tokens=limit,
        limit_source=LimitSource(row.limit_source) if row.limit_source else None,
        optimal_max_tokens=optimal,
        critical_max_tokens=row.critical_max_tokens,
        hard_util=prompt / limit if prompt is not None and limit else None,
        optimal_util=prompt / optimal if prompt is not None and optimal else None,
    )


def client_of_row(row: Call | Conversation) -> Client | None:
    """The program that made the call (the newest one); None where it is not known."""
    if not row.client_name:
        return None
    return Client(name=row.client_name, version=row.client_version or "")


def composition_of(told: Sequence[Any]) -> Composition | None:
    """What fills a call's prompt, of COMPOSITION_COLUMNS; None where nothing of it but its tools is
    known."""
    system, tools, user, assistant, results, images, other, by_tool = told
    found = Composition(
        system=system,
        tools=tools,
        user=user,
        assistant=assistant,
        tool_results=results,
        images=images,
        other=other,
        results_by_tool=by_tool or {},
    )
    return found if found.is_known else None


def view(row: Call) -> CallView:
    """The value behind a row (with its conversation selected)."""
    return CallView(
        id=row.name,
        conversation=row.conversation.name if row.conversation else None,
        round_number=row.round_number,
        # An earlier attempt at a stream is shown by the number that the latest has.
        generation=row.attempt_of if row.generation is None else row.generation,
        lane=Lane(row.lane) if row.lane else Lane.MAIN,
        routes=split_routes(row.routes),
        attempt=row.attempt,
        model=row.model,
        model_key=row.model_key or row.model,
        client=client_of_row(row),
        client_window=row.client_window,
        upstream_model=row.upstream_model or None,
        provider=row.provider or None,
        pack=row.pack or None,
        purpose=row.purpose,
        correlation_id=row.correlation_id or None,
        caller=row.caller or None,
        prompt_variant=row.prompt_variant or None,
        response_format=row.response_format or None,
        usage=Usage(
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            total_tokens=row.total_tokens,
            cached_tokens=row.cached_tokens,
            cache_write_tokens=row.cache_write_tokens,
            reasoning_tokens=row.reasoning_tokens,
        ),
        status=row.status,
        http_status=row.http_status,
        finish_reason=FinishReason(row.finish_reason) if row.finish_reason else None,
        finish_reason_raw=row.finish_reason_raw or None,
        error_code=row.error_code or None,
        error_message=row.error_message or None,
        cause=_cause(row),
        raw_content_len=row.raw_content_bytes,
        content_len=row.content_bytes,
        latency_ms=row.latency_ms,
        ttft_ms=row.ttft_ms,
        overhead_ms=row.overhead_ms,
        health=health_of(row),
        budget_key=row.budget_key,
        fit_id=row.fit_name or None,
        trim=_trim(row),
        sent=SentSizes(
            bytes=row.sent_bytes,
            messages=row.sent_messages,
            tools_bytes=row.sent_tools_bytes,
            images=row.sent_images,
        ),
        composition=composition_of(_composition_columns(row)),
        estimate_tokens=row.estimate_tokens,
        prompt_hash=row.prompt_hash or None,
        placed_by=row.placed_by or None,
        started_at=row.started_at,
        recorded_at=row.recorded_at,
        is_asked_again=row.attempt_of is not None,
    )


def _cause(row: Call) -> Cause | None:
    if not row.cause:
        return None
    return Cause(
        name=FailureCause(row.cause),
        rule=row.cause_rule,
        advice=Advice(row.cause_advice),
        detail=row.cause_detail,
    )


def _trim(row: Call) -> TrimBytes | None:
    if row.trim_before_bytes is None or row.trim_after_bytes is None:
        return None
    return TrimBytes(before_bytes=row.trim_before_bytes, after_bytes=row.trim_after_bytes)


def _suspected_cut(stored: Mapping[str, Any] | None) -> SuspectedCut | None:
    if stored is None:
        return None
    return SuspectedCut(**{each.name: stored[each.name] for each in fields(SuspectedCut)})


def _messages(project_id: int, hashes: list[str] | None) -> tuple[object, ...] | None:
    if hashes is None:
        return None
    stored = dict(
        StoredMessage.objects.filter(project_id=project_id, hash__in=hashes).values_list(
            "hash", "body"
        )
    )
    return tuple(stored[key] for key in hashes if key in stored)
