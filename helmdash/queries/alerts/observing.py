"""What the subjects of a rule look like now.

Each kind reads as little as it can: what changed since the last look, or an index of what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

from django.db.models import F, Max, Q

from helmdash.core.alerts.own_range import SLOW_PERCENT, is_latency_out, is_rate_out, usual_bucket
from helmdash.core.alerts.rules import RuleKind, RuleSettings, Severity
from helmdash.core.alerts.states import Seen
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.outcomes import CallOutcome
from helmdash.core.rollups.buckets import bounds, percentile
from helmdash.core.rollups.figures import CALLS, Counts, Distribution, Marginal, distribution
from helmdash.core.text.query_terms import term_text
from helmdash.core.text.time_ranges import TimeRange
from helmdash.queries import failures, ledger, rollups
from helmdash.queries.conversations.under_way import under_way
from helmdash.queries.exporting import export_states
from helmdash.records.conversation_names import named
from helmdash.records.models import Alert, Call, Conversation, HealthChange

# Whoever brings in calls of last month wants no message about each of them; and a conversation that
# nobody went on with for a day is over.
_RECENT: Final = timedelta(days=1)
# Rows get their numbers before they are committed, so a lower one may come later. It is looked for
# as long as a statement may take; to look twice at a row changes nothing.
_SETTLED: Final = timedelta(seconds=60)
# Conversations whose rows are read by one statement.
_BATCH: Final = 1000
# Every look would ask for all conversations whose alert fires: once a minute is enough to find
# those that were given up or erased.
_RECHECK: Final = timedelta(minutes=1)
_UNDER_WAY: Final = 60
_WEEK: Final = timedelta(days=7)
_UNUSED: Final = "no call came for a week either: it is taken to be unused"
_FORGOTTEN: Final = "no call came either: the ones before it are kept no longer"
# Causes that mean: the prompt was longer than the model, or the budget, takes.
_REFUSALS: Final = (FailureCause.CONTEXT_OVERFLOW.value,)
# Calls of an agent seldom take longer, and conversations are told apart by when a call began.
_LATELY: Final = timedelta(minutes=10)
_KNOWN_LEVELS: Final = [each.value for each in Level if each is not Level.UNKNOWN]
_WORST: Final = LEVELS[Level.CRITICAL].severity

Cursor = Mapping[str, object]
_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A rule as a look needs it. cursor: what the last look left; None: the first."""

    id: int
    project_id: int
    settings: RuleSettings
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What was seen, and how far the look came."""

    seen: Sequence[Seen]
    cursor: Cursor


def look(rule: Watched, *, now: datetime) -> Looked:
    """What a rule's subjects look like: those that fire, and those that did and do not any more."""
    return _LOOKS[rule.settings.kind](rule, now)


def _firing(rule: Watched) -> list[str]:
    firing = Alert.objects.filter(rule_id=rule.id, resolved_at__isnull=True)
    return list(firing.values_list("subject", flat=True))


# --- conversations


def _levels(rule: Watched, now: datetime) -> Looked:
    """Conversations whose level changed since the last look, by the level that they have now: what
    changes twice between two looks is seen once."""
    changes = HealthChange.objects.filter(project_id=rule.project_id)
    newest = _newest_change(rule.project_id)
    cursor = dict(rule.cursor or _from_change(newest, now))
    ids = list(
        changes.filter(id__gt=cursor["from"]).values_list("conversation_id", flat=True).distinct()
    )
    seen = [
        each
        for batch in _batches(ids)
        for row in Conversation.objects.filter(pk__in=batch)
        for each in _level_of(rule, row, now)
    ]
    if _is_past(cursor["at"], _SETTLED, now):
        cursor |= {"from": cursor["seen"], "seen": newest, "at": now.timestamp()}
    if _is_past(cursor.get("checked", 0), _RECHECK, now):
        known = {each.subject for each in seen}
        names = [name for name in _firing(rule) if name not in known]
        again = {each.subject: each for each in _again(rule, names, now, _level_of)}
        seen += [each for subject, each in again.items() if subject not in known]
        cursor["checked"] = now.timestamp()
    return Looked(seen, cursor)


