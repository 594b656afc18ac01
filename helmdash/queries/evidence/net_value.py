"""Does shortening pay: each Trim, clear and compaction with its net value and its calls, and sums.

The method is core.evidence.net_value. Of a range the newest MOST_READ of Trims and of fresh starts
are read, whatever the range has: the sums say so where there are more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.health import HealthReason
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.core.evidence import net_value as core
from helmdash.core.evidence.net_value import (
    METHOD,
    NEAR_CALLS,
    Prices,
    Prompt,
    Shortening,
    may_have_expired,
)
from helmdash.core.evidence.suggested import Counted
from helmdash.queries.budgets import budgets
from helmdash.queries.evidence.near_calls import (
    NearCall,
    Span,
    calls_named,
    calls_within,
    rows_of,
    summaries,
)
from helmdash.queries.evidence.shortened import (
    IS_PART,
    CallBeside,
    Found,
    NetPart,
    NetReport,
    Shortened,
    Side,
    sums,
    sums_by,
)
from helmdash.records.models import Call, Conversation, Fit, Round

# Each with some ten calls beside it: some tens of milliseconds.
MOST_READ: Final = 200
# Beside a list of something else, where the sums are what is wanted.
MOST_BESIDE: Final = 100
# A long session has some dozens of fresh starts; the page of a conversation shows so many.
MOST_OF_CONVERSATION: Final = 50
_MOST_MODELS: Final = 20


class NetSide(StrEnum):
    """Which calls beside a shortened prompt."""

    BEFORE = "before"
    AFTER = "after"


_Rows = TypeVar("_Rows", QuerySet[Round], QuerySet[Call])


def net_report(
    *,
    project_id: int,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str | None = None,
    kind: Shortening | None = None,
    part: NetPart | None = None,
    limit: int | None = None,
    most: int = MOST_READ,
) -> NetReport:
    """The newest `most` Trims and as many fresh starts of a range (None: without that end), the
    model in any spelling; part: only those of them. Seventeen queries at most.

    limit: so many of them are listed (None: all); all are added up.
    """
    read = _read(project_id, since, until, kind, most)
    found = _wanted(project_id, read.found, model, part)
    return NetReport(
        method=METHOD,
        items=tuple(each.told for each in found[:limit]),
        all=sums("", found),
        kinds=sums_by(found, lambda each: each.kind.value),
        models=sums_by(found, lambda each: each.model_key)[:_MOST_MODELS],
        is_sample=read.is_sample,
        first_at=min((each.told.at for each in read.found), default=None),
    )


def calls_beside(
    *,
    project_id: int,
    side: NetSide,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str | None = None,
    kind: Shortening | None = None,
    part: NetPart | None = None,
    only_clean: bool = False,
    limit: int,
    most: int = MOST_READ,
) -> tuple[tuple[CallBeside, ...], int]:
    """The calls that the sums of such a report count before or after, newest first, `limit` of them
    at most, and how many there are. Nineteen queries at most."""
    found = _wanted(project_id, _read(project_id, since, until, kind, most).found, model, part)
    beside = (each.before if side is NetSide.BEFORE else each.after for each in found)
    return _listed(project_id, beside, only_clean, limit)


def calls_beside_one(
    *,
    project_id: int,
    side: NetSide,
    call_id: str = "",
    conversation: str = "",
    round_number: int = 0,
    only_clean: bool = False,
) -> tuple[tuple[CallBeside, ...], int]:
    """The same of one: of the Trim of a call, or of the fresh start that opened a round. Nine
    queries at most."""
    if call_id:
        found = list(_of_trims(project_id, calls_named(project_id, [call_id])))
    else:
        rows = _opened(project_id).filter(conversation__name=conversation, number=round_number)
        found = _of_rounds(project_id, _rounds(rows, 1))
    beside = (each.own_before if side is NetSide.BEFORE else each.after for each in found)
    return _listed(project_id, beside, only_clean, NEAR_CALLS)


def _listed(
    project_id: int, beside: Iterable[Mapping[str, Side]], only_clean: bool, limit: int
) -> tuple[tuple[CallBeside, ...], int]:
    calls = {name: side for each in beside for name, side in each.items()}
    wanted = [name for name, side in calls.items() if side.is_clean or not only_clean]
    newest = sorted(wanted, key=lambda name: calls[name].at, reverse=True)[:limit]
    rows = reversed(calls_named(project_id, newest))
    return tuple(told for each in rows if (told := _call(each)) is not None), len(wanted)


class _Read(NamedTuple):
    """The newest of a range; is_sample: it has more."""

    found: list[Found]
    is_sample: bool


def _read(
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    kind: Shortening | None,
    most: int,
) -> _Read:
    found: list[Found] = []
    is_sample = False
    if kind is None or kind is Shortening.TRIM:
        calls = rows_of(_in_range(_trimmed(project_id), since, until)[: most + 1])
        is_sample = len(calls) > most
        found += _of_trims(project_id, calls[:most])
    if kind is not Shortening.TRIM:
        wanted = _in_range(_opened(project_id), since, until)
        rounds = _rounds(wanted if kind is None else wanted.filter(opened_by=kind.value), most)
        is_sample |= len(rounds) > most
        found += _of_rounds(project_id, rounds[:most])
    return _Read(found, is_sample)


def _wanted(
    project_id: int, found: Sequence[Found], model: str | None, part: NetPart | None
) -> list[Found]:
    """Those of a model and a part, newest first."""
    key = model
    # A key as sums name it is itself, though as a spelling it may mean another one.
    if model is not None and all(each.told.model_key != model for each in found):
        key = budgets.table(project_id=project_id).key_of(model)
    wanted = [
        each
        for each in found
        if (key is None or each.told.model_key == key)
        and (part is None or IS_PART[part](each.told))
    ]
    return sorted(wanted, key=lambda each: each.told.at, reverse=True)


def of_calls(*, project_id: int, call_ids: Sequence[str]) -> tuple[Shortened, ...]:
    """The Trims of these calls, oldest first; a call that nothing was cut for has none. Five
    queries at most."""
    return tuple(each.told for each in _of_trims(project_id, calls_named(project_id, call_ids)))


def of_conversation(*, project_id: int, conversation: str) -> tuple[Shortened, ...]:
    """The newest fresh starts of a conversation, newest first. Five queries at most."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation).first()
    if row is None or row.round_number == 1:
        return ()
    rounds = _rounds(_opened(project_id).filter(conversation=row), MOST_OF_CONVERSATION)
    shown = rounds[:MOST_OF_CONVERSATION]
    return tuple(each.told for each in _of_rounds(project_id, shown))


