"""The fill curve of a conversation: each prompt, with the lines that it was judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.routes import split_routes
from helmdash.core.evidence.cache_misses import (
    CachedCall,
    MissCause,
    find_cache_miss,
)
from helmdash.core.evidence.net_value import Prompt
from helmdash.queries.calls.calls import COMPOSITION_COLUMNS, CallView, composition_of
from helmdash.records.call_names import calls_at, find_generation
from helmdash.records.models import Conversation
from helmdash.records.querysets import calls_of

# A curve of more points than a wide screen has pixels shows nothing more.
CURVE_POINTS = 600
# Shorter than this all of a conversation is seen at once, and one that is longer in so many points.
WHOLE_FROM = 60
WHOLE_POINTS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One generation of the fill curve; prompt_tokens None leaves a gap. is_history: it was made
    before those that are numbered before it, and is of no round."""

    generation: int
    round_number: int
    call_id: str
    model: str
    prompt_tokens: int | None
    level: Level
    limit_tokens: int | None
    optimal_max_tokens: int | None
    critical_max_tokens: int | None
    is_trimmed: bool
    cause: str | None
    at: datetime
    reason: HealthReason | None = None
    composition: Composition | None = None
    images: int | None = None  # how many of them were sent
    routes: tuple[str, ...] = ()  # the doors that told of it
    is_history: bool = False
    cached_tokens: int | None = None  # of the prompt's, those that the provider read from its cache
    cache_write_tokens: int | None = None
    model_key: str = ""
    upstream_model: str | None = None
    provider: str | None = None
    latency_ms: int | None = None
    messages: int | None = None  # how many of them were sent
    sent_bytes: int | None = None
    estimate_tokens: int | None = None
    cache_miss: MissCause | None = None  # as far as `with_cache_misses` told it

    @property
    def is_trusted(self) -> bool:
        """Whether its prompt was reported, and was probably not cut upstream."""
        return self.prompt_tokens is not None and self.reason is not HealthReason.SUSPECTED_CUT


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePoint:
    """One of the generations that stand for a whole conversation; prompt_tokens None leaves a
    gap."""

    generation: int
    prompt_tokens: int | None


def curve_of(
    row: Conversation, *, up_to: int | None = None, since: int | None = None
) -> tuple[CurvePoint, ...]:
    """Its newest generations (from `since` one `up_to` another; None: the first, the newest),
    CURVE_POINTS at most, oldest first. One query."""
    top = row.generation if up_to is None else min(up_to, row.generation)
    # They are numbered without gaps. Said so, PostgreSQL takes the index of generations for it:
    # where it thinks that a conversation is not that long, it would sort all of it.
    rows = calls_of(row).filter(generation__gt=max(top - CURVE_POINTS, (since or 1) - 1))
    if up_to is not None:
        rows = rows.filter(generation__lte=up_to)
    newest = rows.order_by("-generation").values_list(
        "generation",
        "round_number",
        "name",
        "model",
        "prompt_tokens",
        "level",
        "level_reason",
        "limit_tokens",
        "optimal_max_tokens",
        "critical_max_tokens",
        "trim_before_bytes",
        "trim_after_bytes",
        "cause",
        "started_at",
        "sent_images",
        "routes",
        "cached_tokens",
        "cache_write_tokens",
        "model_key",
        "upstream_model",
        "provider",
        "latency_ms",
        "sent_messages",
        "sent_bytes",
        "estimate_tokens",
        *COMPOSITION_COLUMNS,
    )[:CURVE_POINTS]
    return tuple(
        CurvePoint(
            generation=generation or 0,
            round_number=round_number or 1,
            is_history=round_number is None,
            call_id=name,
            model=model,
            prompt_tokens=prompt,
            level=Level(level),
            reason=HealthReason(reason) if reason else None,
            limit_tokens=limit,
            optimal_max_tokens=optimal,
            critical_max_tokens=critical,
            is_trimmed=before is not None and after is not None and after < before,
            cause=cause or None,
            at=at,
            composition=composition_of(told),
            images=images,
            routes=split_routes(routes),
            cached_tokens=cached,
            cache_write_tokens=written,
            model_key=key or model,
            upstream_model=upstream_model or None,
            provider=provider or None,
            latency_ms=took,
            messages=messages,
            sent_bytes=sent,
            estimate_tokens=estimate,
        )
        for (
            generation,
            round_number,
            name,
            model,
            prompt,
            level,
            reason,
            limit,
            optimal,
            critical,
            before,
            after,
            cause,
            at,
            images,
            routes,
            cached,
            written,
            key,
            upstream_model,
            provider,
            took,
            messages,
            sent,
            estimate,
            *told,
        ) in reversed(list(newest))
    )


