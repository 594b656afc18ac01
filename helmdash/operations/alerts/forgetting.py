"""What goes of alerts: old messages, and what names a conversation that is erased."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import orjson
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from helmdash.core.alerts.messages import Entry, Message, headline
from helmdash.core.alerts.rules import KINDS
from helmdash.operations.alerts.delivering import give_up_old, message_of
from helmdash.operations.database.transactions import write
from helmdash.records.models import Alert, AlertDelivery, AlertMessage, AlertRule

# The log is for asking why nobody was called, which somebody asks within days.
KEPT: Final = timedelta(days=30)
_BATCH: Final = 500
# Others may have a subject that is called as a conversation is.
_OF_CONVERSATIONS: Final = [
    kind.value for kind, row in KINDS.items() if row.subject == "conversation"
]


def forget_old(*, now: datetime) -> int:
    """Delete messages that are older than KEPT and wait for no channel, and alerts that have been
    over for as long; how many messages. What waits for too long is given up before, for nobody
    looks at channels that are switched off."""
    give_up_old(now=now)
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


def forget_conversation(*, project_id: int, name: str) -> None:
    """Take a conversation out of alerts and messages, also of those that wait to be sent; in the
    caller's transaction.

    A look that is under way has read the name, and writes rows whole. The rules are locked first,
    as a look does for each write, and changed: it finds that, and is done again.
    """
    rules = AlertRule.objects.filter(project_id=project_id)
    # In one order, so that two erasures wait for each other.
    list(rules.select_for_update().order_by("pk").values_list("pk", flat=True))
    rules.update(updated_at=Now())
    mine = {"project_id": project_id, "rule__kind__in": _OF_CONVERSATIONS}
    Alert.objects.filter(subject=name[:300], **mine).delete()
    spelt = orjson.dumps(name).decode()
    for row in AlertMessage.objects.filter(body__contains=spelt, **mine):
        message = message_of(row)
        left = tuple(each for each in message.entries if each.subject != name)
        if not left:
            row.delete()
        elif len(left) < len(message.entries):
            told = _without(message, left)
            row.body, row.headline = orjson.dumps(told).decode(), headline(told)[:500]
            row.save(update_fields=["body", "headline"])


def _without(message: Message, left: tuple[Entry, ...]) -> Message:
    """The message with these entries alone, and as many changes fewer."""
    gone = [each for each in message.entries if each not in left]
    firing = message.firing - sum(each.status == "firing" for each in gone)
    total = message.total - len(gone)
    return replace(message, entries=left, total=total, firing=max(firing, 0))
