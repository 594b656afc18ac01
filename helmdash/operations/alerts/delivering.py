"""Delivering messages: in order for each channel, again until it is there or given up.

A message that was sent just before a crash is sent again, with the same key.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from helmdash import conf
from helmdash.core.alerts.channels import HttpPost, Links, Mail, Target, outgoing
from helmdash.core.alerts.messages import Entry, Message
from helmdash.operations.alerts.acknowledging import path_of
from helmdash.operations.database.transactions import write
from helmdash.queries.alerts.rules import target_of
from helmdash.records.models import AlertChannel, AlertDelivery, AlertMessage

# A receiver that restarts is back within seconds; one that is down for hours is not asked more
# often than every ten minutes.
_FIRST_RETRY, _LAST_RETRY = timedelta(seconds=5), timedelta(minutes=10)
_MOST_DOUBLINGS: Final = 7
# Who was away over a weekend still hears of Friday; who is away longer has the page.
_GIVEN_UP_AFTER: Final = timedelta(days=3)
# An answer that blames the message itself (a 4xx) comes again the next time; a few tries are for
# receivers that are being set up.
_MOST_BLAMED: Final = 5
# Two that say nothing of the message: the receiver was slow, or is asked too much.
_NOT_BLAMED: Final = frozenset({408, 425, 429})
# Between two looks at whether the server stops.
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attempt. status: of the answer, None: there was none. told: a sentence."""

    is_sent: bool
    status: int | None = None
    told: str = ""


Send = Callable[[Target, HttpPost | Mail], Outcome]
Sending = Callable[[], AbstractContextManager[Send]]
"""Opens what sends, for some messages in a row."""


def is_due(now: datetime) -> bool:
    """Whether a channel has a message to send."""
    return _due(now).exists()


def deliver_due(*, now: datetime, sending: Sending, go_on: Callable[[], None]) -> int:
    """Send what waits, each channel's messages in order up to one that fails; how many were sent.

    now: the database's clock. Raises what `go_on` raises, which is asked after each message.
    """
    sent = 0
    channels = list(_due(now).order_by("retry_at", "id"))
    if not channels:
        return 0
    with sending() as send:
        for channel in channels:
            sent += _deliver(channel, now, send, go_on)
    return sent


def _due(now: datetime) -> QuerySet[AlertChannel]:
    waiting = AlertDelivery.objects.filter(channel=OuterRef("pk"), state="waiting")
    is_time = Q(retry_at__isnull=True) | Q(retry_at__lte=now)
    return AlertChannel.objects.filter(is_time, Exists(waiting), enabled=True)


def _deliver(channel: AlertChannel, now: datetime, send: Send, go_on: Callable[[], None]) -> int:
    target = target_of(channel)
    waiting = AlertDelivery.objects.filter(channel=channel, state="waiting")
    sent = 0
    for row in waiting.select_related("message", "project").order_by("id")[:_AT_ONCE]:
        if target is None:
            told = "The stored address cannot be read any more: the signing key has changed."
            outcome = Outcome(is_sent=False, told=told)
        else:
            links = Links(
                base=conf.env().public_url.rstrip("/"),
                project=row.project.slug,
                acknowledge=path_of(row.message.key, project_id=row.project_id),
            )
            shaped = outgoing(target, message_of(row.message), links, now=now)
            outcome = send(target, shaped)
        sent += outcome.is_sent
        is_next = write(lambda: _note(channel, row, outcome, now))  # noqa: B023
        if not is_next:
            break
        go_on()
    return sent


def _note(channel: AlertChannel, row: AlertDelivery, outcome: Outcome, now: datetime) -> bool:
    """Note what came of an attempt; whether the channel's next message may be tried."""
    attempts = row.attempts + 1
    state = "sent" if outcome.is_sent else _state_after(row, attempts, outcome, now)
    AlertDelivery.objects.filter(pk=row.pk, state="waiting").update(
        state=state,
        attempts=attempts,
        http_status=outcome.status,
        told=outcome.told[:400],
        ended_at=None if state == "waiting" else Now(),
    )
    rows = AlertChannel.objects.filter(pk=channel.pk)
    if outcome.is_sent:
        rows.exclude(failures=0).update(failures=0, retry_at=None)
        return True
    failures = rows.values_list("failures", flat=True).first() or 0
    wait = min(_FIRST_RETRY * 2 ** min(failures, _MOST_DOUBLINGS), _LAST_RETRY)
    rows.update(failures=F("failures") + 1, retry_at=Now() + wait)
    return False


def _state_after(row: AlertDelivery, attempts: int, outcome: Outcome, now: datetime) -> str:
    status = outcome.status
    is_blamed = status is not None and 400 <= status < 500 and status not in _NOT_BLAMED
    is_over = is_blamed and attempts >= _MOST_BLAMED
    return "failed" if is_over or now - row.created_at >= _GIVEN_UP_AFTER else "waiting"


def message_of(row: AlertMessage) -> Message:
    """A stored message."""
    body: dict[str, Any] = orjson.loads(row.body)
    entries = tuple(Entry(**each) for each in body.pop("entries"))
    return Message(entries=entries, **body)