def with_cache_misses(points: Sequence[CurvePoint], most: int) -> tuple[CurvePoint, ...]:
    """The newest so many of the points, each with why the provider's cache missed, by the figures
    of the call before alone: its page also goes by texts and by names of tools."""
    pairs = zip([None, *points], points, strict=False)
    return tuple(
        replace(point, cache_miss=_cache_miss(before, point)) for before, point in [*pairs][-most:]
    )


def _cache_miss(before: CurvePoint | None, point: CurvePoint) -> MissCause | None:
    if before is None or before.generation != point.generation - 1:
        return None
    found = find_cache_miss(_cached_call(before), _cached_call(point))
    return None if found is None else found.cause


def _cached_call(point: CurvePoint) -> CachedCall:
    fills = point.composition
    return CachedCall(
        id=point.call_id,
        model_key=point.model_key,
        upstream_model=point.upstream_model,
        provider=point.provider,
        round_number=None if point.is_history else point.round_number,
        prompt=Prompt(
            tokens=point.prompt_tokens, cached=point.cached_tokens, written=point.cache_write_tokens
        ),
        started_at=point.at,
        latency_ms=point.latency_ms,
        sent_bytes=point.sent_bytes,
        estimate_tokens=point.estimate_tokens,
        tools_bytes=fills.tools if fills else None,
        system_bytes=fills.system if fills else None,
        sent_messages=point.messages,
    )


def whole_of(row: Conversation) -> tuple[WholePoint, ...]:
    """Generations evenly apart, WHOLE_POINTS at most, that stand for the whole conversation however
    long it is; none of a short one. One query, which looks each of them up."""
    if row.generation < WHOLE_FROM:
        return ()
    step = -(-row.generation // WHOLE_POINTS)
    wanted = range(row.generation, 0, -step)
    found = (
        calls_of(row)
        .filter(generation__in=wanted)
        .order_by("generation")
        .values_list("generation", "prompt_tokens", "level_reason")
    )
    cut = HealthReason.SUSPECTED_CUT.value
    return tuple(
        WholePoint(generation=generation or 0, prompt_tokens=None if reason == cut else prompt)
        for generation, prompt, reason in found
    )


def call_at(*, project_id: int, conversation: str, generation: int) -> str | None:
    """The id of the call of a generation; None: there is none, or it is not kept. Two queries."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation).first()
    if row is None:
        return None
    return calls_of(row).filter(generation=generation).values_list("name", flat=True).first()


def call_before(*, project_id: int, call: CallView) -> tuple[Composition | None, int | None]:
    """What filled the main call before this one, and how many images it sent; None: not known. Two
    queries, none where there is no such call."""
    if call.generation is None or call.generation < 2:
        return None, None
    places = find_generation(project_id, call.conversation or "", call.generation - 1)
    found = calls_at(project_id, places).values_list("sent_images", *COMPOSITION_COLUMNS).first()
    return (None, None) if found is None else (composition_of(found[1:]), found[0])


def id_of_call_before(*, project_id: int, call: CallView) -> str | None:
    """The id of the main call before this one; None: there is none (any more). Two queries, none
    for a call without a generation."""
    if call.generation is None or call.generation < 2 or call.conversation is None:
        return None
    # A name may still be there when its call is not: retention forgets it later.
    places = find_generation(project_id, call.conversation, call.generation - 1)
    return calls_at(project_id, places).values_list("name", flat=True).first()
