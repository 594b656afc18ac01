"""Looking at rules: what their subjects look like becomes states, and states become messages.

A look may be repeated, or be done by two processes: what is known changes nothing, and a message is
made in the transaction that notes what it tells. What is committed is told, whatever crashes then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from django.db.models import F, Min, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from helmdash.core.alerts import channels as shapes
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.messages import Message, beside_key, headline, messages_of
from helmdash.core.alerts.rules import KINDS, RuleSettings, Severity
from helmdash.core.alerts.states import (
    AlertState,
    Seen,
    advance,
    is_group_due,
    is_worth_telling,
)
from helmdash.operations.database.transactions import write
from helmdash.operations.recorder.group_commit import is_unavailable
from helmdash.queries.alerts.observing import Looked, Watched, look
from helmdash.queries.alerts.rules import settings_of
from helmdash.records.models import Alert, AlertChannel, AlertDelivery, AlertMessage, AlertRule
from helmdash.records.statements.bulk import allocate_ids, insert_rows, update_rows

logger = logging.getLogger(__name__)

# A batch holds SQLite's write lock for some tens of milliseconds.
_BATCH: Final = 500
# Where the next look finds a rule that could not be looked at.
_AFTER_FAULT: Final = timedelta(minutes=1)
_LONGEST: Final = max(_AFTER_FAULT, *(timedelta(seconds=each.every_s) for each in KINDS.values()))
_STATE: Final = (
    "severity", "title", "detail", "path", "opened_at", "changed_at", "resolved_at", "episode",
    "revision", "told", "told_episode",
)  # fmt: skip
_NEW: Final = [each.attname for each in Alert._meta.concrete_fields if not each.primary_key]


def next_due() -> datetime | None:
    """When the first rule is to be looked at; None: no rule is on."""
    due: datetime | None = AlertRule.objects.filter(enabled=True).aggregate(at=Min("next_at"))["at"]
    return due


def is_due(now: datetime) -> bool:
    """Whether a rule is to be looked at."""
    return _due(now).exists()


def _due(now: datetime) -> QuerySet[AlertRule]:
    """Rules whose time has come. None is put off for longer than _LONGEST: what is later was told
    by another clock, that of the host where it was edited, or the database's before it was set."""
    is_time = Q(next_at__lte=now) | Q(next_at__gt=now + _LONGEST)
    return AlertRule.objects.filter(is_time, enabled=True)


def look_at_due(*, now: datetime, go_on: Callable[[], None]) -> int:
    """Look at every rule whose time has come; how many messages were made.

    A rule that cannot be looked at keeps no other from its turn: its row says so. Raises what
    `go_on` raises, which is asked between rules, and what an unavailable database raises.
    """
    made = 0
    for row in _due(now).order_by("next_at", "id"):
        try:
            made += _look_at(row, now)
        except Exception as error:
            if is_unavailable(error):
                raise
            logger.exception("an alert rule could not be looked at")
            rows = AlertRule.objects.filter(pk=row.pk)
            problem = type(error).__name__[:64]
            write(lambda: rows.update(next_at=now + _AFTER_FAULT, problem=problem))  # noqa: B023
        go_on()
    return made


def _look_at(row: AlertRule, now: datetime) -> int:
    settings = settings_of(row)
    watched = Watched(id=row.pk, project_id=row.project_id, settings=settings, cursor=row.cursor)
    looked = look(watched, now=now)
    for at in range(0, len(looked.seen), _BATCH):
        batch = looked.seen[at : at + _BATCH]
        write(lambda: _apply(row, batch, now))  # noqa: B023
    made = _tell(row, settings, now)
    write(lambda: _note(row, looked, settings, now))
    return made


def _note(row: AlertRule, looked: Looked, settings: RuleSettings, now: datetime) -> None:
    every = timedelta(seconds=KINDS[settings.kind].every_s)
    AlertRule.objects.filter(pk=row.pk, updated_at=row.updated_at).update(
        cursor=dict(looked.cursor), next_at=now + every, problem=""
    )


def end_all(row: AlertRule, *, why: str, channels: Sequence[AlertChannel], now: datetime) -> int:
    """Let the alerts of a rule that has just been switched off be over, and tell those channels of
    the ones whose beginning was told, also in quiet hours; how many messages were made.

    Nobody looks at them from now on: who opened an incident for one would keep it open for good.
    """
    write(lambda: _end_firing(row, why, now))
    return _say(row, lambda state: state.is_known, channels, now)


def take_leave(
    row: AlertRule, *, why: str, channels: Sequence[AlertChannel], now: datetime
) -> None:
    """Tell channels that what a rule told of is over for them, also in quiet hours; in the caller's
    transaction. The alerts go on, for those that are still told.
    """
    told = [state_of(each) for each in Alert.objects.filter(rule=row, told_episode=F("episode"))]
    over = [
        replace(
            each,
            detail=why,
            resolved_at=each.resolved_at or now,
            changed_at=now,
            revision=each.revision + 1,
        )
        for each in told
        if each.is_firing or each.is_end_untold
    ]
    _tell_beside(row, over, firing=0, channels=channels, now=now)


