"""Calls that turn out to be the outside of others: taken back, as if they had never come.

Of several instrumentations that tell of one request the innermost counts (core.telemetry.nesting).
Where its span comes after the one around it, in another export or to another process, that one is
a stored call already. Within WITHDRAWN_WITHIN it goes: its row and names, what it added to rollups,
its number (those after it move up), and what its conversation was judged by. Its id leads to the
call inside from then on, so that it does not come back when it is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import F, Max, Min, Model, QuerySet

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.budgets.lines import DEFAULT_OPTIMAL_MAX_TOKENS
from helmdash.core.calls.routes import CallRoute
from helmdash.core.care.stored import whole_of
from helmdash.core.conversations.attention import NEWEST_CALLS, rank_of
from helmdash.core.conversations.placement import EMPTY_ROUND
from helmdash.operations.recording.conversation_rows import lock_by_name
from helmdash.operations.recording.judged.judging import Judged, judge_in
from helmdash.operations.recording.told_before import names_in_traces
from helmdash.operations.rollups.noting import note
from helmdash.operations.triage import Word
from helmdash.records.call_names import Place, calls_at, find_places, payloads_at
from helmdash.records.models import (
    Call,
    CallName,
    ClientEvent,
    Conversation,
    ConversationMark,
    Guidance,
    HealthChange,
    Reminder,
    Round,
    TriageWord,
    TrialCall,
)
from helmdash.records.querysets import calls_of
from helmdash.records.rollups.call_facts import facts_of

# Later, people have seen it, exporters have sent it, and figures were told.
WITHDRAWN_WITHIN: Final = timedelta(seconds=30)
# Numbers are unique at every moment of an UPDATE: they move by way of where none are.
_FAR: Final = 2**40
# The newest calls by which a conversation without a known level looks for one.
_LOOKED_BACK: Final = 100
# What people and clients have said of a conversation; it stays for that without a call.
_SAID: Final[tuple[type[Model], ...]] = (ClientEvent, Guidance, Reminder, TriageWord)


def settle_nesting(
    project_id: int, judged: Sequence[Judged], rules: BudgetTable, *, now: datetime
) -> tuple[list[Judged], frozenset[str]]:
    """Take back stored calls that these lie in; gives these, in their places, and the ids of those
    of them that others of them lie in, which are no calls.

    A call that names no conversation has that of the one around it, or of the call that this one's
    id leads to, and is judged by the rules of that. To be called at the beginning
    of a transaction: it locks the conversations of all.
    """
    around = {name for item in judged for name in item.capture.inside}
    if not around:
        return list(judged), frozenset()
    outer = {name: item for item in judged if (name := item.capture.id or "") in around}
    places = _led_to(project_id, judged)
    stored, names = _withdraw(
        project_id, judged, around, {told[0] for told in places.values()}, now
    )
    places |= stored
    settled = []
    for item in judged:
        capture = item.capture
        inside = [
            *capture.inside,
            *(more for name in capture.inside for more in names.get(name, ())),
        ]
        inside = list(dict.fromkeys(inside))
        if inside != [*capture.inside]:
            item = replace(item, capture=replace(capture, inside=tuple(inside)))
        if _takes_conversation(item):
            for talk, parent in _places(inside, outer, places):
                if talk is not None:
                    item = judge_in(item, talk, parent, rules)
                    break
        settled.append(item)
    return settled, frozenset(outer)


_Told = tuple[str | None, str | None]  # conversation, and its parent


def _takes_conversation(item: Judged) -> bool:
    return item.capture.conversation is None and item.capture.links is None


def _led_to(project_id: int, judged: Sequence[Judged]) -> dict[str, _Told]:
    """The conversations of the calls that the ids lead to which these lie in: that of another one
    in the same outer call, where this one was taken back before."""
    taking = (item for item in judged if _takes_conversation(item))
    found = find_places(
        project_id, sorted({name for item in taking for name in item.capture.inside})
    )
    rows = calls_at(project_id, found.values()).filter(conversation__isnull=False)
    told: dict[int, _Told] = {
        pk: (name, parent)
        for pk, name, parent in rows.values_list("id", "conversation__name", "conversation__parent")
    }
    return {name: told[at.call_id] for name, at in found.items() if at.call_id in told}


def _places(
    inside: Sequence[str], outer: dict[str, Judged], stored: dict[str, _Told]
) -> Iterable[_Told]:
    """The conversations of the calls around one, the nearest first."""
    seen: set[str] = set()
    waiting = list(inside)
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in outer:
            capture = outer[name].capture
            yield capture.conversation, capture.parent
            waiting += capture.inside
        elif name in stored:
            yield stored[name]


def _withdraw(
    project_id: int,
    judged: Sequence[Judged],
    around: set[str],
    further: set[str | None],
    now: datetime,
) -> tuple[dict[str, _Told], dict[str, list[str]]]:
    """Take back what is stored; gives where each was, and the further ids that led to it.

    further: conversations that are to be locked with those.
    """
    found = _own_calls(project_id, around, now)
    if not found.exists():
        return {}, {}
    wanted = {item.capture.conversation for item in judged} | further
    wanted |= {*found.values_list("conversation__name", flat=True)}
    # All at once, in the one order that everybody locks in.
    lock_by_name(project_id, {name for name in wanted if name})
    stored: dict[str, _Told] = {}
    names: dict[str, list[str]] = {}
    # Once more: another writer may have been first.
    for call in _own_calls(project_id, around, now).select_for_update(of=("self",)).order_by("id"):
        # Read anew for each, for the one before may have changed it.
        conversation = Conversation.objects.filter(pk=call.conversation_id or 0).first()
        parent = conversation.parent if conversation is not None else None
        stored[call.name] = (conversation.name if conversation else None, parent)
        names[call.name] = take_back(call, conversation, now)
    return stored, names


def _own_calls(project_id: int, names: Iterable[str], now: datetime) -> QuerySet[Call]:
    """Calls stored lately under these very names, and told of by their spans alone."""
    places = find_places(project_id, list(names))
    return calls_at(project_id, places.values()).filter(
        name__in=list(places),
        routes=CallRoute.OTLP_SPAN.value,
        recorded_at__gte=now - WITHDRAWN_WITHIN,
    )


def take_back(call: Call, conversation: Conversation | None, now: datetime) -> list[str]:
    """Delete a call with all that it has told, within a transaction that has its row and its
    conversation locked. Gives the ids of further spans that led to it."""
    project_id, places = call.project_id, [Place(call.pk, call.started_at)]
    rows = calls_at(project_id, places)
    gone = [(facts, None) for facts in facts_of(rows)]
    of_trace = names_in_traces([call])
    further = [name for name in of_trace.values_list("name", flat=True) if name != call.name]
    of_trace._raw_delete(connection.alias)
    if conversation is not None:
        CallName.objects.filter(
            project_id=project_id, conversation_id=conversation.pk, call_id=call.pk
        )._raw_delete(connection.alias)
    payloads_at(project_id, places)._raw_delete(connection.alias)
    TrialCall.objects.filter(pk=call.pk)._raw_delete(connection.alias)
    rows._raw_delete(connection.alias)
    levels: dict[int, int] = {}
    if conversation is not None:
        before = conversation.severity
        after = _leave(conversation, call)
        levels = {before: -1}
        if after is not None:
            levels[after] = levels.get(after, 0) + 1
    note(project_id, gone, now=now, levels=levels)
    return further


def take_back_nameless(calls: Sequence[Call], now: datetime) -> None:
    """Delete calls of one project that are in no conversation, likewise, in a few statements."""
    if not calls:
        return
    project_id = calls[0].project_id
    places = [Place(call.pk, call.started_at) for call in calls]
    rows = calls_at(project_id, places)
    gone = [(facts, None) for facts in facts_of(rows)]
    names_in_traces(calls)._raw_delete(connection.alias)
    payloads_at(project_id, places)._raw_delete(connection.alias)
    TrialCall.objects.filter(pk__in=[call.pk for call in calls])._raw_delete(connection.alias)
    rows._raw_delete(connection.alias)
    note(project_id, gone, now=now, levels={})


def _leave(row: Conversation, call: Call) -> int | None:
    """The conversation without the call; its severity then, None: it is gone, too."""
    # What was seen to, or is asleep, stays so.
    is_put_aside = not row.attention and rank_of(row) > 0
    row.failures -= bool(call.cause)
    trim = call.trim_before_bytes, call.trim_after_bytes
    row.trims -= trim[0] is not None and trim[1] is not None and trim[1] < trim[0]
    if call.attempt_of is not None:
        row.earlier_attempts = (row.earlier_attempts or 1) - 1 or None
    elif call.generation is None:
        row.side_calls = (row.side_calls or 1) - 1 or None
    else:
        _close_gap(row, call, call.generation)
        _stand_by_rest(row, call, call.generation)
    if not row.generation and not row.side_calls and not _is_spoken_of(row):
        of_row = {"project_id": row.project_id, "conversation_id": row.pk}
        ConversationMark.objects.filter(**of_row)._raw_delete(connection.alias)
        HealthChange.objects.filter(**of_row).delete()
        Round.objects.filter(**of_row).delete()
        Conversation.objects.filter(pk=row.pk)._raw_delete(connection.alias)
        return None
    if call.started_at in (row.started_at, row.latest_at):
        times = calls_of(row).aggregate(first=Min("started_at"), last=Max("started_at"))
        row.started_at = times["first"] or row.started_at
        row.latest_at = times["last"] or row.latest_at
    if not is_put_aside:
        row.attention = rank_of(row)
    row.save()
    return row.severity


def _is_spoken_of(row: Conversation) -> bool:
    return any(model._default_manager.filter(conversation_id=row.pk).exists() for model in _SAID)


def _close_gap(row: Conversation, call: Call, gap: int) -> None:
    """Calls after a number that is free now move up by one, with all that names their numbers."""
    later = {"generation__gt": gap}
    calls_of(row).filter(**later).update(generation=F("generation") - 1)
    calls_of(row).filter(attempt_of__gt=gap).update(attempt_of=F("attempt_of") - 1)
    of_row = {"project_id": row.project_id, "conversation_id": row.pk}
    named = CallName.objects.filter(**of_row)
    named.filter(**later).update(generation=F("generation") + _FAR)
    named.filter(generation__gt=_FAR).update(generation=F("generation") - _FAR - 1)
    ConversationMark.objects.filter(**of_row, **later).update(generation=F("generation") - 1)
    _close_changes(row, gap)
    rounds = Round.objects.filter(**of_row)
    rounds.filter(first_generation__gt=gap).update(first_generation=F("first_generation") - 1)
    rounds.filter(latest_generation__gte=gap).update(latest_generation=F("latest_generation") - 1)
    row.generation -= 1
    if row.late_until is not None and row.cleared_at is not None:
        # A call that came in since the clear has the number of one that was under way then.
        was_there = gap < row.late_until or call.recorded_at <= row.cleared_at
        row.late_until -= was_there and gap <= row.late_until
    if row.cut_generation == gap:
        row.cut_generation = None
    row.cut_generation = _moved(row.cut_generation, gap)
    _leave_round(row, call, rounds)
    open_round = rounds.filter(number=row.round_number)
    care = open_round.values_list("care", flat=True).first()
    # How many were recorded when care decided last: by that it knows of one under way.
    told = care if isinstance(care, dict) else {}
    recorded = whole_of(told.get("recorded"))
    if recorded is not None and recorded >= gap:
        open_round.update(care={**told, "recorded": recorded - 1})


def _moved(generation: int | None, gap: int) -> int | None:
    return generation - 1 if generation is not None and generation > gap else generation


def _leave_round(row: Conversation, call: Call, rounds: QuerySet[Round]) -> None:
    """The call's round without it; an open one that has no call any more is empty."""
    number = call.round_number or 1
    own = rounds.filter(number=number).first()
    if own is None:
        return
    if own.latest_generation < own.first_generation and number == row.round_number:
        if number > 1:
            row.is_round_empty = True  # as after a clear
        else:
            own.delete()
            return
    rest = calls_of(row).filter(round_number=number, generation__isnull=False)
    if call.prompt_tokens is not None and call.prompt_tokens == own.peak_prompt_tokens:
        own.peak_prompt_tokens = rest.aggregate(peak=Max("prompt_tokens"))["peak"]
        rounds.filter(number=number).update(peak_prompt_tokens=own.peak_prompt_tokens)
    if call.started_at == own.started_at:
        first = rest.aggregate(first=Min("started_at"))["first"]
        rounds.filter(number=number).update(started_at=first or own.started_at)