def beginning(kind: RuleKind, *, project_id: int, now: datetime) -> Cursor | None:
    """The cursor of a rule that is looked at from now on, at what changes from now on: its first
    look comes seconds later, or when the server is started again. None: it needs none."""
    return _from_change(_newest_change(project_id), now) if kind is RuleKind.LEVEL else None


def _newest_change(project_id: int) -> int:
    changes = HealthChange.objects.filter(project_id=project_id)
    return changes.aggregate(newest=Max("id"))["newest"] or 0


def _from_change(newest: int, now: datetime) -> dict[str, object]:
    return {"from": newest, "seen": newest, "at": now.timestamp()}


def _is_past(noted: object, span: timedelta, now: datetime) -> bool:
    """Whether so much time has passed since a moment that a cursor has noted, or the clock was set
    back since."""
    return not 0 <= now.timestamp() - float(str(noted)) < span.total_seconds()


def _level_of(rule: Watched, row: Conversation, now: datetime) -> Iterator[Seen]:
    """How a conversation looks to a rule on levels; nothing while its level is not known."""
    level = Level(row.level)
    if level is Level.UNKNOWN:
        return
    least = LEVELS[Level(rule.settings.level)].severity
    is_recent = now - row.latest_at < _RECENT
    is_hushed = row.snoozed_until is not None and row.snoozed_until > now
    if LEVELS[level].severity < least or not is_recent:
        yield Seen(subject=row.name, severity=None, detail=_fill(row) if is_recent else "")
    elif not is_hushed:
        yield Seen(
            subject=row.name,
            severity=_severity(level),
            title=f"{short(row.name)} is {LEVELS[level].word.lower()}",
            detail=_fill(row),
            path=conversation_path(row.name),
        )


_Looks = Callable[[Watched, Conversation, datetime], Iterator[Seen]]


def _again(rule: Watched, names: Sequence[str], now: datetime, looks: _Looks) -> Iterator[Seen]:
    """How conversations look whose alert fires, among them erased ones, and those that have got
    another name since."""
    for batch in _batches(names):
        rows = {
            row.name: row
            for row in Conversation.objects.filter(project_id=rule.project_id, name__in=batch)
        }
        for name in batch:
            if name in rows:
                yield from looks(rule, rows[name], now)
                continue
            yield Seen(subject=name, severity=None)
            called_else = named(rule.project_id, name)
            if called_else is not None:
                yield from looks(rule, called_else, now)


def _fullness(rule: Watched, now: datetime) -> Looked:
    """Conversations whose newest prompt takes a share of its limit: those that had a call lately,
    and once a minute all of a day, with those whose alert fires."""
    cursor = dict(rule.cursor or {})
    is_whole = _is_past(cursor.get("checked", 0), _RECHECK, now)
    firing = _firing(rule)
    full = Q(
        level__in=_KNOWN_LEVELS,
        prompt_tokens__gte=F("limit_tokens") * (rule.settings.threshold or 0) / 100.0,
    )
    recent = Conversation.objects.filter(
        project_id=rule.project_id, latest_at__gte=now - (_RECENT if is_whole else _LATELY)
    )
    rows = recent.filter(full | Q(name__in=firing[:_BATCH]))
    seen = {each.subject: each for row in rows for each in _fullness_of(rule, row, now)}
    if is_whole:
        names = [name for name in firing if name not in seen]
        again = {each.subject: each for each in _again(rule, names, now, _fullness_of)}
        seen = again | seen
        cursor["checked"] = now.timestamp()
    return Looked([*seen.values()], cursor)


