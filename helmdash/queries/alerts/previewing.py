"""What a rule would have said of the last week, by what is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from django.db.models import QuerySet

from helmdash.core.alerts.own_range import is_latency_out, is_rate_out, usual_bucket
from helmdash.core.alerts.preview import (
    PastChange,
    Preview,
    gaps,
    lasting,
    out_of_range,
    preview,
    until_told_else,
)
from helmdash.core.alerts.rules import RuleKind, RuleSettings
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.budgets.projection import NEWEST_PROMPTS, Prompt, project
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.core.rollups.buckets import bucket_of
from helmdash.core.text.query_terms import term_text
from helmdash.queries.alerts.observing import (
    calls_path,
    conversation_path,
    countdown_title,
    fullness_title,
    is_full,
    just_after,
)
from helmdash.queries.alerts.past_lags import export_lags, recorder_lags
from helmdash.queries.budgets import budgets
from helmdash.queries.conversations.care import RECENT
from helmdash.queries.conversations.under_way import ACTIVE
from helmdash.queries.failures import query_of
from helmdash.records.models import Call, HealthChange

WEEK: Final = timedelta(days=7)
# Somebody waits for the page: so many rows take about a second. More than these are not told.
_MOST_ROWS: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """What a rule would have said. is_sample: only by the newest of the week. known_from: of before
    this moment of the week nothing is stored; None: all of it is."""

    found: Preview
    is_sample: bool = False
    known_from: datetime | None = None


def last_week(*, project_id: int, settings: RuleSettings, now: datetime) -> Previewed:
    """The messages that a rule would have sent in the last week. Three queries at most, and
    some more after an edit of a budget."""
    changes, is_sample, known_from = _read(project_id, settings, now)
    found = preview(changes, group_s=settings.group_s, quiet=settings.quiet)
    return Previewed(found=found, is_sample=is_sample, known_from=known_from)


def _read(
    project_id: int, settings: RuleSettings, now: datetime
) -> tuple[list[PastChange], bool, datetime | None]:
    if settings.kind is RuleKind.RECORDER_LAG:
        lags = recorder_lags(settings, since=now - WEEK, now=now)
        return lags.changes, False, lags.known_from
    if settings.kind is RuleKind.EXPORT_LAG:
        lags = export_lags(project_id, settings, since=now - WEEK, now=now)
        return lags.changes, False, lags.known_from
    changes, is_sample = _READERS[settings.kind](project_id, settings, now)
    return changes, is_sample, None


_Calls: TypeAlias = "QuerySet[Call]"
_Read = tuple[list[PastChange], bool]


def _levels(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    least = LEVELS[Level(settings.level)].severity
    rows = HealthChange.objects.filter(
        conversation__project_id=project_id,
        conversation__latest_at__gte=now - WEEK,
        at__gte=now - WEEK,
    ).order_by("-at", "-id")
    read = list(rows.values_list("conversation__name", "to_level", "at")[:_MOST_ROWS])
    firing: dict[str, str] = {}
    changes: list[PastChange] = []
    for name, word, at in reversed(read):
        level = Level(word)
        if level is Level.UNKNOWN:
            continue
        is_firing = LEVELS[level].severity >= least
        if firing.get(name, "") != (word if is_firing else ""):
            firing[name] = word if is_firing else ""
            title = f"{name} is {LEVELS[level].word.lower()}"
            path = conversation_path(name)
            changes.append(
                PastChange(subject=name, title=title, at=at, is_firing=is_firing, path=path)
            )
    return changes, len(read) == _MOST_ROWS


class _Prompt(NamedTuple):
    conversation__name: str
    round_number: int
    generation: int
    started_at: datetime
    prompt_tokens: int | None
    level_reason: str
    optimal_max_tokens: int
    critical_max_tokens: int | None


def _countdowns(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    """What each call of the week made of the countdown, by the lines that it was judged by; over as
    soon as a look would have said nothing any more."""
    rows = Call.objects.filter(
        project_id=project_id,
        conversation__isnull=False,
        generation__isnull=False,
        round_number__isnull=False,
        started_at__gte=now - WEEK,
        started_at__lte=now,
    ).order_by("-started_at", "-id")
    read = [_Prompt(*each) for each in rows.values_list(*_Prompt._fields)[:_MOST_ROWS]]
    by_conversation: defaultdict[str, list[_Prompt]] = defaultdict(list)
    for row in reversed(read):
        by_conversation[row.conversation__name].append(row)
    changes = [
        replace(change, path=conversation_path(name))
        for name, calls in by_conversation.items()
        for change in until_told_else(
            _told_by(name, calls, settings.threshold or 0), subject=name, lasts=ACTIVE
        )
        if change.at <= now
    ]
    return changes, len(read) == _MOST_ROWS


def _told_by(
    name: str, calls: Iterable[_Prompt], most: int
) -> Iterator[tuple[datetime, str | None]]:
    """After each call of a conversation, oldest first: a title where so many generations or fewer
    were left before the critical line, else None."""
    prompts: list[Prompt] = []
    round_number, newest = 0, 0
    for call in calls:
        if call.round_number > round_number:
            prompts, round_number = [], call.round_number
        newest = max(newest, call.generation)
        is_trusted = call.level_reason != HealthReason.SUSPECTED_CUT.value
        if call.round_number == round_number and call.prompt_tokens is not None and is_trusted:
            prompts.append(Prompt(call.generation, call.started_at, call.prompt_tokens))
            # Reports may come out of order.
            prompts.sort()
        prompts = [each for each in prompts if each.generation > newest - NEWEST_PROMPTS]
        ahead = project(prompts, call, to=Level.CRITICAL)
        title = None
        if ahead and ahead.generations <= most:
            title = countdown_title(name, ahead.generations)
        yield call.started_at, title


def _fullness(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    """What each call of the week made of it; over where a day passed without one."""
    rows = Call.objects.filter(
        project_id=project_id,
        conversation__isnull=False,
        generation__isnull=False,
        prompt_tokens__isnull=False,
        limit_tokens__gt=0,
        started_at__gte=now - WEEK,
        started_at__lte=now,
    ).exclude(level=Level.UNKNOWN.value)
    told = rows.values_list("conversation__name", "started_at", "prompt_tokens", "limit_tokens")
    read = list(told.order_by("-started_at", "-id")[:_MOST_ROWS])
    by_conversation: defaultdict[str, list[tuple[datetime, str | None]]] = defaultdict(list)
    for name, at, prompt, limit in reversed(read):
        title = fullness_title(name, prompt, limit) if is_full(prompt, limit, settings) else None
        by_conversation[name].append((at, title))
    changes = [
        replace(change, path=conversation_path(name))
        for name, moments in by_conversation.items()
        for change in until_told_else(moments, subject=name, lasts=RECENT)
        if change.at <= now
    ]
    return changes, len(read) == _MOST_ROWS


def _refusals(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    calls = Call.objects.filter(cause=FailureCause.CONTEXT_OVERFLOW.value)
    cause = f"cause:{FailureCause.CONTEXT_OVERFLOW.value}"
    words = "a prompt was refused as too long"
    return _by_conversation(calls, project_id, settings, now, words, cause)


def _cuts(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    calls = Call.objects.filter(
        level=Level.UNKNOWN.value, level_reason=HealthReason.SUSPECTED_CUT.value
    )
    words = "a prompt was probably cut"
    return _by_conversation(calls, project_id, settings, now, words, "has:cut")


def _by_conversation(
    calls: _Calls,
    project_id: int,
    settings: RuleSettings,
    now: datetime,
    words: str,
    wanted: str,
) -> _Read:
    """wanted: the term of a query that lists such calls."""
    rows = calls.filter(project_id=project_id, started_at__gte=now - WEEK, started_at__lte=now)
    told = rows.values_list("conversation__name", "model", "started_at")
    read = list(told.order_by("-started_at", "-id")[:_MOST_ROWS])
    queries = {
        name or model: f"{wanted} {_whose(name, model)}" for name, model, _ in reversed(read)
    }
    times = ((name or model, at) for name, model, at in reversed(read))
    changes = _lasting(times, settings, 1, lambda name: f"{name}: {words}", queries)
    return changes, len(read) == _MOST_ROWS


def _whose(conversation: str | None, model: str) -> str:
    """The term of a query for the calls of a conversation; of none, of a model."""
    return term_text("conversation", conversation) if conversation else term_text("model", model)


def _failing(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    """By the groups of queries.failures: a model's calls by its name, whoever was asked."""
    rows = Call.objects.filter(
        project_id=project_id,
        cause__in=[each.value for each in FailureCause],
        started_at__gte=now - WEEK,
        started_at__lte=now,
    ).order_by("-started_at", "-id")
    read = list(rows.values_list("cause", "model", "started_at")[:_MOST_ROWS])
    rules = budgets.table(project_id=project_id)
    spellings: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    times: list[tuple[str, datetime]] = []
    for cause, model, at in reversed(read):
        key = rules.key_of(model)
        spellings[cause, key].add(model)
        times.append((f"{key} {cause}", at))
    queries = {
        f"{key} {cause}": query_of(cause, key, sorted(names))
        for (cause, key), names in spellings.items()
    }
    least = settings.threshold or 1
    title = f"{least:,} calls or more"
    changes = _lasting(times, settings, least, lambda name: f"{name}: {title}", queries)
    return changes, len(read) == _MOST_ROWS