def _close_changes(row: Conversation, gap: int) -> None:
    """The changes of level around a call that is gone, its follower having its number already."""
    changes = HealthChange.objects.filter(project_id=row.project_id, conversation_id=row.pk)
    changes.filter(generation__in=(gap, gap + 1)).delete()
    changes.filter(generation__gt=gap).update(generation=F("generation") + _FAR)
    changes.filter(generation__gt=_FAR).update(generation=F("generation") - _FAR - 1)
    beside = {
        each["generation"]: each
        for each in calls_of(row)
        .filter(generation__in=(gap - 1, gap))
        .values("generation", "level", "started_at", "round_number")
    }
    follower, before = beside.get(gap), beside.get(gap - 1)
    if follower is None:
        return
    left = before["level"] if before is not None else ""
    if before is not None and _is_cleared(row, before["round_number"], follower["round_number"]):
        left = Level.UNKNOWN.value
    if left != follower["level"]:
        HealthChange.objects.create(
            project_id=row.project_id,
            conversation_id=row.pk,
            generation=gap,
            from_level=left,
            to_level=follower["level"],
            at=follower["started_at"],
        )


def _is_cleared(row: Conversation, before: int | None, after: int | None) -> bool:
    """Whether a clear lies between two rounds."""
    return _clears(row).filter(number__gt=before or 1, number__lte=after or 1).exists()


