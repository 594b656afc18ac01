"""How models do: what came of their calls, by purpose and prompt variant, and the newest of them.

Source: the table of helmdeck ADR 053, whose six rows are read as what they are: filter passes and
plans, told apart by their purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Final, NamedTuple

from django.db.models import Q

from helmdash.core.budgets.health import HealthReason
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.core.text.wilson import wilson
from helmdash.queries.distinct_values import model_keys
from helmdash.records.models import Call

# The newest of the range. They are read and counted in about a quarter of a second.
MOST_CALLS: Final = 20_000
# Anything else callers invent shares one group, so that the table stays a table.
PURPOSES: Final = ("chat", "plan", "route", "filter", "verify")
OTHER: Final = "other"
# Only plans have variants of the prompt: a route's is one, whatever a caller reports.
_ROUTE: Final = "route"
# Upper ends of the bands of prompt sizes: around what a tier C catalog takes (10 KB), and far off.
_BANDS: Final = (("under 4 KB", 4_096), ("4 to 16 KB", 16_384), ("16 to 64 KB", 65_536))
_LARGEST_BAND: Final = "over 64 KB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many of n, with the share and its 95 % interval; None where n is 0."""

    count: int
    n: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBand:
    """Calls with prompts of a size, by the bytes sent."""

    label: str
    clean: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """Calls of one model for one purpose with one prompt variant. Every rate is of `calls`.

    model: as it was spelt last; model_key: what it is one model by; spellings: all, newest first.
    bands: only calls whose size is known, `unsized` are the others. finish_reasons: most frequent
    first, None for calls that reported none. estimate_ratio: the median of our estimate by the
    tokens the provider counted, over `estimated` calls. cached_share: of all prompt tokens those
    that the provider read from its cache, over the `cache_told` calls that told. Neither is taken
    from a call whose count is not trusted; suspected_cuts tells how many of all `calls` these are.
    is_sample: the range holds more calls than were read (MOST_CALLS, the newest).
    """

    model: str
    model_key: str
    spellings: tuple[str, ...]
    purpose: str
    prompt_variant: str | None
    calls: int
    clean: Rate
    truncated: Rate
    empty: Rate
    undecodable: Rate
    failed: Rate
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    timed: int
    finish_reasons: tuple[tuple[str | None, int], ...]
    bands: tuple[SizeBand, ...]
    unsized: int
    estimate_ratio: float | None
    estimated: int
    cached_share: float | None
    cache_told: int
    suspected_cuts: int
    is_sample: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCall:
    """One row of helmdeck ADR 053's table, with what it lacked. ended_at: its wall time."""

    id: str
    model: str
    purpose: str
    prompt_variant: str | None
    correlation_id: str | None
    started_at: datetime
    ended_at: datetime | None
    finish_reason: str | None
    completion_tokens: int | None
    raw_content_len: int | None
    latency_ms: int | None
    outcome: CallOutcome
    cause: str | None


