"""Messages on their way: nobody waits behind a slow receiver, and nothing goes where it may not."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from helmdash import notifier
from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.channels import (
    PAGERDUTY_URL,
    ChannelKind,
    Outgoing,
    Target,
)
from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.alerts import delivering, editing, looking
from helmdash.operations.alerts.delivering import Outcome
from helmdash.operations.alerts.editing import AlertProblem, ChannelEdit
from helmdash.operations.alerts.forgetting import forget_conversation, forget_old
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.alerts.observing import Watched
from helmdash.queries.alerts.observing import look as look_at
from helmdash.queries.alerts.rules import settings_of
from helmdash.records.models import Alert, AlertChannel, AlertDelivery, AlertMessage, AlertRule
from tests.factories import NOW, make_project
from tests.operations.alert_support import CRITICAL, SENT, Receiver, call, channel, look, rule
from tests.operations.test_alerts import listening
from tests.support.postgres import closed_database

SECOND = timedelta(seconds=1)
KEY = "0" * 32


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def try_out(project: ProjectInfo, number: int) -> None:
    """Have a test message wait for a channel."""
    assert editing.send_test(actor=SHELL, project_id=project.id, channel_id=number, now=NOW)


@pytest.mark.parametrize(
    ("asked", "waits_s"),
    [
        ("90", 90),
        # as a date, by the receiver's own clock (RFC 9110, 10.2.3)
        ("Sun, 22 Nov 2026 01:01:30 GMT", 90),
        # shorter than our own first wait
        ("1", 5),
        # no wait that anybody can mean
        ("9" * 19, 600),
    ],
)
def test_a_receiver_of_messages_is_left_alone_for_as_long_as_it_asks(
    project: ProjectInfo, asked: str, waits_s: int
) -> None:
    date = "Sun, 22 Nov 2026 01:00:00 GMT"
    with listening(lambda: 429, retry_after=asked, date=date) as (url, _):
        try_out(project, channel(project, address=url, allow_private=True))
        before = timezone.now()

        delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    retry_at = AlertChannel.objects.get().retry_at
    assert retry_at is not None
    assert waits_s - 1 < (retry_at - before).total_seconds() < waits_s + 20


class Slow(Receiver):
    """Answers those in `slow` only when somebody else has been sent to; most: at once of them."""

    def __init__(self, *slow: str) -> None:
        super().__init__()
        self.slow = slow
        self.held: list[Future[Outcome]] = []
        self.most = 0

    def send(self, target: Target, shaped: Outgoing) -> Future[Outcome]:
        if target.name not in self.slow:
            for future in self.held:
                future.set_result(SENT)
            self.held, self.slow = [], ()
            return super().send(target, shaped)
        self.got.append((target.name, {}))
        future = Future[Outcome]()
        self.held.append(future)
        self.most = max(self.most, len(self.held))
        return future


def test_a_slow_receiver_holds_up_no_other(project: ProjectInfo) -> None:
    other_is_there = threading.Event()

    def waits() -> int:
        return 200 if other_is_there.wait(5) else 503

    def hurries() -> int:
        other_is_there.set()
        return 200

    def add(name: str, url: str) -> None:
        made = channel(project, ChannelKind.SLACK, name=name, address=url, allow_private=True)
        try_out(project, made)

    with listening(waits) as (slow, _), listening(hurries) as (fast, _):
        add("slow", slow)
        add("fast", fast)
        sent = delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    assert sent == 2


def test_channels_that_failed_come_after_all_others(project: ProjectInfo) -> None:
    for name in ("failed", "healthy"):
        try_out(project, channel(project, name=name))
    AlertChannel.objects.filter(name="failed").update(failures=3, retry_at=NOW - SECOND)
    receiver = Receiver()

    assert receiver.deliver(is_later=False) == 2
    assert [name for name, _ in receiver.got] == ["healthy", "failed"]


def test_a_project_of_slow_receivers_takes_no_other_ones_turn(project: ProjectInfo) -> None:
    slow = [f"slow-{number}" for number in range(20)]
    for name in slow:
        try_out(project, channel(project, name=name))
    other = make_project(slug="other")
    try_out(other, channel(other, name="theirs"))
    receiver = Slow(*slow)

    assert receiver.deliver() == 21
    assert receiver.most <= 4


def test_a_run_ends_in_time_and_the_next_one_goes_on(project: ProjectInfo) -> None:
    for number in (channel(project, name="a"), channel(project, name="b")):
        for _ in range(3):
            try_out(project, number)
    receiver = Receiver()

    assert [receiver.deliver(seconds=0) for _ in range(4)] == [2, 2, 2, 0]
    assert [name for name, _ in receiver.got] == ["a", "b"] * 3


def test_who_ends_a_run_has_what_is_under_way_noted(project: ProjectInfo) -> None:
    for name in "ab":
        for _ in range(2):
            try_out(project, channel_of(project, name))
    receiver = Receiver()

    def stops() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        delivering.deliver_due(now=NOW, sending=receiver.open, go_on=stops)

    assert len(receiver.got) == AlertDelivery.objects.filter(state="sent").count() == 2


def channel_of(project: ProjectInfo, name: str) -> int:
    """The number of a channel, made where it is missing."""
    row = AlertChannel.objects.filter(project_id=project.id, name=name).first()
    return row.pk if row else channel(project, name=name)


def test_what_has_waited_for_days_is_not_sent(project: ProjectInfo) -> None:
    number = channel(project, name="off")
    try_out(project, number)
    AlertChannel.objects.update(enabled=False)
    receiver = Receiver()
    later = NOW + timedelta(days=60)

    # Switched on again after two months: it hears of what is new.
    AlertChannel.objects.update(enabled=True)
    assert receiver.deliver(now=later) == 0
    row = AlertDelivery.objects.get()
    assert (row.state, row.told, receiver.got) == ("failed", "It was not sent within 3 days.", [])

    # Of one that stays off, nothing is left.
    try_out(project, number)
    AlertChannel.objects.update(enabled=False)
    assert forget_old(now=later) == 2
    assert not AlertMessage.objects.exists()


@pytest.mark.parametrize(
    ("kind", "address", "moved"),
    [
        (ChannelKind.PAGERDUTY, PAGERDUTY_URL, "https://mine.example"),
        (ChannelKind.PAGERDUTY, PAGERDUTY_URL, "http://events.pagerduty.com"),
        (ChannelKind.ALERTMANAGER, "https://am.example/a", "https://am.example:8443/a"),
    ],
)
def test_a_stored_secret_goes_to_no_other_host(
    project: ProjectInfo, kind: ChannelKind, address: str, moved: str
) -> None:
    number = channel(project, kind, address=address, secret=KEY)

    def edit(address: str, secret: str = "") -> None:
        typed = ChannelEdit(name="x", kind=kind, address=address, secret=secret)
        editing.save_channel(
            actor=SHELL, project_id=project.id, edit=typed, channel_id=number, now=NOW
        )

    with pytest.raises(AlertProblem) as raised:
        edit(moved)
    assert "type it again" in raised.value.errors["secret"]
    edit("")
    edit(f"{address}/more")  # the same host
    edit(moved, KEY)


def test_a_webhook_moves_with_its_key_which_it_is_never_sent(project: ProjectInfo) -> None:
    number = channel(project)
    typed = ChannelEdit(name="x", kind=ChannelKind.WEBHOOK, address="https://new.example/")

    saved = editing.save_channel(
        actor=SHELL, project_id=project.id, edit=typed, channel_id=number, now=NOW
    )
    assert (saved.made_secret, AlertChannel.objects.get().host) == (None, "new.example")


def test_a_look_from_before_an_erasure_brings_no_name_back(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CRITICAL, "erased")
    row = AlertRule.objects.get()
    watched = Watched(
        id=row.pk, project_id=project.id, settings=settings_of(row), cursor=row.cursor
    )
    seen = look_at(watched, now=NOW + 5 * SECOND).seen
    assert [each.subject for each in seen] == ["erased"]

    def forget() -> None:
        forget_conversation(project_id=project.id, name="erased", now=NOW)

    write(forget)
    write(lambda: looking._apply(row, seen, NOW + 5 * SECOND))
    assert not Alert.objects.exists()

    # What happens from then on is looked at as before.
    call(project, CRITICAL, "stays")
    look(NOW + 10 * SECOND)
    assert Alert.objects.filter(subject="stays").exists()


class Cutting(Receiver):
    """Takes one message while nobody gets into the database, and the next ones as ever."""

    def __init__(self, until: ExitStack) -> None:
        super().__init__()
        self._until: ExitStack | None = until

    def send(self, target: Target, shaped: Outgoing) -> Future[Outcome]:
        if self._until is not None:
            given = connection.get_connection_params()
            server = "postgresql://{user}:{password}@{host}:{port}".format(
                **{name: quote(str(given.get(name) or ""), safe="") for name in _PARTS}
            )
            self._until.enter_context(closed_database(f"{server}/{given['dbname']}"))
            self._until = None
        return super().send(target, shaped)


_PARTS = ("user", "password", "host", "port")


@pytest.mark.django_db(transaction=True)
def test_an_outage_of_the_database_while_messages_are_sent_loses_none() -> None:
    """A real one: connections are ended after the first message went out, and none is let in."""
    if connection.vendor != "postgresql":
        pytest.skip("a file is not thrown out of")
    project = make_project()
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    for number in range(3):
        call(project, CRITICAL, f"talk-{number}")
    assert look(NOW + 5 * SECOND) == 3

    with ExitStack() as outage:
        receiver = Cutting(outage)
        with pytest.raises(OperationalError):
            receiver.deliver()
        connection.close()
        # While it is away: no look and no delivery, and nothing goes out.
        with pytest.raises(OperationalError):
            look(NOW + 10 * SECOND)
        with pytest.raises(OperationalError):
            receiver.deliver()
        connection.close()
    assert receiver.deliver() == 3
    assert receiver.deliver() == 0

    keys = [body["dedup_key"] for _, body in receiver.got]
    # What went out and could not be noted is sent once more, by the same key.
    assert len(keys) == 4
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert {each.state for each in AlertDelivery.objects.all()} == {"sent"}
