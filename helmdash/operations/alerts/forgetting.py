"""What goes of alerts: old messages, and what names a conversation that is erased."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import orjson
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from helmdash.operations.alerts.delivering import give_up_old, message_of
from helmdash.operations.database.transactions import write
from helmdash.records.models import Alert, AlertDelivery, AlertMessage, AlertRule

# The log is for asking why nobody was called, which somebody asks within days.
KEPT: Final = timedelta(days=30)
_BATCH: Final = 500


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
    Alert.objects.filter(project_id=project_id, subject=name[:300]).delete()
    spelt = orjson.dumps(name).decode()
    for row in AlertMessage.objects.filter(project_id=project_id, body__contains=spelt):
        entries = message_of(row).entries
        left = [each for each in entries if each.subject != name]
        if not left:
            row.delete()
        elif len(left) < len(entries):
            row.body = orjson.dumps(orjson.loads(row.body) | {"entries": left}).decode()
            row.save(update_fields=["body"])
