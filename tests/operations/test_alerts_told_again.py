"""What an Alertmanager, which keeps alerts in memory only, is told again of what fires."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any, cast

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.alerts import repeating
from helmdash.operations.alerts.delivering import Outcome
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.alerts import log
from helmdash.records.models import Alert, AlertMessage, AlertRule
from tests.factories import NOW, make_capture, make_project, record
from tests.operations.alert_support import (
    CRITICAL,
    HEALTHY,
    Receiver,
    call,
    channel,
    look,
    rule,
)

pytestmark = pytest.mark.django_db
# After the look that a rule begins with.
SOON, MINUTE = timedelta(seconds=5), timedelta(minutes=1)
# Apprise takes names that an operator gave.
_REMEMBER = set(ChannelKind) - {ChannelKind.ALERTMANAGER, ChannelKind.APPRISE}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def _tell(now: datetime) -> int:
    look(now)
    return repeating.tell_again(now=now, go_on=lambda: None)


def _firing(project: ProjectInfo, **over: Any) -> Receiver:
    """One that was told of a critical conversation when it began."""
    rule(project, RuleKind.LEVEL, channel(project, ChannelKind.ALERTMANAGER), **over)
    call(project, CRITICAL)
    receiver = Receiver()
    look(NOW + SOON)
    assert _tell(NOW + MINUTE) == 0
    receiver.deliver()
    assert len(receiver.got) == 1
    return receiver


def _told(receiver: Receiver) -> list[dict[str, Any]]:
    """Its bodies are lists of alerts."""
    return [each for _, body in receiver.got for each in cast(list[dict[str, Any]], body)]


def _ends(receiver: Receiver) -> list[datetime]:
    return [datetime.fromisoformat(each["endsAt"]) for each in _told(receiver)]


def test_what_fires_is_told_again_every_ten_minutes_until_it_is_over(project: ProjectInfo) -> None:
    receiver = _firing(project)

    for minute in (2, 10, 11, 12, 20, 21, 22, 31, 32):
        _tell(NOW + minute * MINUTE)
        receiver.deliver(now=NOW + minute * MINUTE)
    call(project, HEALTHY, at=NOW + 35 * MINUTE)
    for minute in (35, 36, 46, 59):
        _tell(NOW + minute * MINUTE)
        receiver.deliver(now=NOW + minute * MINUTE)

    later = timedelta(days=2)
    assert _ends(receiver)[:-1] == [NOW + later, *(NOW + n * MINUTE + later for n in (11, 21, 31))]
    assert _ends(receiver)[-1] == NOW + 35 * MINUTE
    assert len({str(each["labels"]) for each in _told(receiver)}) == 1
    # Of those that only tell again the log has the newest.
    assert [each.headline for each in log.deliveries(project_id=project.id)] == [
        "Resolved: talk is critical",
        "Told again: talk is critical",
        "talk is critical",
    ]


def test_an_end_comes_after_what_was_told_again_before_it(project: ProjectInfo) -> None:
    receiver = _firing(project)
    assert _tell(NOW + 11 * MINUTE) == 1
    call(project, HEALTHY, at=NOW + 12 * MINUTE)
    assert [look(NOW + minute * MINUTE) for minute in (13, 14)] == [0, 1]

    # It was away, and hears of both.
    receiver.answers = [Outcome(is_sent=False, status=503)]
    for _ in range(2):
        receiver.deliver(now=NOW + 15 * MINUTE)

    assert _ends(receiver)[-2:] == [NOW + 15 * MINUTE + timedelta(days=2), NOW + 13 * MINUTE]


def test_nothing_more_is_made_while_the_last_one_waits(project: ProjectInfo) -> None:
    _firing(project)

    assert [_tell(NOW + minute * MINUTE) for minute in (11, 30, 600)] == [1, 0, 0]


def test_who_sees_to_it_does_not_end_it(project: ProjectInfo) -> None:
    _firing(project)
    Alert.objects.update(acknowledged_at=NOW, acknowledged_by="vera")

    assert _tell(NOW + 11 * MINUTE) == 1


def test_quiet_hours_are_quiet(project: ProjectInfo) -> None:
    # NOW is 14:41 there.
    _firing(project, quiet_start=time(14, 50), quiet_end=time(15, 10))

    assert [_tell(NOW + minute * MINUTE) for minute in (15, 28, 30)] == [0, 0, 1]


@pytest.mark.parametrize("kind", sorted(_REMEMBER))
def test_who_remembers_is_told_once(project: ProjectInfo, kind: ChannelKind) -> None:
    rule(project, RuleKind.LEVEL, channel(project, kind))
    call(project, CRITICAL)
    assert [_tell(NOW + SOON), look(NOW + MINUTE), _tell(NOW + 11 * MINUTE)] == [0, 1, 0]


def test_many_are_told_in_parts_and_what_is_erased_in_none(project: ProjectInfo) -> None:
    receiver = Receiver()
    rule(project, RuleKind.LEVEL, channel(project, ChannelKind.ALERTMANAGER))
    usage = {"prompt_tokens": CRITICAL, "completion_tokens": 9}
    names = [f"talk-{n}" for n in range(510)]
    record(
        *(make_capture(conversation=name, usage=usage, started_at=NOW) for name in names),
        project=project,
    )
    look(NOW + SOON)
    look(NOW + MINUTE)
    receiver.deliver()
    receiver.got.clear()

    assert _tell(NOW + 11 * MINUTE) == 2
    erase_conversation(actor=SHELL, project=project, conversation="talk-7", now=NOW)
    receiver.deliver()

    told = [each["labels"]["subject"] for each in _told(receiver) if each["labels"]["subject"]]
    assert sorted(told) == sorted(set(names) - {"talk-7"})
    assert not AlertMessage.objects.filter(body__contains='"talk-7"').exists()
    lines = AlertMessage.objects.order_by("id").values_list("headline", flat=True)
    assert [each.startswith("Told again: ") for each in lines] == [False, False, True, True, False]
    AlertRule.objects.update(enabled=False)
    assert _tell(NOW + 22 * MINUTE) == 0