def fresh_starts(*, project_id: int, since: datetime, until: datetime) -> Mapping[Shortening, int]:
    """How many fresh starts of each kind a range has. One query."""
    rows = _in_range(_opened(project_id), since, until).order_by()
    counted = rows.values_list("opened_by").annotate(count=Count("id"))
    return {Shortening(kind): count for kind, count in counted}


class _Opened(NamedTuple):
    """The columns of a round and of its conversation, in the order they are asked for."""

    conversation_id: int
    conversation__name: str
    conversation__model: str
    conversation__model_key: str | None
    conversation__generation: int
    number: int
    opened_by: str
    first_generation: int
    latest_generation: int
    started_at: datetime
    ended_at: datetime | None


def _opened(project_id: int) -> QuerySet[Round]:
    # Said as the index says it.
    rows = Round.objects.filter(~Q(opened_by=""), project_id=project_id)
    return rows.order_by("-started_at", "-id")


def _trimmed(project_id: int) -> QuerySet[Call]:
    """The calls that something was cut for, by their own figures or by those of their fit."""
    fit = Fit.objects.filter(
        project_id=project_id, name=OuterRef("fit_name"), after_bytes__lt=F("before_bytes")
    )
    untold = Q(trim_before_bytes__isnull=True) | Q(trim_after_bytes__isnull=True)
    rows = Call.objects.filter(
        # Said as the index says it.
        ~Q(fit_name="") | Q(trim_before_bytes__isnull=False),
        Q(trim_after_bytes__lt=F("trim_before_bytes")) | untold & Exists(fit),
        project_id=project_id,
    )
    return rows.order_by("-started_at", "-id")


def _in_range(rows: _Rows, since: datetime | None, until: datetime | None) -> _Rows:
    if since is not None:
        rows = rows.filter(started_at__gte=since)
    return rows if until is None else rows.filter(started_at__lt=until)


def _rounds(rows: QuerySet[Round], most: int) -> list[_Opened]:
    """So many, and one more where there are more."""
    return [_Opened(*row) for row in rows.values_list(*_Opened._fields)[: most + 1]]


def _of_rounds(project_id: int, rounds: Sequence[_Opened]) -> list[Found]:
    near = calls_within(
        project_id,
        (
            Span(
                each.conversation_id,
                each.first_generation - NEAR_CALLS,
                each.first_generation + NEAR_CALLS - 1,
            )
            for each in rounds
        ),
    )
    beside = {each: _beside(each, near.get(each.conversation_id, {})) for each in rounds}
    told = _summaries(project_id, beside)
    rules = budgets.table(project_id=project_id)
    return [
        _found(_fresh_start(rules, each, *beside[each], told), *map(_sides, beside[each]))
        for each in rounds
    ]


def _found(told: Shortened, before: Mapping[str, Side], after: Mapping[str, Side]) -> Found:
    return Found(told, before, after, before)


