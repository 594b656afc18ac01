"""What goes of alerts: old messages, and what names a conversation that is erased."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import orjson
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from helmdash.core.alerts.messages import Entry, Message, headline
from helmdash.core.alerts.rules import KINDS
from helmdash.operations.alerts import looking
from helmdash.operations.alerts.delivering import delete_gone, give_up_old, message_of
from helmdash.operations.database.transactions import write
from helmdash.queries.alerts.observing import short
from helmdash.records.models import (
    Alert,
    AlertDelivery,
    AlertMessage,
    AlertRule,
    AuditEntry,
)
from helmdash.records.querysets import starts_with

# The log is for asking why nobody was called, which somebody asks within days.
KEPT: Final = timedelta(days=30)
_BATCH: Final = 500
_ERASED: Final = "an erased conversation"
# Others may have a subject that is called as a conversation is.
_OF_CONVERSATIONS: Final = [
    kind.value for kind, row in KINDS.items() if row.subject == "conversation"
]


def forget_old(*, now: datetime) -> int:
    """Delete messages that are older than KEPT and wait for no channel, and alerts that have been
    over for as long; how many messages. What waits for too long is given up before, for nobody
    looks at channels that are switched off."""
    give_up_old(now=now)
    delete_gone()
    before = now - KEPT
    waiting = AlertDelivery.objects.filter(message=OuterRef("pk"), state="waiting")
    gone = 0
    while True:
        old = AlertMessage.objects.filter(~Exists(waiting), created_at__lt=before)
        ids = list(old.values_list("pk", flat=True)[:_BATCH])
        if not ids:
            break
        write(lambda: AlertMessage.objects.filter(pk__in=ids).delete())  # noqa: B023
        gone += len(ids)
    over = Alert.objects.filter(resolved_at__lt=before, pending_since__isnull=True)
    write(over.delete)
    return gone


def forget_conversation(*, project_id: int, name: str, now: datetime) -> None:
    """Take a conversation out of alerts and messages, also of those that wait to be sent; in the
    caller's transaction. Who was told of an alert of it is told of its end, without the name.

    A look that is under way has read the name, and writes rows whole. The rules are locked first,
    as a look does for each write, and changed: it finds that, and is done again.
    """
    rules = AlertRule.objects.filter(project_id=project_id)
    # In one order, so that two erasures wait for each other.
    list(rules.select_for_update().order_by("pk").values_list("pk", flat=True))
    rules.update(updated_at=Now())
    mine = {"project_id": project_id, "rule__kind__in": _OF_CONVERSATIONS}
    alerts = Alert.objects.filter(subject=name[:300], **mine)
    spelt = orjson.dumps(name).decode()
    # Of a rule that is gone by now, too.
    found = AlertMessage.objects.filter(project_id=project_id, body__contains=spelt).order_by("id")
    rows = [each for each in found if message_of(each).kind in _OF_CONVERSATIONS]
    heard = _heard(rows, name)
    rows_of_alerts = list(alerts.select_related("rule__project"))
    open_ones = [each for each in rows_of_alerts if _is_open(each, heard.get(each.rule_id))]
    alerts.delete()
    for row in rows:
        message = message_of(row)
        left = tuple(each for each in message.entries if each.subject != name)
        if not left:
            row.delete()
        elif len(left) < len(message.entries):
            told = _without(message, left)
            row.headline = f"{_before(row, message)}{headline(told)}"[:500]
            row.body = orjson.dumps(told).decode()
            row.save(update_fields=["body", "headline"])
    for each in open_ones:
        _tell_end(each, now)


def forget_acknowledged(*, project_id: int, name: str, nameless: str) -> None:
    """Call a conversation `nameless` in what the audit log has of messages on it that somebody
    acknowledged: it has their titles, which begin with the name."""
    rows = AuditEntry.objects.filter(
        project_id=project_id, kind="alert rule", action="acknowledged"
    )
    titles = [
        f"{before}{short(name)}{after}" for before in ("", "Resolved: ") for after in (" is ", ": ")
    ]
    for each in titles:
        rows.filter(starts_with("subject", each)).update(subject=nameless)


def _heard(rows: Sequence[AlertMessage], name: str) -> dict[int | None, str]:
    """By rule the status of the subject in the newest of the messages that arrived anywhere; "" of
    a rule of which none did. rows: oldest first."""
    sent = AlertDelivery.objects.filter(message__in=rows, state="sent")
    arrived = set(sent.values_list("message_id", flat=True))
    heard: dict[int | None, str] = {}
    for row in rows:
        told = [each.status for each in message_of(row).entries if each.subject == name]
        heard.setdefault(row.rule_id, "")
        if told and row.pk in arrived:
            heard[row.rule_id] = told[-1]
    return heard


def _before(row: AlertMessage, message: Message) -> str:
    """What its line in the log has before the message's own words (looking.store_messages)."""
    said = headline(message)
    return row.headline.removesuffix(said) if row.headline.endswith(said) else ""


def _without(message: Message, left: tuple[Entry, ...]) -> Message:
    """The message with these entries alone, and as many changes fewer."""
    gone = [each for each in message.entries if each not in left]
    firing = message.firing - sum(each.status == "firing" for each in gone)
    total = message.total - len(gone)
    return replace(message, entries=left, total=total, firing=max(firing, 0))


def _is_open(alert: Alert, heard: str | None) -> bool:
    """Whether somebody was told that it began, and not that it is over. heard: the status that was
    told last; None: its messages are too old to be kept."""
    if not alert.rule.enabled:
        return False
    if heard is not None:
        return heard == "firing"
    state = looking.state_of(alert)
    return state.is_known and (state.is_firing or state.is_pending)


def _tell_end(alert: Alert, now: datetime) -> None:
    """By the key that its beginning had: who opened something for it closes that."""
    rule, state = alert.rule, looking.state_of(alert)
    over = replace(
        state,
        title=_ERASED,
        detail="",
        path="",
        resolved_at=state.resolved_at or now,
        revision=state.revision + 1,
        changed_at=now,
    )
    firing = Alert.objects.filter(rule=rule, resolved_at__isnull=True).count()
    found = looking.messages_for(rule, [over], firing=firing)
    nameless = [
        replace(message, entries=tuple(replace(each, subject="") for each in message.entries))
        for message, _ in found
    ]
    channels = looking.channels_of(rule)
    looking.store_messages(
        nameless, project_id=rule.project_id, rule=rule, channels=channels, now=now
    )