def tell_anew(row: AlertRule, *, channels: Sequence[AlertChannel], now: datetime) -> None:
    """Tell channels that have taken leave of what still fires, as the rule tells it by now; in the
    caller's transaction. Not of what somebody sees to."""
    rows = Alert.objects.filter(
        rule=row, told_episode=F("episode"), resolved_at__isnull=True, acknowledged_at__isnull=True
    )
    firing = [replace(state_of(each), changed_at=now) for each in rows]
    _tell_beside(row, firing, firing=len(firing), channels=channels, now=now)


def _tell_beside(
    row: AlertRule,
    states: Sequence[AlertState],
    *,
    firing: int,
    channels: Sequence[AlertChannel],
    now: datetime,
) -> None:
    """Tell some of a rule's channels alone. The messages are of no rule: what it has told last is
    what all of its channels heard."""
    heard_by = [each.pk for each in channels]
    store_messages(
        [
            replace(message, key=beside_key(message.key, heard_by))
            for message, _ in messages_for(row, states, firing=firing)
        ],
        project_id=row.project_id,
        rule=None,
        channels=channels,
        now=now,
    )


# --- states


def _apply(row: AlertRule, seen: Sequence[Seen], now: datetime) -> None:
    """Note what became of some subjects. Two looks at one rule wait for each other here."""
    if not is_still(row):
        return
    names = [each.subject for each in seen]
    known = {each.subject: each for each in Alert.objects.filter(rule=row, subject__in=names)}
    fresh: list[Alert] = []
    changed: list[Alert] = []
    for each in seen:
        alert = known.get(each.subject)
        state = advance(state_of(alert) if alert else None, each, now=now)
        if state is None:
            continue
        if alert is None:
            alert = Alert(project_id=row.project_id, rule=row, subject=each.subject)
            fresh.append(alert)
        else:
            changed.append(alert)
        _take(alert, state, now)
    insert_rows(Alert, [_columns_of(each, _NEW) for each in fresh])
    _update(changed, [*_STATE, "pending_since", "acknowledged_at", "acknowledged_by"])


def _end_firing(row: AlertRule, why: str, now: datetime) -> None:
    """What `advance` makes of each alert that fires and is seen no more, in one statement: of
    10,000 it took longer to write the rows whole than to tell their end."""
    if not is_still(row):
        return
    Alert.objects.filter(rule=row, resolved_at__isnull=True).update(
        resolved_at=now,
        changed_at=now,
        revision=F("revision") + 1,
        detail=why,
        pending_since=Coalesce("pending_since", Value(now)),
    )


def _update(alerts: Sequence[Alert], fields: Sequence[str]) -> None:
    """Write some columns of rows that are there and locked. Not by Django, which makes a CASE with
    a branch for each row and column, or upserts rows whole: most of a burst's time."""
    update_rows(Alert, fields, [_columns_of(each, ["id", *fields]) for each in alerts])


def _columns_of(alert: Alert, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(alert, name) for name in names}


def is_still(row: AlertRule) -> bool:
    """Lock the rule, in the caller's transaction; whether it is there and as it was when the look
    began."""
    locked = AlertRule.objects.select_for_update().filter(pk=row.pk, enabled=row.enabled)
    return locked.values_list("updated_at", flat=True).first() == row.updated_at


def state_of(alert: Alert) -> AlertState:
    """Where a stored alert stands."""
    values = {name: getattr(alert, name) for name in _STATE}
    values["severity"] = Severity(alert.severity)
    return AlertState(
        subject=alert.subject, is_acknowledged=alert.acknowledged_at is not None, **values
    )


def _take(alert: Alert, state: AlertState, now: datetime) -> None:
    for name in _STATE:
        setattr(alert, name, getattr(state, name))
    alert.severity = state.severity.value
    alert.title, alert.detail = state.title[:400], state.detail[:400]
    alert.pending_since = alert.pending_since or now
    if not state.is_acknowledged:
        alert.acknowledged_at, alert.acknowledged_by = None, None


# --- messages


def _tell(row: AlertRule, settings: RuleSettings, now: datetime) -> int:
    """Make the messages that are due, each in a transaction of its own."""
    first = _pending(row).aggregate(first=Min("pending_since"))["first"]
    is_quiet = settings.quiet is not None and settings.quiet.covers(now)
    if first is None or is_quiet or not is_group_due(first, group_s=settings.group_s, now=now):
        return 0

    def is_worth(state: AlertState) -> bool:
        return is_worth_telling(state, settings.quiet)

    return _say(row, is_worth, channels_of(row), now)


def _pending(row: AlertRule) -> QuerySet[Alert]:
    return Alert.objects.filter(rule=row, pending_since__isnull=False)


