"""How models do: what came of their calls, by purpose and prompt variant, and the newest of them.

Source: the table of helmdeck ADR 053, whose six rows are read as what they are: filter passes and
plans, told apart by their purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from django.db.models import QuerySet

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.prices import cost_usd
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.core.rollups import buckets as counted
from helmdash.core.rollups.facts import BAND_LABELS, OTHER, PURPOSES, CallFacts
from helmdash.core.rollups.figures import (
    CALLS,
    CUTS,
    SHARE_UNIT,
    Counts,
    Distribution,
    Heads,
    Key,
    Marginal,
    Tokens,
    add,
    estimate_ratio,
    fullness,
    heads,
    heads_of_all,
    key_of_model,
    tally,
    under,
)
from helmdash.core.text.wilson import wilson
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.distinct_values import NamedModel, by_bare_name, meant_keys, model_keys
from helmdash.queries.lists.by_value import first_rows
from helmdash.records.call_names import calls_at, find_correlated
from helmdash.records.models import Call
from helmdash.records.rollups.call_facts import facts_of

__all__ = [
    "OTHER",
    "PURPOSES",
    "ModelRow",
    "ModelRows",
    "RecentCall",
    "model_rows",
    "recent_calls",
]

# A range of so few is told from its calls, to the millisecond: they are read in some ten of them.
FEW_CALLS: Final = 2_000
_TOLD: Final = (
    Distribution.LATENCY_MS,
    Distribution.TTFT_MS,
    Distribution.ESTIMATE_RATIO,
    Distribution.FULLNESS,
)
# A group is a filter pass and its plan; a client may also give all its calls one correlation id.
_OF_GROUPS: Final = 20
# Until calls of before there were rollups are counted: the newest of the range.
MOST_CALLS: Final = 20_000
# Far more than a project talks to, and a page that a browser still draws.
MOST_MODELS: Final = 200
# Of a model, as plans have two prompt variants; whoever reports calls may make up others.
MOST_OF_MODEL: Final = 20


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
class ModelRow(NamedModel):
    """Calls of one model for one purpose with one prompt variant. Every rate is of `calls`.

    model: as it was spelt last. spellings: all of the purposes asked for, newest first.
    bands: only calls whose size is known, `unsized` are the others. finish_reasons: most frequent
    first, None for calls that reported none. estimate_ratio: the median of our estimate by the
    tokens the provider counted, over `estimated` calls. cached_share: of all prompt tokens those
    that the provider read from its cache, over the `cache_told` calls that told. Neither is taken
    from a call whose count is not trusted; suspected_cuts tells how many of all `calls` these are.
    ttft: from the request to the first token, of the `streamed` calls that told it.
    fullness: prompt tokens by the limit that each call was judged by (1 is full, and more than 1 is
    possible), of the `measured` calls whose limit is known and whose count is trusted.
    prompt_tokens, completion_tokens: of all calls that reported them, which are `priced` and
    `answered`; None where none did. cost_usd: of the tokens that the `priced` calls reported, by
    the prices in today's budget of the model; None where it has none, or no call reported any.
    is_exact: latencies, fullness and estimate_ratio are of single calls; else to within 1 %.
    is_rounded: the range was told in whole quarter-hours. is_behind: the newest calls are not added
    up yet. is_sample: rollups are not made yet, and the range holds more calls than were read
    (MOST_CALLS, the newest).
    """

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
    latency_p99_ms: int | None
    timed: int
    ttft_p50_ms: int | None
    ttft_p95_ms: int | None
    streamed: int
    finish_reasons: tuple[tuple[str | None, int], ...]
    bands: tuple[SizeBand, ...]
    unsized: int
    estimate_ratio: float | None
    estimated: int
    cached_share: float | None
    cache_told: int
    fullness_p50: float | None
    fullness_p95: float | None
    measured: int
    prompt_tokens: int | None
    completion_tokens: int | None
    answered: int
    cost_usd: float | None
    priced: int
    suspected_cuts: int
    is_exact: bool
    is_rounded: bool
    is_behind: bool
    is_sample: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRows:
    """Rows of some models, of so many that have any. left_out: rows of these models that are not
    among them."""

    rows: tuple[ModelRow, ...]
    models: int
    left_out: int


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
    purpose: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> ModelRows:
    """A row for each model, purpose and variant (but for routes): the models with most calls first,
    and of each its rows with most.

    Three queries and one for each edge of the range; one more where the calls are few (FEW_CALLS),
    two more with a model. model: only its rows; None: every model's. purpose: only rows of one of
    PURPOSES, or OTHER; None: of every one. since, until: when calls started, from the one to before
    the other; None: no such bound.

    Of MOST_MODELS models, and MOST_OF_MODEL rows of each: whoever reports calls chooses their
    models, and a row costs half a millisecond.
    """
    keys = None if model is None else model_keys(project_id=project_id, model=model)
    table = _figures(project_id, keys, purpose, since, until)
    by_model: dict[str, list[Key]] = {}
    for key in sorted(table.totals, key=lambda key: (-table.totals[key][CALLS], key)):
        by_model.setdefault(key[0], []).append(key)
    calls = {model: sum(table.totals[key][CALLS] for key in of) for model, of in by_model.items()}
    most = sorted(by_model, key=lambda model: (-calls[model], model))[:MOST_MODELS]
    prices = budgets.table(project_id=project_id)
    known = by_bare_name(by_model)
    shared = {
        model
        for model in most
        if meant_keys(table.spellings[model][0], rules=prices, known=known) != (model,)
    }
    shown = [key for model in most for key in by_model[model][:MOST_OF_MODEL]]
    return ModelRows(
        rows=tuple(_row(key, table, prices, is_shared=key[0] in shared) for key in shown),
        models=len(by_model),
        left_out=sum(len(by_model[model]) for model in most) - len(shown),
    )


def _figures(
    project_id: int,
    keys: Sequence[str] | None,
    purpose: str | None,
    since: datetime | None,
    until: datetime | None,
) -> _Table:
    calls = Call.objects.filter(project_id=project_id)
    if keys is not None:
        calls = calls.filter(model_key__in=keys)
    if since is not None:
        calls = calls.filter(started_at__gte=since)
    if until is not None:
        calls = calls.filter(started_at__lt=until)
    found = rollups.figures(
        project_id=project_id,
        marginal=Marginal.MODEL,
        since=since,
        until=until,
        distributions=_TOLD,
        words=keys,
        is_summed=True,
    )
    if found is None:
        return _read(calls, MOST_CALLS, purpose)
    is_told = found.has_calls and not found.is_behind and found.calls <= FEW_CALLS
    return _read(calls, FEW_CALLS, purpose) if is_told else _added_up(found, purpose)


def recent_calls(
    *, project_id: int, model: str, purpose: str | None = None, limit: int = 20
) -> tuple[RecentCall, ...]:
    """The newest calls of a model, newest group first, in a group the earliest call first.

    The calls of a group (one correlation id: a filter pass and its plan) stand next to each other;
    with purpose None also those that another model answered, of the newest hundreds of these
    groups. At most five queries, one more for each key of the model where it has several.
    """
    rows = Call.objects.filter(project_id=project_id)
    keys = model_keys(project_id=project_id, model=model)
    mine = rows.filter(model_key__in=keys)
    if purpose is not None:
        mine = mine.filter(purpose=purpose)
    found = first_rows(mine.order_by("-started_at", "-id").only(*_SHOWN), "started_at", limit)
    groups = {call.correlation_id for call in found if call.correlation_id}
    others: list[Call] = []
    if groups and purpose is None:
        told = calls_at(project_id, find_correlated(project_id, groups, limit * _OF_GROUPS))
        told = told.exclude(model_key__in=keys)
        others = list(told.order_by("-started_at").only(*_SHOWN)[:limit])
    return tuple(map(_recent, _by_group([*found, *others])))


@dataclass(slots=True, kw_only=True)
class _Table:
    """Figures by model, purpose and variant, as they are and by the heads of their words; spellings
    by the model's key, newest first.

    latencies, ttfts, ratios, shares: of single calls; None where only their buckets are known.
    shares: fullness, in SHARE_UNIT.
    """

    totals: dict[Key, Counts] = field(default_factory=dict)
    by_head: dict[Key, Heads] = field(default_factory=dict)
    spellings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    latencies: dict[Key, list[int]] | None = None
    ttfts: dict[Key, list[int]] | None = None
    ratios: dict[Key, list[float]] | None = None
    shares: dict[Key, list[int]] | None = None
    is_rounded: bool = False
    is_behind: bool = False
    is_sample: bool = False


def _added_up(found: rollups.RangeFigures, purpose: str | None) -> _Table:
    """From rollups, of one purpose (None: of all). Of two spellings that one piece of time has, the
    more frequent is the newer."""
    every = {
        key: heads_of_all(counts for _, counts in pieces)
        for key, pieces in found.pieces.items()
        if purpose in (None, key[1])
    }
    by_head = {key: told for key, told in every.items() if CALLS in told}
    # Of the words that are a head alone: of the others there are some thousand.
    totals = {
        key: {head: rests[""] for head, rests in told.items() if "" in rests}
        for key, told in by_head.items()
    }
    spelt: dict[str, set[str]] = {}
    for key, told in by_head.items():
        spelt.setdefault(key[0], set()).update(told.get("s", ()))
    seen: dict[str, dict[str, tuple[int, int]]] = {
        model: dict.fromkeys(words, (0, 0)) for model, words in spelt.items()
    }
    for key in totals:
        # Most models are spelt in one way; the others are looked for in each piece of time.
        pieces = found.pieces[key] if len(spelt[key[0]]) > 1 else []
        newest = seen[key[0]]
        for quarter, counts in pieces:
            for spelling, calls in under(counts, "s").items():
                newest[spelling] = max(newest.get(spelling, (quarter, calls)), (quarter, calls))
    return _Table(
        totals=totals,
        by_head=by_head,
        spellings={
            model: tuple(sorted(sorted(each), key=lambda word: each[word], reverse=True))
            for model, each in seen.items()
        },
        is_rounded=found.is_rounded,
        is_behind=found.is_behind,
    )


def _read(calls: QuerySet[Call], most: int, purpose: str | None) -> _Table:
    """From the newest calls themselves, as many as are wanted at most: of these those of one
    purpose (None: of all)."""
    found = facts_of(calls.order_by("-started_at", "-id")[: most + 1])
    table = _Table(latencies={}, ttfts={}, ratios={}, shares={}, is_sample=len(found) > most)
    wanted = [each for each in found[:most] if purpose in (None, key_of_model(each)[1])]
    spelt: dict[str, dict[str, None]] = {}
    for facts in wanted:
        _keep_single(table, facts)
        spelt.setdefault(facts.model_key or facts.model, {})[facts.model] = None
    told = tally(((None, facts) for facts in wanted), only=Marginal.MODEL)
    for (_, _, key), counts in told.items():
        add(table.totals.setdefault(key, {}), counts)
    table.by_head = {key: heads(total) for key, total in table.totals.items()}
    table.spellings = {model: tuple(words) for model, words in spelt.items()}
    return table


def _keep_single(table: _Table, facts: CallFacts) -> None:
    key = key_of_model(facts)
    if table.latencies is not None and facts.latency_ms is not None:
        table.latencies.setdefault(key, []).append(facts.latency_ms)
    if table.ttfts is not None and facts.ttft_ms is not None:
        table.ttfts.setdefault(key, []).append(facts.ttft_ms)
    share = fullness(facts)
    if table.shares is not None and share is not None:
        table.shares.setdefault(key, []).append(share)
    ratio = estimate_ratio(facts)
    if table.ratios is not None and ratio is not None:
        table.ratios.setdefault(key, []).append(ratio)


def _row(key: Key, table: _Table, prices: BudgetTable, *, is_shared: bool) -> ModelRow:
    model_key, purpose, variant = key
    counts = table.totals[key]
    calls = counts[CALLS]
    told_by = table.by_head[key]
    outcomes = told_by.get("o", {})
    sized, sized_clean = told_by.get("b", {}), told_by.get("ok", {})
    latencies = told_by.get(Distribution.LATENCY_MS, {})
    ttfts = told_by.get(Distribution.TTFT_MS, {})
    ratios = told_by.get(Distribution.ESTIMATE_RATIO, {})
    waits = _spans(key, latencies, table.latencies, (50, 95, 99))
    first_waits = _spans(key, ttfts, table.ttfts, (50, 95))
    full = told_by.get(Distribution.FULLNESS, {})
    shares = _spans(key, full, table.shares, (50, 95))
    told, priced = counts.get("hit#", 0), counts.get(f"{Tokens.PROMPT}#", 0)
    answered = counts.get(f"{Tokens.COMPLETION}#", 0)
    model = table.spellings[model_key][0]
    return ModelRow(
        model=model,
        model_key=model_key,
        is_shared=is_shared,
        spellings=table.spellings[model_key],
        purpose=purpose,
        prompt_variant=variant or None,
        calls=calls,
        clean=rate(outcomes.get(CallOutcome.CLEAN, 0), calls),
        truncated=rate(outcomes.get(CallOutcome.TRUNCATED, 0), calls),
        empty=rate(outcomes.get(CallOutcome.EMPTY, 0), calls),
        undecodable=rate(outcomes.get(CallOutcome.UNDECODABLE, 0), calls),
        failed=rate(outcomes.get(CallOutcome.FAILED, 0), calls),
        latency_p50_ms=waits[0],
        latency_p95_ms=waits[1],
        latency_p99_ms=waits[2],
        timed=sum(latencies.values()),
        ttft_p50_ms=first_waits[0],
        ttft_p95_ms=first_waits[1],
        streamed=sum(ttfts.values()),
        finish_reasons=_ranked(told_by.get("f", {})),
        bands=tuple(
            SizeBand(label=label, clean=rate(sized_clean.get(label, 0), sized.get(label, 0)))
            for label in BAND_LABELS
        ),
        unsized=calls - sum(sized.values()),
        estimate_ratio=_median_ratio(key, ratios, table),
        estimated=sum(ratios.values()),
        cached_share=counts.get("hit", 0) / counts["hit/"] if told else None,
        cache_told=told,
        fullness_p50=_of_one(shares[0]),
        fullness_p95=_of_one(shares[1]),
        measured=sum(full.values()),
        prompt_tokens=counts.get(Tokens.PROMPT, 0) if priced else None,
        completion_tokens=counts.get(Tokens.COMPLETION, 0) if answered else None,
        answered=answered,
        cost_usd=cost_usd(
            prices.lookup(model, key=model_key),
            prompt=counts.get(Tokens.PROMPT, 0),
            cached=counts.get(Tokens.CACHED, 0),
            written=counts.get(Tokens.CACHE_WRITE, 0),
            completion=counts.get(Tokens.COMPLETION, 0),
        )
        if priced
        else None,
        priced=priced,
        suspected_cuts=counts.get(CUTS, 0),
        is_exact=table.latencies is not None,
        is_rounded=table.is_rounded,
        is_behind=table.is_behind,
        is_sample=table.is_sample,
    )


def _spans(
    key: Key,
    buckets: Mapping[int, int],
    singles: Mapping[Key, list[int]] | None,
    percents: Sequence[int],
) -> tuple[int | None, ...]:
    """The nearest-rank percentiles: values that were measured, or the middles of their buckets."""
    if singles is None:
        return counted.percentiles(buckets, percents)
    ordered = sorted(singles.get(key, ()))
    return tuple(
        ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None for percent in percents
    )


def _of_one(share: int | None) -> float | None:
    return None if share is None else share / SHARE_UNIT


def _median_ratio(key: Key, buckets: Mapping[int, int], table: _Table) -> float | None:
    if table.ratios is None:
        middle = counted.median(buckets)
        return None if middle is None else middle / SHARE_UNIT
    return median(table.ratios[key]) if key in table.ratios else None


def rate(count: int, n: int) -> Rate:
    """`count` of n with the 95 % interval; share and interval are None where n is 0."""
    low, high = wilson(count, n) or (None, None)
    return Rate(count=count, n=n, share=count / n if n else None, low=low, high=high)


def _ranked(counts: Mapping[str, int]) -> tuple[tuple[str | None, int], ...]:
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