def _lasting(
    times: Iterable[tuple[str, datetime]],
    settings: RuleSettings,
    least: int,
    title: Callable[[str], str],
    queries: Mapping[str, str],
) -> list[PastChange]:
    """queries: by subject, the query of the calls that it is about."""
    by_subject: defaultdict[str, list[datetime]] = defaultdict(list)
    for subject, at in times:
        by_subject[subject].append(at)
    within = timedelta(minutes=settings.minutes or 1)
    return [
        replace(change, path=_path(queries[subject], change.at, within))
        for subject, found in by_subject.items()
        for change in lasting(
            found, subject=subject, title=title(subject), least=least, within=within
        )
    ]


def _path(query: str, at: datetime, within: timedelta) -> str:
    """The calls that a rule would have looked at."""
    return calls_path(query, at - within, just_after(at))


def _silence(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    rows = Call.objects.filter(
        project_id=project_id, started_at__gte=now - WEEK, started_at__lte=now
    )
    newest = rows.order_by("-started_at", "-id").values_list("started_at", flat=True)
    read = list(newest[:_MOST_ROWS])
    minutes = settings.minutes or 1
    changes = gaps(
        reversed(read),
        subject="calls",
        title=f"No calls for {minutes} minutes",
        longest=timedelta(minutes=minutes),
        now=now,
    )
    seen = [replace(each, path=calls_path("", None, just_after(each.at))) for each in changes]
    return seen, len(read) == _MOST_ROWS


def _rates(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    def is_failed(row: _Row) -> int:
        return outcome_of(cause=row.cause, status=row.status) is CallOutcome.FAILED

    def is_out(recent: Counter[int], before: Counter[int]) -> bool | None:
        return is_rate_out(
            recent[True],
            recent.total(),
            failed_before=before[True],
            calls_before=before.total(),
        )

    return _ranges(project_id, settings, now, "more calls fail", is_failed, is_out)


def _latencies(project_id: int, settings: RuleSettings, now: datetime) -> _Read:
    def bucket(row: _Row) -> int | None:
        return None if row.latency_ms is None else bucket_of(row.latency_ms)

    def is_out(recent: Counter[int], before: Counter[int]) -> bool | None:
        usual = usual_bucket(before)
        slow = sum(n for bucket, n in recent.items() if bucket > usual)
        return is_latency_out(slow, recent.total(), calls_before=before.total())

    return _ranges(project_id, settings, now, "calls are slow", bucket, is_out)


class _Row(NamedTuple):
    model_key: str | None
    model: str
    started_at: datetime
    cause: str
    status: str
    latency_ms: int | None


def _ranges(
    project_id: int,
    settings: RuleSettings,
    now: datetime,
    words: str,
    counted: Callable[[_Row], int | None],
    is_out: Callable[[Counter[int], Counter[int]], bool | None],
) -> _Read:
    """By model; the week before the last one is the range of its first day. counted: None: the
    call does not tell."""
    within = timedelta(minutes=settings.minutes or 1)
    rows = Call.objects.filter(
        project_id=project_id, started_at__gte=now - 2 * WEEK - within, started_at__lte=now
    ).order_by("-started_at", "-id")
    read = [_Row(*each) for each in rows.values_list(*_Row._fields)[:_MOST_ROWS]]
    by_model: defaultdict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for row in reversed(read):
        value = counted(row)
        if value is not None:
            by_model[row.model_key or row.model].append((row.started_at, value))
    changes = [
        replace(
            change,
            path=_path(term_text("key", model), change.at, within),
        )
        for model, calls in by_model.items()
        for change in out_of_range(
            calls,
            subject=model,
            title=f"{model}: {words}",
            within=within,
            range_of=WEEK,
            since=now - WEEK,
            until=now,
            is_out=is_out,
        )
    ]
    return changes, len(read) == _MOST_ROWS


_READERS: Final[Mapping[RuleKind, Callable[[int, RuleSettings, datetime], _Read]]] = {
    RuleKind.LEVEL: _levels,
    RuleKind.FULLNESS: _fullness,
    RuleKind.COUNTDOWN: _countdowns,
    RuleKind.CUT: _cuts,
    RuleKind.REFUSAL: _refusals,
    RuleKind.FAILING: _failing,
    RuleKind.FAILURE_RATE: _rates,
    RuleKind.LATENCY: _latencies,
    RuleKind.SILENCE: _silence,
}