def _fullness_of(rule: Watched, row: Conversation, now: datetime) -> Iterator[Seen]:
    """How a conversation looks to a rule on fullness; nothing while its level is not known."""
    if row.level not in _KNOWN_LEVELS or row.prompt_tokens is None or not row.limit_tokens:
        return
    is_recent = now - row.latest_at < _RECENT
    is_hushed = row.snoozed_until is not None and row.snoozed_until > now
    if not is_recent or not is_full(row.prompt_tokens, row.limit_tokens, rule.settings):
        yield Seen(subject=row.name, severity=None, detail=_fill(row) if is_recent else "")
    elif not is_hushed:
        yield Seen(
            subject=row.name,
            severity=Severity.WARNING,
            title=fullness_title(row.name, row.prompt_tokens, row.limit_tokens),
            detail=_fill(row),
            path=conversation_path(row.name),
        )


def is_full(prompt_tokens: int, limit_tokens: int, settings: RuleSettings) -> bool:
    """Whether a prompt takes the share of its limit that a rule on fullness is about."""
    return prompt_tokens * 100 >= limit_tokens * (settings.threshold or 0)


def fullness_title(name: str, prompt_tokens: int, limit_tokens: int) -> str:
    """What is said of a conversation whose prompt takes a share of its limit."""
    return f"{short(name)} takes {prompt_tokens * 100 // limit_tokens} % of its limit"


def _countdown(rule: Watched, now: datetime) -> Iterator[Seen]:
    most = rule.settings.threshold or 0
    for each in under_way(project_id=rule.project_id, now=now, limit=_UNDER_WAY):
        ahead = each.to_critical
        if ahead is None or ahead.generations > most:
            continue
        yield Seen(
            subject=each.id,
            severity=Severity.WARNING,
            title=countdown_title(each.id, ahead.generations),
            detail=each.model,
            path=conversation_path(each.id),
        )


def countdown_title(name: str, generations: int) -> str:
    """What is said of a conversation that is so many generations before its critical line."""
    unit = "generation" if generations == 1 else "generations"
    return f"{short(name)}: about {generations} {unit} to critical"


def _cuts(rule: Watched, now: datetime) -> Iterator[Seen]:
    since = now - timedelta(minutes=rule.settings.minutes or 0)
    rows = Conversation.objects.filter(
        project_id=rule.project_id,
        attention__gt=0,
        latest_at__gte=since,
        cut_generation__isnull=False,
    )
    for row in rows:
        yield Seen(
            subject=row.name,
            severity=Severity.CRITICAL,
            title=f"{short(row.name)}: generation {row.cut_generation} was probably cut",
            detail=row.model,
            path=conversation_path(row.name),
        )


def _refusals(rule: Watched, now: datetime) -> Iterator[Seen]:
    """By conversation; calls of none are told by model. A client's own refusals among them."""
    since = now - timedelta(minutes=rule.settings.minutes or 0)
    calls = Call.objects.filter(
        project_id=rule.project_id, cause__in=_REFUSALS, started_at__gte=since
    ).values_list("conversation__name", "model")
    refused = {name or model: (name, model) for name, model in calls}
    own = Conversation.objects.filter(
        project_id=rule.project_id,
        attention__gt=0,
        latest_at__gte=since,
        client_refusal__isnull=False,
    ).values_list("name", "model")
    refused |= {name: (name, model) for name, model in own}
    for subject, (name, model) in refused.items():
        wanted = f"cause:{_REFUSALS[0]} {term_text('model', model)}"
        path = conversation_path(name) if name else calls_path(wanted, since, just_after(now))
        yield Seen(
            subject=subject,
            severity=Severity.CRITICAL,
            title=f"{short(subject)}: a prompt was refused as too long",
            detail=model,
            path=path,
        )


# --- many calls