def model_rows(
    *,
    project_id: int,
    model: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[ModelRow, ...]:
    """A row for each model, purpose and variant (but for routes), most calls first.

    One query, three with a model. model: only its rows, of as many of its own calls as else of all
    models together; None: every model's. since, until: when calls started, from the one to before
    the other; None: no such bound.
    """
    rows = Call.objects.filter(project_id=project_id)
    if model is not None:
        rows = rows.filter(model_key__in=model_keys(project_id=project_id, model=model))
    if since is not None:
        rows = rows.filter(started_at__gte=since)
    if until is not None:
        rows = rows.filter(started_at__lt=until)
    newest = rows.order_by("-started_at", "-id").values_list(*_Facts._fields)
    found = [_Facts(*row) for row in newest[: MOST_CALLS + 1]]
    is_sample = len(found) > MOST_CALLS
    groups: dict[tuple[str, str, str], _Group] = {}
    for facts in found[:MOST_CALLS]:
        purpose = facts.purpose if facts.purpose in PURPOSES else OTHER
        variant = "" if purpose == _ROUTE else facts.prompt_variant
        key = facts.model_key or facts.model
        groups.setdefault((key, purpose, variant), _Group()).add(facts)
    spelt: dict[str, dict[str, None]] = {}
    for facts in found[:MOST_CALLS]:
        spelt.setdefault(facts.model_key or facts.model, {})[facts.model] = None
    ranked = sorted(groups.items(), key=lambda pair: (-pair[1].calls, pair[0]))
    return tuple(
        group.row(*key, spellings=tuple(spelt[key[0]]), is_sample=is_sample)
        for key, group in ranked
    )


def recent_calls(
    *, project_id: int, model: str, purpose: str | None = None, limit: int = 20
) -> tuple[RecentCall, ...]:
    """The newest calls of a model, newest group first, in a group the earliest call first.

    The calls of a group (one correlation id: a filter pass and its plan) stand next to each other;
    with purpose None also those that another model answered. At most four queries.
    """
    rows = Call.objects.filter(project_id=project_id)
    keys = model_keys(project_id=project_id, model=model)
    mine = rows.filter(model_key__in=keys)
    if purpose is not None:
        mine = mine.filter(purpose=purpose)
    found = list(mine.order_by("-started_at", "-id").only(*_SHOWN)[:limit])
    groups = {call.correlation_id for call in found if call.correlation_id}
    others: list[Call] = []
    if groups and purpose is None:
        # `~Q(correlation_id="")` in the words of the partial index: SQLite uses it only then.
        told = rows.filter(~Q(correlation_id=""), correlation_id__in=groups)
        told = told.exclude(model_key__in=keys)
        others = list(told.order_by("-started_at").only(*_SHOWN)[:limit])
    return tuple(map(_recent, _by_group([*found, *others])))


class _Facts(NamedTuple):
    """The columns that are counted, in the order they are asked for."""

    model: str
    model_key: str | None
    purpose: str
    prompt_variant: str
    status: str
    cause: str
    finish_reason: str
    latency_ms: int | None
    sent_bytes: int | None
    estimate_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    level_reason: str


@dataclass(slots=True)
class _Group:
    calls: int = 0
    outcomes: Counter[CallOutcome] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    latencies: list[int] = field(default_factory=list)
    sized: Counter[str] = field(default_factory=Counter)
    sized_clean: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    cache_told: int = 0
    cache_read: int = 0
    cache_of: int = 0
    suspected_cuts: int = 0

    def add(self, call: _Facts) -> None:
        self.calls += 1
        outcome = outcome_of(cause=call.cause, status=call.status)
        self.outcomes[outcome] += 1
        self.finish_reasons[call.finish_reason] += 1
        self.suspected_cuts += call.level_reason == HealthReason.SUSPECTED_CUT
        if call.latency_ms is not None:
            self.latencies.append(call.latency_ms)
        if call.sent_bytes is not None:
            band = _band(call.sent_bytes)
            self.sized[band] += 1
            self.sized_clean[band] += outcome is CallOutcome.CLEAN
        if call.level_reason == HealthReason.SUSPECTED_CUT:
            return  # what the provider counted is not trusted
        if call.estimate_tokens is not None and call.prompt_tokens:
            self.ratios.append(call.estimate_tokens / call.prompt_tokens)
        if call.cached_tokens is not None and call.prompt_tokens:
            self.cache_told += 1
            self.cache_read += call.cached_tokens
            self.cache_of += call.prompt_tokens

    def row(
        self,
        key: str,
        purpose: str,
        variant: str,
        *,
        spellings: tuple[str, ...],
        is_sample: bool,
    ) -> ModelRow:
        self.latencies.sort()
        return ModelRow(
            model=spellings[0],
            model_key=key,
            spellings=spellings,
            purpose=purpose,
            prompt_variant=variant or None,
            calls=self.calls,
            clean=self._rate(CallOutcome.CLEAN),
            truncated=self._rate(CallOutcome.TRUNCATED),
            empty=self._rate(CallOutcome.EMPTY),
            undecodable=self._rate(CallOutcome.UNDECODABLE),
            failed=self._rate(CallOutcome.FAILED),
            latency_p50_ms=_percentile(self.latencies, 50),
            latency_p95_ms=_percentile(self.latencies, 95),
            timed=len(self.latencies),
            finish_reasons=_ranked(self.finish_reasons),
            bands=tuple(
                SizeBand(label=label, clean=rate(self.sized_clean[label], self.sized[label]))
                for label in (*(label for label, _ in _BANDS), _LARGEST_BAND)
            ),
            unsized=self.calls - sum(self.sized.values()),
            estimate_ratio=median(self.ratios) if self.ratios else None,
            estimated=len(self.ratios),
            cached_share=self.cache_read / self.cache_of if self.cache_told else None,
            cache_told=self.cache_told,
            suspected_cuts=self.suspected_cuts,
            is_sample=is_sample,
        )

    def _rate(self, outcome: CallOutcome) -> Rate:
        return rate(self.outcomes[outcome], self.calls)


def rate(count: int, n: int) -> Rate:
    """`count` of n with the 95 % interval; share and interval are None where n is 0."""
    low, high = wilson(count, n) or (None, None)
    return Rate(count=count, n=n, share=count / n if n else None, low=low, high=high)


def _band(size: int) -> str:
    return next((label for label, end in _BANDS if size < end), _LARGEST_BAND)


def _percentile(ordered: Sequence[int], percent: int) -> int | None:
    """The nearest-rank percentile: a value that was measured."""
    if not ordered:
        return None
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _ranked(counts: Counter[str]) -> tuple[tuple[str | None, int], ...]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((word or None, count) for word, count in ranked)


_SHOWN: Final = (
    "name",
    "model",
    "purpose",
    "prompt_variant",
    "correlation_id",
    "started_at",
    "finish_reason",
    "completion_tokens",
    "raw_content_bytes",
    "latency_ms",
    "status",
    "cause",
)


def _by_group(calls: Iterable[Call]) -> list[Call]:
    groups: dict[str, list[Call]] = {}
    for call in calls:
        # A call that names no group is one of its own; no correlation id holds a NUL.
        key = call.correlation_id or f"\0{call.pk}"
        groups.setdefault(key, []).append(call)
    for group in groups.values():
        group.sort(key=lambda call: (call.started_at, call.pk))
    newest_first = sorted(
        groups.values(), key=lambda group: (group[-1].started_at, group[-1].pk), reverse=True
    )
    return [call for group in newest_first for call in group]


def _recent(call: Call) -> RecentCall:
    took = call.latency_ms
    return RecentCall(
        id=call.name,
        model=call.model,
        purpose=call.purpose,
        prompt_variant=call.prompt_variant or None,
        correlation_id=call.correlation_id or None,
        started_at=call.started_at,
        ended_at=None if took is None else call.started_at + timedelta(milliseconds=took),
        finish_reason=call.finish_reason or None,
        completion_tokens=call.completion_tokens,
        raw_content_len=call.raw_content_bytes,
        latency_ms=took,
        outcome=outcome_of(cause=call.cause, status=call.status),
        cause=call.cause or None,
    )
