"""Channels that are switched off or deleted: what they opened elsewhere is closed.

Whoever receives a channel's messages opens incidents by them, which only a message of the end
closes. So a channel that goes is told that all is over for it, and hears nothing behind that; one
that is deleted is kept until then, for three days at most (helmdash.operations.alerts.delivering).
"""

from __future__ import annotations

from datetime import datetime

from django.db.models.functions import Now

from helmdash.core.alerts.rules import NAME_CHARS
from helmdash.operations.alerts.delivering import message_of
from helmdash.operations.alerts.looking import take_leave, tell_anew
from helmdash.records.models import AlertChannel, AlertDelivery, AlertRule


def leave(channel: AlertChannel, *, why: str, now: datetime) -> None:
    """Tell a channel that what it was told of is over for it, and of what waits only what is over;
    in the caller's transaction, which stores the channel."""
    waiting = AlertDelivery.objects.filter(channel=channel, state="waiting")
    begun = [
        each.pk
        for each in waiting.select_related("message")
        if not any(entry.status == "resolved" for entry in message_of(each.message).entries)
    ]
    waiting.filter(pk__in=begun).update(state="failed", told=f"Not sent: {why}.", ended_at=Now())
    for rule in _rules_of(channel):
        take_leave(rule, why=why, channels=[channel], now=now)
    channel.left_at = now


def come_back(channel: AlertChannel, *, now: datetime) -> None:
    """Tell a channel of what fires by now; in the caller's transaction, which stores it."""
    channel.left_at = None
    for rule in _rules_of(channel):
        tell_anew(rule, channels=[channel], now=now)


def go(channel: AlertChannel, *, now: datetime) -> None:
    """Delete a channel, or keep it for what it is still to hear; in the caller's transaction."""
    if not AlertDelivery.objects.filter(channel=channel, state="waiting").exists():
        channel.delete()
        return
    mark = f" (deleted, {channel.pk})"
    channel.name = f"{channel.name[: NAME_CHARS - len(mark)]}{mark}"
    channel.enabled, channel.gone_at = False, now
    channel.failures, channel.retry_at = 0, None
    channel.save()


def _rules_of(channel: AlertChannel) -> list[AlertRule]:
    """The rules that tell a channel, locked: a look that is under way finds that they changed, and
    is done again."""
    rules = AlertRule.objects.filter(project_id=channel.project_id, enabled=True)
    told = [each.pk for each in rules.order_by("pk") if channel.pk in each.channels]
    locked = rules.filter(pk__in=told)
    list(locked.select_for_update().order_by("pk").values_list("pk", flat=True))
    locked.update(updated_at=Now())
    return list(locked.select_related("project").order_by("pk"))