def _failing(rule: Watched, now: datetime) -> Iterator[Seen]:
    """Failure groups with enough calls, but for those that somebody resolved or muted."""
    minutes = rule.settings.minutes or 0
    since = now - timedelta(minutes=minutes)
    found = failures.failing(project_id=rule.project_id, now=now, since=since)
    for group in found.open:
        if group.calls < (rule.settings.threshold or 1):
            continue
        words = group.cause.value.replace("_", " ")
        yield Seen(
            subject=f"{group.cause.value} {group.model_key}"[:300],
            severity=Severity.WARNING,
            title=f"{short(group.model_key)}: {group.calls:,} calls {words}",
            detail=f"in {minutes} minutes",
            path=calls_path(group.query, since, just_after(now)),
        )


def _rates(rule: Watched, now: datetime) -> Iterator[Seen]:
    minutes = rule.settings.minutes or 0
    since = now - timedelta(minutes=minutes)
    for model, recent, before in _recent_and_before(rule, now):
        failed, failed_before = _failed(recent), _failed(before)
        calls, calls_before = recent[CALLS], before[CALLS]
        if is_rate_out(failed, calls, failed_before=failed_before, calls_before=calls_before):
            yield Seen(
                subject=model,
                severity=Severity.WARNING,
                title=f"{short(model)}: {failed:,} of {calls:,} calls fail",
                detail=f"in {minutes} minutes; {failed_before:,} of {calls_before:,} in the week "
                "before",
                path=calls_path(f"{term_text('key', model)} outcome:failed", since, now),
            )


def _latencies(rule: Watched, now: datetime) -> Iterator[Seen]:
    wanted = Distribution.LATENCY_MS
    since = now - timedelta(minutes=rule.settings.minutes or 0)
    for model, recent, before in _recent_and_before(rule, now, wanted):
        now_ms, before_ms = distribution(recent, wanted), distribution(before, wanted)
        usual = percentile(before_ms, SLOW_PERCENT)
        if usual is None:
            continue
        slowest = usual_bucket(before_ms)
        slow = sum(n for bucket, n in now_ms.items() if bucket > slowest)
        query = f"{term_text('key', model)} latency:>{bounds(slowest)[1]}ms"
        if is_latency_out(slow, sum(now_ms.values()), calls_before=sum(before_ms.values())):
            yield Seen(
                subject=model,
                severity=Severity.WARNING,
                title=f"{short(model)}: {slow:,} of {sum(now_ms.values()):,} calls are slow",
                detail=f"slower than {usual:,} ms, as 5 in 100 were in the week before",
                path=calls_path(query, since, now),
            )


def _recent_and_before(
    rule: Watched, now: datetime, *distributions: Distribution
) -> Iterator[tuple[str, Counts, Counts]]:
    """By model: the figures of now, and of the week before; nothing where they are not counted."""
    since = now - timedelta(minutes=rule.settings.minutes or 0)
    recent = _by_model(rule.project_id, since, now, distributions)
    before = _by_model(rule.project_id, since - _WEEK, since, distributions) if recent else {}
    for model, counts in recent.items():
        yield model, counts, before.get(model, {CALLS: 0})


def _by_model(
    project_id: int, since: datetime, until: datetime, distributions: Collection[Distribution]
) -> dict[str, Counts]:
    found = rollups.figures(
        project_id=project_id,
        marginal=Marginal.MODEL,
        since=since,
        until=until,
        distributions=distributions,
    )
    totals: dict[str, Counts] = {}
    for key, counts in (found.totals() if found else {}).items():
        total = totals.setdefault(key[0], {})
        for word, count in counts.items():
            total[word] = total.get(word, 0) + count
    return totals


def _failed(counts: Counts) -> int:
    return counts.get(f"o:{CallOutcome.FAILED.value}", 0)


