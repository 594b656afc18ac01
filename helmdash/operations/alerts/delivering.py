"""Delivering messages: in order for each channel, again until it is there or given up.

Channels are sent to side by side, so that nobody waits behind a slow receiver, and a project has a
share of that at most. Everything but the sending is done on the thread that delivers. A message
that was sent just before a crash is sent again, with the same key.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import orjson
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now

from helmdash import conf
from helmdash.core.alerts.channels import Links, Outgoing, Target, outgoing
from helmdash.core.alerts.messages import Entry, Message
from helmdash.operations.alerts.acknowledging import path_of
from helmdash.operations.database.transactions import write
from helmdash.queries.alerts.rules import target_of
from helmdash.records.models import AlertChannel, AlertDelivery, AlertMessage

logger = logging.getLogger(__name__)

# A receiver that restarts is back within seconds; one that is down for hours is not asked more
# often than every ten minutes.
_FIRST_RETRY, _LAST_RETRY = timedelta(seconds=5), timedelta(minutes=10)
_MOST_DOUBLINGS: Final = 7
# Who was away over a weekend still hears of Friday; who is away longer has the page.
_GIVEN_UP_AFTER: Final = timedelta(days=3)
_TOO_OLD: Final = f"It was not sent within {_GIVEN_UP_AFTER.days} days."
# An answer that blames the message itself (a 4xx) comes again the next time; a few tries are for
# receivers that are being set up.
_MOST_BLAMED: Final = 5
# Two that say nothing of the message: the receiver was slow, or is asked too much.
_NOT_BLAMED: Final = frozenset({408, 425, 429})
# Messages under way together. A receiver that says nothing holds one of them for 20 seconds
# (helmdash.notifier); a project whose receivers all do leaves the others three quarters.
_MOST_UNDER_WAY, _MOST_OF_PROJECT = 16, 4
# After so long a run begins nothing more, and the next one finds the channels that came up since.
_RUN_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attempt. status: of the answer, None: there was none. told: a sentence.

    is_unsendable: nobody was asked, for there is no way to write this message. retry_after_s: what
    the receiver asks us to wait, None: it does not.
    """

    is_sent: bool
    status: int | None = None
    told: str = ""
    is_unsendable: bool = False
    retry_after_s: float | None = None


Send = Callable[[Target, Outgoing], Future[Outcome]]
"""Begins to send a message. What it gives is always done in the end, within bounded time."""
Sending = Callable[[], AbstractContextManager[Send]]
"""Opens what sends, for the messages of one run."""


def is_due(now: datetime) -> bool:
    """Whether a channel has a message to send."""
    return _due(now).exists()


def deliver_due(
    *,
    now: datetime,
    sending: Sending,
    go_on: Callable[[], None],
    seconds: float = _RUN_SECONDS,
) -> int:
    """Send what waits, each channel's messages in order up to one that fails; how many were sent.

    now: the database's clock; seconds: after which nothing more is begun. Raises what `go_on`
    raises, which is asked after each message, once all that is under way has ended and is noted.
    """
    give_up_old(now=now)
    channels = list(_due(now).order_by(F("retry_at").asc(nulls_first=True), "id"))
    sent = 0
    if channels:
        with sending() as send:
            sent = _Run(_taking_turns(channels), now, send, go_on).deliver(seconds)
    delete_gone()
    return sent


def give_up_old(*, now: datetime) -> int:
    """What has waited for longer than anybody wants to hear of it has failed, also of channels that
    are switched off; how many."""
    old = AlertDelivery.objects.filter(state="waiting", created_at__lt=now - _GIVEN_UP_AFTER)
    if not old.exists():
        return 0
    # What the last attempt came to says more.
    told = Case(When(told="", then=Value(_TOO_OLD)), default=F("told"))
    return write(lambda: old.update(state="failed", told=told, ended_at=Now()))


def delete_gone() -> None:
    """Delete the channels that have heard all that they were kept for (alerts.leaving)."""
    waiting = AlertDelivery.objects.filter(channel=OuterRef("pk"), state="waiting")
    gone = AlertChannel.objects.filter(~Exists(waiting), gone_at__isnull=False)
    if gone.exists():
        write(gone.delete)


def _taking_turns(channels: Sequence[AlertChannel]) -> list[AlertChannel]:
    """Those that did not fail first, and of these the first one of each project, then the second
    ones: many channels of one project come after the few of another."""
    seen: Counter[tuple[bool, int]] = Counter()
    ranked: list[tuple[bool, int, AlertChannel]] = []
    for channel in channels:
        has_failed = channel.retry_at is not None
        ranked.append((has_failed, seen[has_failed, channel.project_id], channel))
        seen[has_failed, channel.project_id] += 1
    return [channel for _, _, channel in sorted(ranked, key=lambda each: each[:2])]