def _beside(
    opened: _Opened, calls: Mapping[int, NearCall]
) -> tuple[list[NearCall], list[NearCall]]:
    """The main calls before a fresh start, the nearest first, and those after it. A late call of
    the round before may have a number of the new one."""
    first = opened.first_generation
    before = [calls[at] for at in range(first - 1, first - 1 - NEAR_CALLS, -1) if at in calls]
    after = [calls[at] for at in range(first, first + NEAR_CALLS) if at in calls]
    return (
        [each for each in before if each.round_number == opened.number - 1],
        [each for each in after if each.round_number == opened.number],
    )


def _summaries(
    project_id: int, beside: Mapping[_Opened, tuple[list[NearCall], list[NearCall]]]
) -> Mapping[int, Sequence[NearCall]]:
    compacted = [
        (opened.conversation_id, before[0].started_at, after[0].started_at)
        for opened, (before, after) in beside.items()
        if opened.opened_by == Shortening.COMPACTION and before and after
    ]
    if not compacted:
        return {}
    return summaries(
        project_id,
        [each for each, _, _ in compacted],
        min(at for _, at, _ in compacted),
        max(at for _, _, at in compacted),
    )


def _fresh_start(
    rules: BudgetTable,
    opened: _Opened,
    before: Sequence[NearCall],
    after: Sequence[NearCall],
    told: Mapping[int, Sequence[NearCall]],
) -> Shortened:
    earlier = next(filter(_is_told, before), before[0] if before else None)
    later = next(filter(_is_told, after), after[0] if after else None)
    making = None
    if opened.opened_by == Shortening.COMPACTION and before and after:
        making = _between(
            told.get(opened.conversation_id, ()), before[0].started_at, after[0].started_at
        )
    model = later or earlier
    spelling = model.model if model else opened.conversation__model
    key = (model.model_key if model else opened.conversation__model_key) or spelling
    window = _window(rules, earlier)
    share = core.share_of_window(_prompt_of(earlier).tokens if earlier else None, window)
    return Shortened(
        kind=Shortening(opened.opened_by),
        at=opened.started_at,
        model=spelling,
        model_key=key,
        conversation=opened.conversation__name,
        round_number=opened.number,
        fit_id="",
        saved_bytes=None,
        before=_call(earlier),
        after=_call(later),
        making=_call(making),
        value=core.of_fresh_start(
            before=_cached_for(earlier, later),
            after=_prompt_of(later) if later else None,
            making=_prompt_of(making) if making else None,
            prices=_prices(rules, spelling, key),
        ),
        window_tokens=window,
        share_of_window=share,
        is_too_early=core.is_too_early(share),
        is_too_late=core.is_too_late(
            [each.cause for each in before], was_cut=any(map(_cut, before))
        ),
        may_have_expired=_may_have_expired(earlier, later),
        clean_before=_counted(before),
        clean_after=_counted(after),
        next_after_calls=opened.latest_generation - opened.first_generation + 1
        if opened.ended_at is not None
        else None,
    )


def _of_trims(project_id: int, calls: Sequence[NearCall]) -> Iterator[Found]:
    """Those of the calls that something was cut for."""
    near = calls_within(
        project_id,
        (
            Span(
                call.conversation_id,
                call.generation - NEAR_CALLS,
                call.generation + NEAR_CALLS - 1,
            )
            for call in calls
            if call.conversation_id is not None and call.generation is not None
        ),
    )
    beside = (call for talk in near.values() for call in talk.values())
    names = {
        each.fit_name
        for each in (*calls, *beside)
        if each.fit_name and (each.trim_before_bytes is None or each.trim_after_bytes is None)
    }
    fits = Fit.objects.filter(project_id=project_id, name__in=sorted(names))
    bytes_of = (
        {
            name: (before, after)
            for name, before, after in fits.values_list("name", "before_bytes", "after_bytes")
        }
        if names
        else {}
    )
    ids = {call.conversation_id for call in calls if call.conversation_id is not None}
    rows = Conversation.objects.filter(project_id=project_id, id__in=ids)
    conversations = dict(rows.values_list("id", "name")) if ids else {}
    rules = budgets.table(project_id=project_id)
    for call in calls:
        if _cut_bytes(call, bytes_of) > 0:
            of_conversation = near.get(call.conversation_id or 0, {})
            name = conversations.get(call.conversation_id or 0, "")
            yield _trim(rules, call, bytes_of, of_conversation, name)