def _silence(rule: Watched, now: datetime) -> Iterator[Seen]:
    """Of a project that had a call within the last week: others are not silent, but unused."""
    calls = Call.objects.filter(project_id=rule.project_id, started_at__lte=now)
    newest = calls.order_by("-started_at", "-id").values_list("started_at", flat=True).first()
    minutes = rule.settings.minutes or 0
    if newest is not None and now - newest < timedelta(minutes=minutes):
        return
    if newest is None or now - newest >= _WEEK:
        # It ends, and not since a call came.
        why = _FORGOTTEN if newest is None else _UNUSED
        for name in _firing(rule):
            yield Seen(subject=name, severity=None, detail=why)
        return
    yield Seen(
        subject="calls",
        severity=Severity.WARNING,
        title=f"No calls for {minutes} minutes",
        detail=f"the newest started at {newest:%Y-%m-%d %H:%M} UTC",
        path="/calls/",
    )


def _recorder_lag(rule: Watched, now: datetime) -> Iterator[Seen]:
    waiting = ledger.totals().waiting
    if waiting >= (rule.settings.threshold or 1):
        yield Seen(
            subject="recorder",
            severity=Severity.CRITICAL,
            title=f"{waiting:,} calls wait to be stored",
            detail="in the recorders of all server processes",
            path="/settings/recorder/",
        )


def _export_lag(rule: Watched, now: datetime) -> Iterator[Seen]:
    """Of the exporters that the project may know of."""
    for each in export_states(told_to=rule.project_id):
        waited_s = each.lag_s(now)
        if each.enabled and waited_s >= 60 * (rule.settings.minutes or 0):
            yield Seen(
                subject=each.name,
                severity=Severity.WARNING,
                title=f"{each.name}: {each.waiting:,} calls wait to be exported",
                detail=f"the oldest for {waited_s // 60:.0f} minutes",
            )


_Look = Callable[[Watched, datetime], Looked]


def _whole(read: Callable[[Watched, datetime], Iterable[Seen]]) -> _Look:
    """A look at all that fires now, without a cursor: what is not among it is over."""

    def look_at(rule: Watched, now: datetime) -> Looked:
        found = {each.subject: each for each in read(rule, now)}
        over = [Seen(subject=name, severity=None) for name in _firing(rule) if name not in found]
        return Looked([*found.values(), *over], {})

    return look_at


_LOOKS: Final[Mapping[RuleKind, _Look]] = {
    RuleKind.LEVEL: _levels,
    RuleKind.FULLNESS: _fullness,
    RuleKind.COUNTDOWN: _whole(_countdown),
    RuleKind.CUT: _whole(_cuts),
    RuleKind.REFUSAL: _whole(_refusals),
    RuleKind.FAILING: _whole(_failing),
    RuleKind.FAILURE_RATE: _whole(_rates),
    RuleKind.LATENCY: _whole(_latencies),
    RuleKind.SILENCE: _whole(_silence),
    RuleKind.RECORDER_LAG: _whole(_recorder_lag),
    RuleKind.EXPORT_LAG: _whole(_export_lag),
}


def conversation_path(name: str) -> str:
    """The page of a conversation."""
    return f"/conversations/{quote(name, safe='')}/"[:1000]


def calls_path(query: str, since: datetime | None, until: datetime) -> str:
    """The list of the calls of a query from one moment to before another."""
    span = TimeRange(since=since, until=until).exact
    return f"/calls/?{urlencode({'query': query, 'range': span} if query else {'range': span})}"


def just_after(at: datetime) -> datetime:
    """The end of a range that a moment is still part of."""
    return at + timedelta(microseconds=1)


def _fill(row: Conversation) -> str:
    if row.prompt_tokens is None or row.limit_tokens is None:
        return row.model[:200]
    return f"{row.prompt_tokens:,} of {row.limit_tokens:,} tokens, {row.model[:200]}"


def _severity(level: Level) -> Severity:
    return Severity.CRITICAL if LEVELS[level].severity >= _WORST else Severity.WARNING


def short(name: str) -> str:
    """A name within a line; messages of people's tools are cut anyway, and would lose the fact."""
    return name if len(name) <= 80 else f"{name[:79]}…"


def _batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    for at in range(0, len(values), _BATCH):
        yield values[at : at + _BATCH]