def _say(
    row: AlertRule,
    is_worth: Callable[[AlertState], bool],
    channels: Sequence[AlertChannel],
    now: datetime,
) -> int:
    """Make the messages of what is pending and worth telling; the rest is passed over."""
    alerts = {each.subject: each for each in _pending(row)}
    states = [state_of(each) for each in alerts.values()]
    told = [each for each in states if is_worth(each)]
    worth = {each.subject for each in told}
    _pass_over([alerts[each.subject] for each in states if each.subject not in worth])
    firing = Alert.objects.filter(rule=row, resolved_at__isnull=True).count()
    messages = messages_for(row, told, firing=firing)
    made = 0
    for some in _together(messages):
        rows = [(message, [alerts[each.subject] for each in states]) for message, states in some]
        made += write(lambda: _store(row, rows, channels, now))  # noqa: B023
    return made


def _together(
    messages: Iterable[tuple[Message, Sequence[AlertState]]],
) -> Iterator[list[tuple[Message, Sequence[AlertState]]]]:
    """Messages that one transaction stores: as many as tell _BATCH changes, one at least."""
    some: list[tuple[Message, Sequence[AlertState]]] = []
    changes = 0
    for message, states in messages:
        if some and changes + len(states) > _BATCH:
            yield some
            some, changes = [], 0
        some.append((message, states))
        changes += len(states)
    if some:
        yield some


def _pass_over(alerts: Sequence[Alert]) -> None:
    for at in range(0, len(alerts), _BATCH):
        some = alerts[at : at + _BATCH]
        write(lambda: _as_seen(some).update(told=F("revision"), pending_since=None))  # noqa: B023


def _store(
    row: AlertRule,
    messages: Sequence[tuple[Message, Sequence[Alert]]],
    channels: Sequence[AlertChannel],
    now: datetime,
) -> int:
    """Store messages and what they tell, once: who comes second finds the changes told."""
    alerts = [alert for _, told in messages for alert in told]
    if not is_still(row):
        return 0
    rows = _as_seen(alerts)
    if dict(rows.values_list("pk", "revision")) != {each.pk: each.revision for each in alerts}:
        return 0  # told by another process, or changed since: the next look tells it
    rows.update(told=F("revision"), told_episode=F("episode"), pending_since=None)
    _note_keys(messages)
    store_messages(
        [message for message, _ in messages],
        project_id=row.project_id,
        rule=row,
        channels=channels,
        now=now,
    )
    return len(messages)


def _note_keys(messages: Sequence[tuple[Message, Sequence[Alert]]]) -> None:
    """Let each alert know which message told it last. One statement for a message that tells many:
    a row for each of 10,000 alerts took half the time of telling them."""
    alone: list[Alert] = []
    for message, told in messages:
        if len(told) > 1:
            each = Alert.objects.filter(pk__in=[alert.pk for alert in told])
            each.update(message_key=message.key)
            continue
        for alert in told:
            alert.message_key = message.key
            alone.append(alert)
    _update(alone, ["message_key"])


def messages_for(
    row: AlertRule, states: Sequence[AlertState], *, firing: int, is_grouped: bool | None = None
) -> Iterator[tuple[Message, Sequence[AlertState]]]:
    """The messages of a rule that tell some states, and what each tells. firing: how many of its
    alerts fire. is_grouped: they are told together; None: as the rule gathers them."""
    return messages_of(
        states,
        uid=row.uid,
        project=row.project.slug,
        rule=row.name,
        kind=row.kind,
        firing=firing,
        is_grouped=row.group_s > 0 if is_grouped is None else is_grouped,
    )


def store_messages(
    messages: Sequence[Message],
    *,
    project_id: int,
    rule: AlertRule | None,
    channels: Sequence[AlertChannel],
    now: datetime,
    before: str = "",
) -> None:
    """Messages with their deliveries, to be sent by the job; in the caller's transaction.

    before: what their lines in the log begin with.
    """
    numbers = allocate_ids(AlertMessage, len(messages))
    insert_rows(
        AlertMessage,
        [
            {
                "id": number,
                "project_id": project_id,
                "rule_id": rule.pk if rule else None,
                "key": message.key,
                "headline": f"{before}{headline(message)}"[:500],
                "body": orjson.dumps(message).decode(),
                "created_at": now,
            }
            for number, message in zip(numbers, messages, strict=True)
        ],
    )
    insert_rows(
        AlertDelivery,
        [
            {
                "project_id": project_id,
                "channel_id": channel.pk,
                "message_id": number,
                "state": "waiting",
                "attempts": 0,
                "http_status": None,
                "told": "",
                "created_at": now,
                "ended_at": None,
            }
            for number, message in zip(numbers, messages, strict=True)
            for channel in channels
            if message.part == 1 or shapes.KINDS[ChannelKind(channel.kind)].reads_all
        ],
    )


def _as_seen(alerts: Sequence[Alert]) -> QuerySet[Alert]:
    """Those rows, as far as nobody has told them since they were read."""
    return Alert.objects.filter(pk__in=[each.pk for each in alerts], pending_since__isnull=False)


def channels_of(row: AlertRule) -> list[AlertChannel]:
    """The channels that a rule tells, but for those that are switched off or gone."""
    return list(
        AlertChannel.objects.filter(
            project_id=row.project_id, pk__in=row.channels, enabled=True
        ).order_by("id")
    )