def _trim(
    rules: BudgetTable,
    call: NearCall,
    fits: Mapping[str, tuple[int, int]],
    near: Mapping[int, NearCall],
    conversation: str,
) -> Found:
    gone = _cut_bytes(call, fits)
    at = call.generation or 0
    before = [near[each] for each in range(at - 1, at - 1 - NEAR_CALLS, -1) if each in near]
    after = [near[each] for each in range(at, at + NEAR_CALLS) if each in near] or [call]
    # Across a fresh start two things changed at once, and nobody can tell them apart.
    same = [each for each in before if each.round_number == call.round_number]
    earlier = next(filter(_is_told, same), None)
    key = call.model_key or call.model
    told = Shortened(
        kind=Shortening.TRIM,
        at=call.started_at,
        model=call.model,
        model_key=key,
        conversation=conversation,
        round_number=None,
        fit_id=call.fit_name,
        saved_bytes=gone,
        before=_call(earlier),
        after=_call(call),
        making=None,
        value=core.of_trim(
            before=_cached_for(earlier, call) if earlier else None,
            after=_prompt_of(call),
            saved_bytes=gone,
            sent_bytes=call.sent_bytes,
            prices=_prices(rules, call.model, key),
        ),
        window_tokens=_window(rules, call),
        share_of_window=None,
        is_too_early=None,
        is_too_late=None,
        may_have_expired=_may_have_expired(earlier, call),
        clean_before=_counted(before),
        clean_after=_counted(after),
        next_after_calls=None,
    )
    # One that was itself shortened says nothing of how calls went before.
    whole = [each for each in before if _cut_bytes(each, fits) <= 0]
    return Found(told, _sides(whole), _sides(after), _sides(before))


def _cut_bytes(call: NearCall, fits: Mapping[str, tuple[int, int]]) -> int:
    """What its Trim cut; 0: nothing, or nobody says."""
    before, after = call.trim_before_bytes, call.trim_after_bytes
    if before is None or after is None:
        before, after = fits.get(call.fit_name, (None, None))
    return 0 if before is None or after is None else before - after


def _cut(call: NearCall) -> bool:
    return call.level_reason == HealthReason.SUSPECTED_CUT.value


def _is_told(call: NearCall) -> bool:
    return call.prompt_tokens is not None and not _cut(call)


def _prompt_of(call: NearCall) -> Prompt:
    """What is believed of its counts: what was probably cut tells nothing of what was sent."""
    return Prompt(
        tokens=None if _cut(call) else call.prompt_tokens,
        cached=call.cached_tokens,
        written=call.cache_write_tokens,
        completion=call.completion_tokens,
    )


def _cached_for(earlier: NearCall | None, later: NearCall | None) -> Prompt:
    """The prompt before, without what a cache held of it where another model came after it: each
    model has its own."""
    if earlier is None:
        return Prompt(tokens=None, cached=None, written=None)
    told = _prompt_of(earlier)
    if later is not None and (earlier.model_key or earlier.model) != (
        later.model_key or later.model
    ):
        return Prompt(tokens=told.tokens, cached=None, written=None)
    return told


def _prices(rules: BudgetTable, model: str, key: str) -> Prices:
    budget = rules.lookup(model, key=key)
    return Prices(
        plain=budget.input_cost_usd_per_mtok,
        # 0 is "unknown" of this column (records.models.budgets).
        read=budget.cached_input_cost_usd_per_mtok or None,
        written=budget.cache_write_cost_usd_per_mtok,
        completion=budget.output_cost_usd_per_mtok,
    )


def _window(rules: BudgetTable, call: NearCall | None) -> int | None:
    """What is known of the window today; else what the call was judged by."""
    if call is None:
        return None
    budget = rules.lookup(call.model, key=call.model_key, client_window=call.client_window)
    return budget.limit_tokens or call.limit_tokens


def _between(calls: Iterable[NearCall], first: datetime, latest: datetime) -> NearCall | None:
    """The newest of them from one moment to another."""
    found = [each for each in calls if first <= each.started_at <= latest]
    return found[-1] if found else None


def _may_have_expired(earlier: NearCall | None, later: NearCall | None) -> bool | None:
    if earlier is None or later is None:
        return None
    return may_have_expired(earlier.started_at, later.started_at)


def _outcome(call: NearCall) -> CallOutcome:
    return outcome_of(cause=call.cause, status=call.status)


def _sides(calls: Iterable[NearCall]) -> Mapping[str, Side]:
    return {each.name: Side(each.started_at, _outcome(each) is CallOutcome.CLEAN) for each in calls}


def _counted(calls: Sequence[NearCall]) -> Counted:
    return Counted(calls=len(calls), clean=sum(each.is_clean for each in _sides(calls).values()))


def _call(call: NearCall | None) -> CallBeside | None:
    if call is None:
        return None
    return CallBeside(
        id=call.name,
        at=call.started_at,
        prompt_tokens=call.prompt_tokens,
        cached_tokens=call.cached_tokens,
        cache_write_tokens=call.cache_write_tokens,
        completion_tokens=call.completion_tokens,
        outcome=_outcome(call),
    )