def _clears(row: Conversation) -> QuerySet[Round]:
    of_row = {"project_id": row.project_id, "conversation_id": row.pk}
    return Round.objects.filter(**of_row, opened_by="clear")


def _stand_by_rest(row: Conversation, call: Call, gap: int) -> None:
    """How the conversation stands by the main calls that are left, `gap` being free no more.

    As in recording, nothing from before the newest clear counts.
    """
    since = _clears(row).aggregate(number=Max("number"))["number"] or 1
    if row.is_round_empty:
        _stand_empty(row)
        if call.round_number == row.round_number:
            row.trace = None
        return
    if (call.round_number or 1) < since:
        return
    main = calls_of(row).filter(generation__isnull=False, round_number__gte=since)
    newest = list(main.order_by("-generation")[:_LOOKED_BACK])
    known = next((each.level for each in newest if each.level != Level.UNKNOWN.value), "")
    if known or len(newest) < _LOOKED_BACK:
        row.known_level = known
    # What somebody has seen to is no reason again.
    done = TriageWord.objects.filter(conversation_id=row.pk, word=Word.DONE.value)
    seen = done.aggregate(at=Max("at"))["at"]
    row.recent_failures = sum(
        1 << place
        for place, each in enumerate(newest[:NEWEST_CALLS])
        if each.cause and (seen is None or each.recorded_at > seen)
    )
    if newest and newest[0].generation is not None and newest[0].generation >= gap:
        return  # by a later one, as before
    row.trace = None  # what it tells of the call that is gone cannot be told apart
    if newest:
        _stand_by(row, newest[0])
    else:
        _stand_empty(row)


def _stand_empty(row: Conversation) -> None:
    """How it stands without a main call in the open round: as a clear leaves it."""
    for name, value in EMPTY_ROUND.items():
        setattr(row, name, value)
    if not row.generation:
        if row.round_number == 1:
            row.level_reason = HealthReason.NO_MAIN_CALL.value if row.side_calls else ""
        row.limit_tokens = row.critical_max_tokens = None
        row.limit_source = ""
        row.optimal_max_tokens = DEFAULT_OPTIMAL_MAX_TOKENS


def _stand_by(row: Conversation, call: Call) -> None:
    row.level, row.level_reason = call.level, call.level_reason
    row.prompt_tokens, row.limit_tokens = call.prompt_tokens, call.limit_tokens
    row.limit_source = call.limit_source
    row.optimal_max_tokens = call.optimal_max_tokens
    row.critical_max_tokens = call.critical_max_tokens
    row.latest_cause = call.cause or None
    row.model, row.model_key = call.model, call.model_key
    row.client_name, row.client_version = call.client_name, call.client_version
    row.client_window = call.client_window
    row.severity = LEVELS[Level(row.level)].severity