def _due(now: datetime) -> QuerySet[AlertChannel]:
    waiting = _waiting().filter(channel=OuterRef("pk"))
    # What is to be tried later than anything is put off was noted before the clock was set back.
    is_set_back = Q(retry_at__gt=now + 2 * _LAST_RETRY)
    is_time = Q(retry_at__isnull=True) | Q(retry_at__lte=now) | is_set_back
    return AlertChannel.objects.filter(is_time, Exists(waiting))


def _waiting() -> QuerySet[AlertDelivery]:
    """What is to be sent; by a channel that is switched off what it is still to hear."""
    is_wanted = Q(channel__enabled=True) | Q(channel__left_at__isnull=False)
    return AlertDelivery.objects.filter(is_wanted, state="waiting")


class _Run:
    """One run: which channels have their turn yet, and what is under way."""

    def __init__(
        self,
        channels: Sequence[AlertChannel],
        now: datetime,
        send: Send,
        go_on: Callable[[], None],
    ) -> None:
        self._queue = deque(channels)
        self._now = now
        self._send = send
        self._go_on = go_on
        self._under_way: dict[Future[Outcome], tuple[AlertChannel, AlertDelivery]] = {}
        self._of_project: Counter[int] = Counter()
        self._sent = 0

    def deliver(self, seconds: float) -> int:
        """Send until nothing is left that may be begun; how many were sent.

        Raises the first fault, after all that was under way: what arrived is noted.
        """
        until = time.monotonic() + seconds
        fault = self._tried(self._begin)
        while self._under_way:
            done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
            for future in done:
                fault = self._tried(partial(self._settle, future)) or fault
            if fault is None and time.monotonic() < until:
                fault = self._tried(self._begin)
        if fault is not None:
            raise fault
        return self._sent

    @staticmethod
    def _tried(step: Callable[[], None]) -> Exception | None:
        try:
            step()
        except Exception as error:
            return error
        return None

    def _begin(self) -> None:
        """Begin as many messages as there is room for."""
        for channel in list(self._queue):
            if len(self._under_way) >= _MOST_UNDER_WAY:
                return
            if self._of_project[channel.project_id] >= _MOST_OF_PROJECT:
                continue
            self._queue.remove(channel)
            rows = _waiting().filter(channel=channel)
            row = rows.select_related("message", "project").order_by("id").first()
            if row is not None:
                self._under_way[self._sending(channel, row)] = channel, row
                self._of_project[channel.project_id] += 1

    def _sending(self, channel: AlertChannel, row: AlertDelivery) -> Future[Outcome]:
        target = target_of(channel)
        if target is None:
            told = "The stored address cannot be read any more: the signing key has changed."
            unread = Future[Outcome]()
            unread.set_result(Outcome(is_sent=False, told=told))
            return unread
        links = Links(
            base=conf.env().public_url.rstrip("/"),
            project=row.project.slug,
            acknowledge=path_of(row.message.key, project_id=row.project_id),
        )
        try:
            sent = outgoing(target, message_of(row.message), links, now=self._now)
            return self._send(target, sent)
        except Exception as error:
            unsent = Future[Outcome]()
            unsent.set_exception(error)
            return unsent

    def _settle(self, future: Future[Outcome]) -> None:
        """Note what came of a message; its channel may have another turn after the others."""
        channel, row = self._under_way.pop(future)
        self._of_project[channel.project_id] -= 1
        outcome = _outcome_of(future)
        is_next = write(lambda: _note(channel, row, outcome, self._now))
        self._sent += outcome.is_sent
        if is_next:
            self._queue.append(channel)
        self._go_on()


def _outcome_of(future: Future[Outcome]) -> Outcome:
    """What came of an attempt. What nobody has thought of is the affair of this channel alone: as a
    fault of the run it would keep all projects' messages from being sent, over and over."""
    try:
        return future.result()
    except CancelledError:
        raise  # this process ends
    except Exception as error:
        # Its words may hold the channel's secret.
        name = type(error).__name__
        logger.error("a message of an alert was not sent: %s", name)
        return Outcome(is_sent=False, told=f"HelmDash could not send it: {name}.")


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
    if outcome.retry_after_s is not None:
        asked = min(outcome.retry_after_s, _LAST_RETRY.total_seconds())  # it may ask for centuries
        wait = max(wait, timedelta(seconds=asked))
    rows.update(failures=F("failures") + 1, retry_at=Now() + wait)
    return False


def _state_after(row: AlertDelivery, attempts: int, outcome: Outcome, now: datetime) -> str:
    status = outcome.status
    is_refused = status is not None and 400 <= status < 500 and status not in _NOT_BLAMED
    is_blamed = outcome.is_unsendable or is_refused
    is_over = is_blamed and attempts >= _MOST_BLAMED
    return "failed" if is_over or now - row.created_at >= _GIVEN_UP_AFTER else "waiting"


def message_of(row: AlertMessage) -> Message:
    """A stored message."""
    body: dict[str, Any] = orjson.loads(row.body)
    entries = tuple(Entry(**each) for each in body.pop("entries"))
    return Message(entries=entries, **body)
