"""Alerts: what rules see becomes messages, each once, and messages arrive, whatever breaks down."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, time, timedelta
from email import message_from_bytes
from email.errors import HeaderParseError
from email.policy import default
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.core import mail
from django.db.models import Model

from helmdash import notifier
from helmdash.core.access.permissions import SHELL, Forbidden, MemberRole, Person
from helmdash.core.alerts.channels import ChannelKind, HttpPost, Links, Target, outgoing
from helmdash.core.alerts.messages import Entry, Message
from helmdash.core.alerts.rules import RuleKind
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.alerts import acknowledging, delivering, editing, looking
from helmdash.operations.alerts.delivering import Outcome
from helmdash.operations.alerts.editing import AlertProblem, ChannelEdit, RuleEdit
from helmdash.operations.alerts.forgetting import forget_old
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.operations.retention.expired import delete_expired
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.alerts.rules import channels
from helmdash.records.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertMessage,
    AlertRule,
    AuditEntry,
    Call,
    Conversation,
    Exporter,
    PendingExport,
    RecorderLedger,
)
from helmdash.records.statements.bulk import insert_rows
from tests.factories import NOW, make_capture, make_project, record
from tests.operations.alert_support import (
    CAUTION,
    CRITICAL,
    HEALTHY,
    Receiver,
    call,
    channel,
    look,
    rule,
)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PAGED = ("trigger", "resolve")


def hooked(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [body for name, body in receiver.got if name == "webhook"]
    return [(each["status"], each["title"]) for body in bodies for each in body["alerts"]]


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def test_each_change_of_a_conversation_is_told_once(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project))
    receiver = Receiver()

    for minute, tokens in enumerate((HEALTHY, CAUTION, CAUTION, CRITICAL, HEALTHY, CAUTION)):
        at = NOW + minute * MINUTE
        call(project, tokens, at=at)
        for later in (5, 10, 34, 36, 50, 55):
            look(at + later * SECOND)
        receiver.deliver()

    assert receiver.told == [
        ("firing", "talk is caution"),
        ("firing", "talk is critical"),
        ("resolved", "Resolved: talk is critical"),
        ("firing", "talk is caution"),
    ]
    keys = [body["alerts"][0]["dedup_key"] for _, body in receiver.got]
    assert (keys[0] == keys[1] == keys[2], keys[3] == keys[0]) == (True, False)
    assert len({body["dedup_key"] for _, body in receiver.got}) == 4


def test_nothing_waits_until_a_clock_that_was_set_back_is_there_again(project: ProjectInfo) -> None:
    """Also of a rule that was edited on a host whose clock is ahead."""
    rule(project, RuleKind.LEVEL, channel(project))
    receiver = Receiver()
    call(project, CRITICAL, at=NOW)
    look(NOW + 2 * HOUR)
    AlertRule.objects.update(next_at=NOW + 2 * HOUR)
    AlertChannel.objects.update(failures=1, retry_at=NOW + 2 * HOUR)

    assert look(NOW + MINUTE) == 1
    receiver.deliver(now=NOW + MINUTE, is_later=False)

    assert receiver.told == [("firing", "talk is critical")]


def test_what_begins_again_before_its_end_was_told_has_its_key(project: ProjectInfo) -> None:
    """A receiver that opened something by that key would keep it open for ever."""
    rule(project, RuleKind.LEVEL, channel(project))
    receiver = Receiver()
    # Within the half minute that changes are gathered: over, and on again.
    for second, tokens in ((0, CRITICAL), (60, HEALTHY), (70, CRITICAL), (180, HEALTHY)):
        call(project, tokens, at=NOW + second * SECOND)
        look(NOW + (second + 5) * SECOND)
        if second != 60:
            look(NOW + (second + 36) * SECOND)
        receiver.deliver()

    assert [status for status, _ in receiver.told] == ["firing", "firing", "resolved"]
    assert len({body["alerts"][0]["dedup_key"] for _, body in receiver.got}) == 1
    assert len({body["dedup_key"] for _, body in receiver.got}) == 3


def test_a_burst_is_gathered_and_programs_hear_of_every_one(project: ProjectInfo) -> None:
    hook, slack = channel(project), channel(project, ChannelKind.SLACK)
    rule(project, RuleKind.LEVEL, hook, slack)
    usage = {"prompt_tokens": CRITICAL, "completion_tokens": 9}
    many = [make_capture(conversation=f"talk-{n}", usage=usage, started_at=NOW) for n in range(510)]
    record(*many, project=project)
    receiver = Receiver()

    made = [look(NOW + second * SECOND) for second in (5, 10, 36, 41, 46)]
    receiver.deliver()

    assert made == [0, 0, 2, 0, 0]
    assert sorted(name for name, _ in receiver.got) == ["slack", "webhook", "webhook"]
    hooked = [body for name, body in receiver.got if name == "webhook"]
    assert [body["total"] for body in hooked] == [510, 510]
    assert len({each["dedup_key"] for body in hooked for each in body["alerts"]}) == 510
    (slacked,) = [body for name, body in receiver.got if name == "slack"]
    assert slacked["text"] == "level: 510 changes, 510 firing"


def test_a_dead_receiver_loses_nothing_and_keeps_the_order(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    for number in range(3):
        call(project, CRITICAL, f"talk-{number}")
    assert look(NOW + 5 * SECOND) == 3
    receiver = Receiver()
    receiver.answers = [
        Outcome(is_sent=False, told="no answer"),
        Outcome(is_sent=False, status=503),
    ]

    assert receiver.deliver() == 0
    # Nobody asks again before its time, and what is behind waits.
    assert AlertChannel.objects.filter(failures=1, retry_at__isnull=False).exists()
    AlertChannel.objects.update(retry_at=NOW + 5 * SECOND)
    assert receiver.deliver(is_later=False) == 0
    assert receiver.deliver() == 0
    assert len(receiver.got) == 2
    # Sent, and the process is killed before it is noted.
    receiver.answers = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        receiver.deliver()
    assert receiver.deliver() == 3
    assert receiver.deliver() == 0

    keys = [body["dedup_key"] for _, body in receiver.got]
    assert keys[0] == keys[1] == keys[2] == keys[3]
    assert len(set(keys)) == 3
    assert {each.state for each in AlertDelivery.objects.all()} == {"sent"}


def test_what_nobody_has_thought_of_holds_up_one_channel_alone(
    project: ProjectInfo, caplog: pytest.LogCaptureFixture
) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CRITICAL)
    look(NOW + 5 * SECOND)
    other = make_project(slug="other")
    rule(other, RuleKind.LEVEL, channel(other), group_s=0)
    record(make_capture(usage={"prompt_tokens": CRITICAL}, started_at=NOW), project=other)
    look(NOW + 10 * SECOND)
    receiver = Receiver()
    receiver.answers = [RuntimeError("https://hooks.example.com/x/y")]

    assert receiver.deliver() == 1

    stuck = AlertDelivery.objects.get(project_id=project.id)
    assert (stuck.state, stuck.attempts) == ("waiting", 1)
    assert stuck.told == "HelmDash could not send it: RuntimeError."
    assert "hooks.example.com" not in caplog.text
    assert receiver.deliver() == 1


@pytest.mark.parametrize(
    "answer",
    [
        Outcome(is_sent=False, status=404, told="it answered 404"),
        Outcome(is_sent=False, is_unsendable=True, told="no mail"),
    ],
)
def test_a_message_that_is_refused_five_times_makes_way_for_the_next_one(
    project: ProjectInfo, answer: Outcome
) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CRITICAL)
    look(NOW + 5 * SECOND)
    receiver = Receiver()
    receiver.answers = [answer] * 5

    sent = [receiver.deliver() for _ in range(6)]

    assert sent == [0] * 6
    row = AlertDelivery.objects.get()
    assert (row.state, row.attempts, row.http_status) == ("failed", 5, answer.status)


def test_a_database_that_breaks_off_loses_no_change(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CRITICAL)

    with monkeypatch.context() as patched:

        def breaks(model: type[Model], rows: Sequence[Mapping[str, Any]]) -> None:
            if model is AlertDelivery:
                raise RuntimeError("the connection is gone")
            insert_rows(model, rows)

        patched.setattr(looking, "insert_rows", breaks)
        assert look(NOW + 5 * SECOND) == 0
    assert AlertRule.objects.get().problem == "RuntimeError"
    assert AlertMessage.objects.count() == 0

    assert look(NOW + 70 * SECOND) == 1
    assert AlertRule.objects.get().problem == ""
    assert look(NOW + 90 * SECOND) == 0


def test_in_quiet_hours_messages_wait_and_what_was_over_by_then_is_not_told(
    project: ProjectInfo,
) -> None:
    # NOW is 14:41 there.
    quiet = {"quiet_start": time(14), "quiet_end": time(15)}
    rule(project, RuleKind.LEVEL, channel(project), **quiet)
    call(project, CRITICAL, "stays")
    call(project, CRITICAL, "ends")
    look(NOW + 5 * SECOND)
    call(project, HEALTHY, "ends", at=NOW + MINUTE)
    assert look(NOW + 2 * MINUTE) == 0

    assert look(NOW + 20 * MINUTE) == 1
    assert AlertMessage.objects.get().headline == "stays is critical"


def test_what_somebody_acknowledged_is_told_again_when_it_is_over(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CAUTION)
    look(NOW + 5 * SECOND)
    path = acknowledging.path_of(AlertMessage.objects.get().key, project_id=project.id)
    token = path.removesuffix("/").rpartition("/")[2]

    found = acknowledging.find(token)
    assert found is not None
    assert (found.headline, found.firing, found.acknowledged) == ("talk is caution", 1, 0)
    assert acknowledging.acknowledge(token, now=NOW)
    assert not acknowledging.acknowledge(f"{token}x", now=NOW)
    call(project, CRITICAL, at=NOW + MINUTE)
    assert look(NOW + 2 * MINUTE) == 0
    call(project, HEALTHY, at=NOW + 3 * MINUTE)
    assert look(NOW + 4 * MINUTE) == 1

    assert AlertMessage.objects.order_by("-id")[0].headline == "Resolved: talk is critical"
    assert AuditEntry.objects.filter(action="acknowledged").count() == 1


def _overflow(project: ProjectInfo) -> None:
    said = {"error_code": "context_length_exceeded", "error_message": "maximum context length"}
    given = {"http_status": 400, "finish_reason": None, "usage": None, **said}
    record(make_capture(started_at=NOW, **given), project=project)


def _failures(project: ProjectInfo) -> None:
    given = {"http_status": 429, "finish_reason": None, "usage": None, "started_at": NOW}
    record(*(make_capture(conversation=None, **given) for _ in range(5)), project=project)


def _slow(project: ProjectInfo) -> None:
    def calls(many: int, at: datetime, ms: int) -> None:
        given = {"conversation": None, "started_at": at, "latency_ms": ms}
        record(*(make_capture(**given) for _ in range(many)), project=project)

    calls(200, NOW - timedelta(days=2), 900)
    calls(20, NOW, 5000)
    fold_all()


def _filling(project: ProjectInfo) -> None:
    for number, tokens in enumerate((102_000, 105_000, 108_000, 111_000)):
        call(project, tokens, at=NOW + number * SECOND)


def _filling_fast(project: ProjectInfo) -> None:
    """By 30,000 a generation: the caution line is the next one, and one prompt passes both."""
    for number, tokens in enumerate((30_000, 60_000, 90_000)):
        call(project, tokens, at=NOW + number * SECOND)


@pytest.mark.parametrize(
    ("kind", "make", "title", "over_after"),
    [
        (RuleKind.REFUSAL, _overflow, "talk: a prompt was refused as too long", 11 * MINUTE),
        (RuleKind.FAILING, _failures, "openai/gpt-4o: 5 calls rate limited", 60 * MINUTE),
        (RuleKind.LATENCY, _slow, "openai/gpt-4o: 20 of 20 calls are slow", 60 * MINUTE),
        (RuleKind.COUNTDOWN, _filling, "talk: about 2 generations to critical", 60 * MINUTE),
        (RuleKind.COUNTDOWN, _filling_fast, "talk: about 1 generation to critical", 60 * MINUTE),
    ],
)
def test_every_kind_fires_and_is_over(
    project: ProjectInfo, kind: RuleKind, make: Any, title: str, over_after: timedelta
) -> None:
    rule(project, kind, channel(project), group_s=0)
    make(project)

    assert look(NOW + MINUTE) == 1
    assert AlertMessage.objects.get().headline == title
    assert look(NOW + 2 * MINUTE) == 0
    assert look(NOW + over_after + MINUTE) == 1
    assert Alert.objects.get().resolved_at is not None


# prompts of a limit of 128,000, a minute apart (None: not reported); what each tells of 80 percent
FULLNESS = [
    ([102_399, 102_400, 110_000, 127_000], [None, "talk takes 80 % of its limit", None, None]),
    # Cleared or compacted, and filled again.
    ([103_000, 20_000, 104_000],
     ["talk takes 80 % of its limit", "Resolved: talk takes 80 % of its limit",
      "talk takes 81 % of its limit"]),
    # What is not known neither ends it nor begins it.
    ([None, 103_000, None, 20_000],
     [None, "talk takes 80 % of its limit", None, "Resolved: talk takes 80 % of its limit"]),
]  # fmt: skip


@pytest.mark.parametrize(("prompts", "told"), FULLNESS)
def test_a_share_of_the_limit_is_told_once_at_each_crossing(
    project: ProjectInfo, prompts: list[int | None], told: list[str | None]
) -> None:
    rule(project, RuleKind.FULLNESS, channel(project), group_s=0, threshold=80)
    look(NOW)

    said: list[str | None] = []
    for number, tokens in enumerate(prompts):
        at = NOW + number * MINUTE
        usage = {"prompt_tokens": tokens, "completion_tokens": 9} if tokens else None
        record(make_capture(usage=usage, started_at=at), project=project)
        many = look(at + 6 * SECOND) + look(at + 12 * SECOND)
        newest = AlertMessage.objects.order_by("-id").first()
        said.append(newest.headline if many and newest else None)
        assert many <= 1

    assert said == told


def test_three_rules_tell_of_three_shares_and_a_day_without_a_call_ends_them(
    project: ProjectInfo,
) -> None:
    told = channel(project)
    for share in (70, 80, 90):
        rule(project, RuleKind.FULLNESS, told, group_s=0, threshold=share, name=f"{share} %")
    call(project, 116_000, at=NOW)
    assert look(NOW + MINUTE) == 3
    # A late call of a conversation that is older than what is looked at each time.
    call(project, 100_000, at=NOW + SECOND)
    assert look(NOW + 40 * MINUTE) == 2

    assert look(NOW + timedelta(days=2)) == 1
    assert not Alert.objects.filter(resolved_at__isnull=True).exists()


def test_who_is_erased_is_over_for_a_rule_on_fullness(project: ProjectInfo) -> None:
    rule(project, RuleKind.FULLNESS, channel(project), group_s=0)
    call(project, 116_000, at=NOW)
    look(NOW + MINUTE)

    Conversation.objects.all().delete()

    assert look(NOW + 3 * MINUTE) == 1
    assert Alert.objects.get().resolved_at is not None


def test_silence_is_of_a_project_that_had_calls(project: ProjectInfo) -> None:
    rule(project, RuleKind.SILENCE, channel(project), group_s=0)
    assert look(NOW + 2 * MINUTE) == 0
    call(project, HEALTHY)

    assert look(NOW + 30 * MINUTE) == 0
    assert look(NOW + 61 * MINUTE) == 1
    call(project, HEALTHY, at=NOW + 62 * MINUTE)
    assert look(NOW + 63 * MINUTE) == 1
    assert AlertMessage.objects.order_by("-id")[0].headline == "Resolved: No calls for 60 minutes"


def test_a_silence_of_a_week_ends_and_says_that_no_call_came(project: ProjectInfo) -> None:
    """Who reads "Resolved" alone takes it that calls come in again."""
    rule(project, RuleKind.SILENCE, channel(project), group_s=0)
    call(project, HEALTHY)
    assert look(NOW + 61 * MINUTE) == 1
    assert look(NOW + timedelta(days=7, minutes=1)) == 1
    assert look(NOW + timedelta(days=7, minutes=3)) == 0

    receiver = Receiver()
    receiver.deliver(now=NOW + timedelta(days=2))

    began, over = (body["alerts"][0] for _, body in receiver.got)
    assert began["detail"].startswith("the newest started at")
    assert over["status"] == "resolved"
    assert over["detail"] == "no call came for a week either: it is taken to be unused"


def test_a_silence_ends_and_says_so_where_no_call_is_kept_any_more(project: ProjectInfo) -> None:
    """Of a project that keeps its calls for less than the week that a silence takes."""
    rule(project, RuleKind.SILENCE, channel(project), group_s=0)
    call(project, HEALTHY)
    assert look(NOW + 61 * MINUTE) == 1
    later = NOW + timedelta(days=2)
    delete_expired(actor=SHELL, project=replace(project, retention_days=1), now=later)
    assert not Call.objects.exists()

    assert look(later) == 1
    assert look(later + 2 * MINUTE) == 0

    receiver = Receiver()
    receiver.deliver(now=later)
    over = receiver.got[-1][1]["alerts"][0]
    assert over["status"] == "resolved"
    assert over["detail"] == "no call came either: the ones before it are kept no longer"


def test_a_rule_tells_what_changes_between_its_saving_and_its_first_look(
    project: ProjectInfo,
) -> None:
    """A look begins seconds later, or minutes where the server is being started. What was critical
    when it was saved is not told, nor what changed while it was switched off."""
    call(project, CRITICAL, "before")
    told = {"channels": (channel(project),), "enabled": True, "group_s": 0}
    given: dict[str, Any] = {"kind": RuleKind.LEVEL, "level": "critical", **told}
    edit = RuleEdit(name="full", **given)
    save = partial(editing.save_rule, actor=SHELL, project_id=project.id, now=NOW)

    number = save(edit=edit)
    call(project, CRITICAL, "between", NOW + MINUTE)
    look(NOW + 2 * MINUTE)
    save(edit=replace(edit, enabled=False), rule_id=number)
    call(project, CRITICAL, "off", NOW + 3 * MINUTE)
    save(edit=edit, rule_id=number)
    call(project, CRITICAL, "on again", NOW + 4 * MINUTE)
    look(NOW + 5 * MINUTE)

    subjects = Alert.objects.order_by("pk").values_list("subject", flat=True)
    assert list(subjects) == ["between", "on again"]


def test_a_sub_agent_that_gets_its_name_goes_on_being_critical(project: ProjectInfo) -> None:
    """Known by its kind at first, it was told to be over as soon as its id was known, and nothing
    began under that."""
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    by_kind = "s-1:agent:builtin:Explore"
    for name, route in ((by_kind, CallRoute.OTLP_LOG), ("s-1:a1", CallRoute.OTLP_SPAN)):
        told = make_capture(
            id="anthropic:req_1",
            conversation=name,
            parent="s-1",
            client_name="claude-code",
            routes=(route,),
            usage={"prompt_tokens": CRITICAL, "completion_tokens": 9},
            started_at=NOW,
        )
        record(told, project=project)
        if route is CallRoute.OTLP_LOG:
            assert [look(NOW + minutes * MINUTE) for minutes in (1, 3, 5)] == [1, 0, 0]
    assert Conversation.objects.get(generation__gte=1).name == "s-1:a1"

    look(NOW + 7 * MINUTE)

    firing = Alert.objects.filter(resolved_at__isnull=True)
    assert list(firing.values_list("subject", flat=True)) == ["s-1:a1"]
    assert set(AlertMessage.objects.values_list("headline", flat=True)) == {
        f"{by_kind} is critical",
        f"Resolved: {by_kind} is critical",
        "s-1:a1 is critical",
    }
    assert look(NOW + 9 * MINUTE) == 0


def test_switching_off_a_rule_writes_no_row_for_each_of_its_alerts(
    project: ProjectInfo, django_assert_max_num_queries: Any
) -> None:
    """Where it gathers: 10,000 took 3.7 s within one request, most of it for writing rows whole."""
    number = rule(project, RuleKind.LEVEL, channel(project))
    for at in range(30):
        call(project, CRITICAL, f"talk-{at}")
    assert look(NOW + 5 * SECOND) + look(NOW + 40 * SECOND) == 1
    edit = RuleEdit(name="level", kind=RuleKind.LEVEL, level="caution")

    with django_assert_max_num_queries(35) as asked:
        editing.save_rule(
            actor=SHELL, project_id=project.id, edit=edit, rule_id=number, now=NOW + MINUTE
        )

    written = [each["sql"] for each in asked.captured_queries if 'records_alert"' in each["sql"]]
    assert not [sql for sql in written if sql.startswith("INSERT")]
    assert Alert.objects.filter(resolved_at=NOW + MINUTE, pending_since=None).count() == 30


def test_a_rule_that_tells_each_alert_alone_writes_none_of_their_rows_whole_again(
    project: ProjectInfo, django_assert_max_num_queries: Any
) -> None:
    """That, and rows made by Django, took most of the 7 s of one request for 10,000."""
    number = rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    for at in range(150):
        call(project, CRITICAL, f"talk-{at}")
    edit = RuleEdit(name="level", kind=RuleKind.LEVEL, level="caution", group_s=0)

    with django_assert_max_num_queries(60) as asked:
        assert look(NOW + 5 * SECOND) == 150
        editing.save_rule(
            actor=SHELL, project_id=project.id, edit=edit, rule_id=number, now=NOW + MINUTE
        )

    assert not [each["sql"] for each in asked.captured_queries if "ON CONFLICT" in each["sql"]]
    receiver = Receiver()
    assert receiver.deliver(now=NOW + MINUTE) == 300
    assert sorted(hooked(receiver)) == sorted(
        (status, f"talk-{at} is critical") for at in range(150) for status in ("firing", "resolved")
    )
    told = Alert.objects.filter(resolved_at=NOW + MINUTE, told=2, pending_since=None)
    keys = set(AlertMessage.objects.filter(created_at=NOW + MINUTE).values_list("key", flat=True))
    assert set(told.values_list("message_key", flat=True)) == keys


@pytest.mark.parametrize("is_deleted", [False, True])
def test_who_was_told_of_an_alert_hears_of_its_end_where_nobody_looks_any_more(
    project: ProjectInfo, is_deleted: bool
) -> None:
    """By the alert's key, at once, also in quiet hours; of what nobody was told nobody hears."""
    hook, pager = channel(project), channel(project, ChannelKind.PAGERDUTY)
    at = NOW + HOUR  # in quiet hours
    quiet = {"quiet_start": time(at.hour), "quiet_end": time(at.hour + 2)}
    number = rule(project, RuleKind.LEVEL, hook, pager, **quiet)
    call(project, CRITICAL, "told")
    assert look(NOW + 5 * SECOND) + look(NOW + 40 * SECOND) == 1
    receiver = Receiver()
    receiver.deliver(now=NOW + MINUTE)
    call(project, CRITICAL, "fresh", at=at)
    assert look(at + SECOND) + look(at + 40 * SECOND) == 0

    if is_deleted:
        editing.delete_rule(actor=SHELL, project_id=project.id, rule_id=number, now=at + MINUTE)
        why = "the rule was deleted"
    else:
        # Takes its channels away as well.
        edit = RuleEdit(name="level", kind=RuleKind.LEVEL, level="caution")
        editing.save_rule(
            actor=SHELL, project_id=project.id, edit=edit, rule_id=number, now=at + MINUTE
        )
        why = "the rule was switched off"
    call(project, HEALTHY, "told", at=at + 2 * MINUTE)
    look(at + 2 * MINUTE)
    receiver.deliver(now=at + 2 * MINUTE)

    began, over = (body for name, body in receiver.got if name == "webhook")
    triggered, resolved = (body for name, body in receiver.got if name == "pagerduty")
    (alert,) = over["alerts"]
    assert (over["title"], over["firing"]) == ("Resolved: told is critical", 0)
    assert alert["dedup_key"] == began["alerts"][0]["dedup_key"]
    assert (alert["ends_at"], alert["detail"]) == ((at + MINUTE).isoformat(), why)
    assert (resolved["event_action"], resolved["dedup_key"]) == ("resolve", triggered["dedup_key"])
    assert AlertRule.objects.count() == Alert.objects.count() // 2 == (not is_deleted)
    (entry,) = AuditEntry.objects.filter(kind="alert rule").exclude(action="added")
    assert next(each for each in entry.changes if each[0] == "enabled")[1] is True

    erase_conversation(actor=SHELL, project=project, conversation="told", now=NOW + HOUR)
    assert not AlertMessage.objects.filter(body__contains="told is critical").exists()


@pytest.mark.parametrize("group_s", [30, 0])
def test_a_channel_that_a_rule_tells_no_more_is_told_that_what_it_was_told_of_is_over(
    project: ProjectInfo, group_s: int
) -> None:
    """For it: the alert goes on, and who is still told hears of its end when it comes."""
    hook, pager = channel(project), channel(project, ChannelKind.PAGERDUTY)
    number = rule(project, RuleKind.LEVEL, hook, pager, group_s=group_s)
    for name in ("goes on", "erased"):
        call(project, CRITICAL, name)
    look(NOW + 5 * SECOND)
    look(NOW + 40 * SECOND)
    receiver = Receiver()
    receiver.deliver(now=NOW + MINUTE)
    call(project, CRITICAL, "fresh", at=NOW + 2 * MINUTE)
    look(NOW + 2 * MINUTE)

    def edit(**over: Any) -> None:
        given: Any = {"name": "level", "kind": RuleKind.LEVEL, "level": "caution", "enabled": True}
        editing.save_rule(
            actor=SHELL,
            project_id=project.id,
            edit=RuleEdit(**given, group_s=group_s, **over),
            rule_id=number,
            now=NOW + 2 * MINUTE,
        )

    edit(channels=(hook,))
    edit(channels=(hook,))
    receiver.deliver(now=NOW + 2 * MINUTE)
    pagers = [body for name, body in receiver.got if name == "pagerduty"]
    triggered, resolved = ([b for b in pagers if b["event_action"] == a] for a in PAGED)
    assert {b["dedup_key"] for b in triggered} == {b["dedup_key"] for b in resolved}
    assert len(resolved) == (1 if group_s else 3)
    assert {status for status, _ in hooked(receiver)} == {"firing"}

    call(project, HEALTHY, "goes on", at=NOW + 3 * MINUTE)
    look(NOW + 3 * MINUTE)
    look(NOW + 4 * MINUTE)
    erase_conversation(actor=SHELL, project=project, conversation="erased", now=NOW + 4 * MINUTE)
    receiver.deliver(now=NOW + 4 * MINUTE)
    over = [title for status, title in hooked(receiver) if status == "resolved"]
    assert over == ["goes on is critical", "an erased conversation"]
    assert len([1 for name, _ in receiver.got if name == "pagerduty"]) == len(pagers)


def test_one_edit_takes_a_channel_away_and_lets_the_rule_gather_otherwise(
    project: ProjectInfo,
) -> None:
    """Both tell the same alerts, at one moment; the edit was refused as if it were a fault."""
    hook, pager = channel(project), channel(project, ChannelKind.PAGERDUTY)
    number = rule(project, RuleKind.LEVEL, hook, pager)
    call(project, CRITICAL)
    look(NOW + 5 * SECOND)
    look(NOW + 40 * SECOND)
    edit = RuleEdit(
        name="level", kind=RuleKind.LEVEL, level="caution", enabled=True,
        channels=(pager,), group_s=0,
    )  # fmt: skip

    editing.save_rule(
        actor=SHELL, project_id=project.id, edit=edit, rule_id=number, now=NOW + MINUTE
    )

    receiver = Receiver()
    receiver.deliver(now=NOW + MINUTE)
    assert [status for status, _ in hooked(receiver)] == ["firing", "resolved"]
    assert [body["event_action"] for body in _paged(receiver)] == ["trigger", "resolve", "trigger"]


@pytest.mark.parametrize("how", ["off", "deleted"])
@pytest.mark.parametrize("group_s", [30, 0])
def test_a_channel_that_goes_closes_the_incidents_that_it_had_opened(
    project: ProjectInfo, group_s: int, how: str
) -> None:
    hook, pager = channel(project), channel(project, ChannelKind.PAGERDUTY)
    rule(project, RuleKind.LEVEL, hook, pager, group_s=group_s)
    for name in ("goes on", "ends"):
        call(project, CRITICAL, name)
    look(NOW + 5 * SECOND)
    look(NOW + 40 * SECOND)
    receiver = Receiver()
    receiver.deliver(now=NOW + MINUTE)
    # Waits to be told, and is not: neither its beginning, nor that it is over.
    call(project, CRITICAL, "untold", at=NOW + 2 * MINUTE)
    look(NOW + 2 * MINUTE)
    look(NOW + 3 * MINUTE)

    _go(project, pager, how)
    receiver.answers = [Outcome(is_sent=False, status=503)] * 2
    while delivering.is_due(NOW + HOUR):
        receiver.deliver(now=NOW + 8 * MINUTE)

    opened: list[str] = []
    for body in _paged(receiver):
        if body["event_action"] == "trigger":
            opened.append(body["dedup_key"])
        elif body["dedup_key"] in opened:
            opened.remove(body["dedup_key"])
    assert opened == []
    assert not any("untold" in str(body) for body in _paged(receiver) if _is_begin(body))
    assert AlertChannel.objects.filter(pk=pager).exists() is (how == "off")
    assert [each.id for each in channels(project_id=project.id)] == (
        [pager, hook] if how == "off" else [hook]
    )
    before = len(_paged(receiver))
    call(project, CRITICAL, "later", at=NOW + 9 * MINUTE)
    for second in (0, 40):
        look(NOW + 9 * MINUTE + second * SECOND)
    receiver.deliver(now=NOW + 10 * MINUTE)
    assert len(_paged(receiver)) == before
    # For the others it goes on, and they hear of its end when it comes.
    assert {status for status, _ in hooked(receiver)} == {"firing"}

    if how == "off":
        _go(project, pager, "on")
        receiver.deliver(now=NOW + 11 * MINUTE)
        assert {body["event_action"] for body in _paged(receiver)[before:]} == {"trigger"}
        assert "goes on" in str(_paged(receiver)[before:])


def test_a_channel_that_told_of_nothing_is_deleted_at_once(project: ProjectInfo) -> None:
    pager = channel(project, ChannelKind.PAGERDUTY)
    rule(project, RuleKind.LEVEL, pager)

    _go(project, pager, "deleted")

    assert not AlertChannel.objects.exists()


def test_a_deleted_channel_leaves_its_name_to_another(project: ProjectInfo) -> None:
    pager = channel(project, ChannelKind.PAGERDUTY)
    rule(project, RuleKind.LEVEL, pager, group_s=0)
    call(project, CRITICAL)
    look(NOW + 5 * SECOND)
    Receiver().deliver(now=NOW + MINUTE)

    _go(project, pager, "deleted")
    again = channel(project, ChannelKind.PAGERDUTY)

    assert [each.id for each in channels(project_id=project.id)] == [again]
    _go(project, pager, "deleted")
    with pytest.raises(AlertProblem, match="it is gone"):
        _go(project, pager, "on")
    # A receiver that never answers keeps it for three days.
    later = NOW + timedelta(days=4)
    delivering.deliver_due(now=later, sending=Receiver().open, go_on=lambda: None)
    assert list(AlertChannel.objects.values_list("pk", flat=True)) == [again]


def _go(project: ProjectInfo, number: int, how: str) -> None:
    at: Any = {"actor": SHELL, "project_id": project.id, "channel_id": number}
    if how == "deleted":
        editing.delete_channel(**at, now=NOW + 4 * MINUTE)
        return
    edit = ChannelEdit(name="pagerduty", kind=ChannelKind.PAGERDUTY, enabled=how == "on")
    editing.save_channel(**at, edit=edit, now=NOW + 4 * MINUTE)


def _paged(receiver: Receiver) -> list[dict[str, Any]]:
    return [body for name, body in receiver.got if name.startswith("pagerduty")]


def _is_begin(body: dict[str, Any]) -> bool:
    return bool(body["event_action"] == "trigger")


@pytest.mark.parametrize("groups", [(0, 30), (30, 0)])
def test_a_rule_that_gathers_otherwise_closes_the_incidents_that_it_had_opened(
    project: ProjectInfo, groups: tuple[int, int]
) -> None:
    """One for each alert, or one of the rule: its end goes by what it does then."""
    pager = channel(project, ChannelKind.PAGERDUTY)
    number = rule(project, RuleKind.LEVEL, pager, group_s=groups[0])
    for name in ("one", "two"):
        call(project, CRITICAL, name)
    for second in (5, 40):
        look(NOW + second * SECOND)

    edit = RuleEdit(
        name="level", kind=RuleKind.LEVEL, level="caution", enabled=True,
        channels=(pager,), group_s=groups[1],
    )  # fmt: skip
    at = NOW + 2 * MINUTE
    for _ in range(2):
        editing.save_rule(actor=SHELL, project_id=project.id, edit=edit, rule_id=number, now=at)
    receiver = Receiver()
    receiver.deliver(now=at)
    opened: list[str] = []
    for _, body in receiver.got:
        (opened.append if body["event_action"] == "trigger" else opened.remove)(body["dedup_key"])
    assert len(opened) == (1 if groups[1] else 2)

    for name in ("one", "two"):
        call(project, HEALTHY, name, at=at)
    for second in (5, 40):
        look(at + second * SECOND)
    before = len(receiver.got)
    receiver.deliver(now=at + MINUTE)
    closed = [body["dedup_key"] for _, body in receiver.got[before:]]
    assert sorted(closed) == sorted(opened)


def test_who_is_erased_is_in_no_message_and_old_ones_go(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project))
    for name in ("stays", "erased"):
        call(project, CRITICAL, name)
    look(NOW + 5 * SECOND)
    assert look(NOW + 40 * SECOND) == 1

    erase_conversation(actor=SHELL, project=project, conversation="erased", now=NOW)

    receiver = Receiver()
    later = NOW + timedelta(days=31)
    assert receiver.deliver() == 1
    assert [each["subject"] for each in receiver.got[0][1]["alerts"]] == ["stays"]
    assert (forget_old(now=later), AlertDelivery.objects.count()) == (1, 0)


def test_a_message_that_waits_counts_no_more_who_is_erased(project: ProjectInfo) -> None:
    """It said that one was resolved, and the log went on with the old number."""
    rule(project, RuleKind.LEVEL, channel(project), name="Full")
    for name in ("stays", "too", "erased"):
        call(project, CRITICAL, name)
    look(NOW + 5 * SECOND)
    assert look(NOW + 40 * SECOND) == 1

    erase_conversation(actor=SHELL, project=project, conversation="erased", now=NOW)

    receiver = Receiver()
    receiver.deliver()
    _, body = receiver.got[0]
    assert (body["title"], body["firing"], body["total"]) == ("Full: 2 firing", 2, 2)
    assert "Full: 2 firing" in AlertMessage.objects.values_list("headline", flat=True)


@pytest.mark.parametrize("name", ["erased", "e" * 100])
def test_the_audit_log_forgets_who_is_erased_in_what_was_acknowledged(
    project: ProjectInfo, name: str
) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    for each in (name, f"{name}-2"):
        call(project, CRITICAL, each)
    look(NOW + 5 * SECOND)
    for message in AlertMessage.objects.all():
        token = acknowledging.path_of(message.key, project_id=project.id).split("/")[-2]
        assert acknowledging.acknowledge(token, now=NOW)

    erase_conversation(actor=SHELL, project=project, conversation=name, now=NOW)

    told = AuditEntry.objects.filter(kind="alert rule", action="acknowledged")
    assert sorted(told.values_list("subject", flat=True))[0] == "(erased)"
    assert not told.filter(subject=f"{name} is critical").exists()
    if len(name) < 80:
        assert told.filter(subject=f"{name}-2 is critical").exists()


def test_an_end_that_waits_to_be_sent_goes_without_the_name(project: ProjectInfo) -> None:
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    call(project, CRITICAL, "erased")
    look(NOW + 5 * SECOND)
    receiver = Receiver()
    receiver.deliver()
    call(project, HEALTHY, "erased", at=NOW + 10 * SECOND)
    look(NOW + 15 * SECOND)

    erase_conversation(actor=SHELL, project=project, conversation="erased", now=NOW + MINUTE)
    receiver.deliver()

    assert [title for _, title in receiver.told] == [
        "erased is critical",
        "Resolved: an erased conversation",
    ]


@pytest.mark.parametrize("group_s", [0, 30])
def test_who_was_told_of_an_alert_hears_of_its_end_where_its_conversation_is_erased(
    project: ProjectInfo, group_s: int
) -> None:
    """An incident would stay open for good. By the alert's key, without the name."""
    hook, pager = channel(project), channel(project, ChannelKind.PAGERDUTY)
    rule(project, RuleKind.LEVEL, hook, pager, group_s=group_s)
    call(project, CRITICAL, "erased")
    assert look(NOW + 5 * SECOND) + look(NOW + 40 * SECOND) == 1
    receiver = Receiver()
    receiver.deliver()

    erase_conversation(actor=SHELL, project=project, conversation="erased", now=NOW + MINUTE)
    look(NOW + 2 * MINUTE)
    receiver.deliver(now=NOW + 2 * MINUTE)

    began, over = (body for name, body in receiver.got if name == "webhook")
    triggered, resolved = (body for name, body in receiver.got if name == "pagerduty")
    assert (over["title"], over["firing"]) == ("Resolved: an erased conversation", 0)
    (alert,) = over["alerts"]
    assert alert["dedup_key"] == began["alerts"][0]["dedup_key"]
    assert (alert["status"], alert["ends_at"]) == ("resolved", (NOW + MINUTE).isoformat())
    assert (resolved["event_action"], resolved["dedup_key"]) == ("resolve", triggered["dedup_key"])
    assert "erased" not in {alert["subject"], alert["detail"], alert["url"]}


def test_nobody_hears_of_the_end_of_what_they_were_not_told_of(project: ProjectInfo) -> None:
    """Over already, not told yet, or of a rule that is switched off."""
    number = channel(project)
    rule(project, RuleKind.LEVEL, number, name="at once", group_s=0)
    off = rule(project, RuleKind.LEVEL, number, name="off", group_s=0)
    call(project, CRITICAL, "over")
    call(project, HEALTHY, "over", at=NOW + SECOND)
    call(project, CRITICAL, "erased")
    look(NOW + 5 * SECOND)
    call(project, CRITICAL, "over", at=NOW + 6 * SECOND)
    look(NOW + 10 * SECOND)
    call(project, HEALTHY, "over", at=NOW + 11 * SECOND)
    look(NOW + 15 * SECOND)
    AlertRule.objects.filter(pk=off).update(enabled=False)
    rule(project, RuleKind.LEVEL, number, name="gathers")
    call(project, CRITICAL, "fresh", at=NOW + 16 * SECOND)
    AlertRule.objects.exclude(name="gathers").update(enabled=False)
    look(NOW + 20 * SECOND)
    AlertMessage.objects.all().delete()

    for name in ("over", "erased", "fresh"):
        erase_conversation(actor=SHELL, project=project, conversation=name, now=NOW + MINUTE)

    assert not AlertMessage.objects.exists()
    assert not Alert.objects.exists()


def test_an_alert_that_only_has_the_name_of_who_is_erased_stays(project: ProjectInfo) -> None:
    rule(project, RuleKind.SILENCE, channel(project), group_s=0)
    call(project, HEALTHY, "calls")
    assert look(NOW + 61 * MINUTE) == 1

    erase_conversation(actor=SHELL, project=project, conversation="calls", now=NOW)

    assert Alert.objects.filter(subject="calls", resolved_at__isnull=True).exists()
    assert AlertMessage.objects.get().headline == "No calls for 60 minutes"


@pytest.mark.parametrize("is_erased", [True, False])
def test_what_is_forgotten_and_fires_again_is_told_under_other_keys(
    project: ProjectInfo, is_erased: bool
) -> None:
    """Under the same ones a receiver takes it for a repeat of what it was told before."""
    rule(project, RuleKind.LEVEL, channel(project), group_s=0)
    receiver = Receiver()
    first, again = NOW + MINUTE, NOW + (2 * MINUTE if is_erased else timedelta(days=70))
    for begins in (first, again):
        for number, tokens in enumerate((CAUTION, CRITICAL, HEALTHY)):
            at = begins + number * 10 * SECOND
            call(project, tokens, "nightly", at=at)
            look(at)
            receiver.deliver(now=at)
        if is_erased:
            over = begins + 30 * SECOND
            erase_conversation(actor=SHELL, project=project, conversation="nightly", now=over)
        else:
            forget_old(now=again)
        assert not Alert.objects.exists() or begins == again

    assert len({body["dedup_key"] for _, body in receiver.got}) == 6
    assert len({body["alerts"][0]["dedup_key"] for _, body in receiver.got}) == 2


def test_lags_are_of_the_recorder_and_of_our_exporters(project: ProjectInfo) -> None:
    number = channel(project)
    rule(project, RuleKind.RECORDER_LAG, number, group_s=0, threshold=3)
    rule(project, RuleKind.EXPORT_LAG, number, group_s=0)
    other = make_project(slug="other")
    for name, owner in (("theirs", other.id), ("ours", project.id), ("all", None)):
        Exporter.objects.create(name=name, project_id=owner, url="https://otlp.example.com")
    for exporter in Exporter.objects.all():
        PendingExport.objects.create(exporter=exporter, project_id=project.id, count=7, at=NOW)
    RecorderLedger.objects.create(name="host", started_at=NOW, seen_at=NOW, waiting=4)

    assert look(NOW + 12 * MINUTE) == 3
    assert set(AlertMessage.objects.values_list("headline", flat=True)) == {
        "4 calls wait to be stored",
        "all: 7 calls wait to be exported",
        "ours: 7 calls wait to be exported",
    }
    PendingExport.objects.all().delete()
    RecorderLedger.objects.update(waiting=0)
    assert look(NOW + 14 * MINUTE) == 3


# --- on its way out


@contextmanager
def listening(
    answer: Callable[[], int] = lambda: 200, **said: str
) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A receiver on this machine: its URL, and what it got. answer: the status of each answer;
    said: its headers."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response_only(answer())
            for name, value in {"content-length": "0", **said}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts?from=us", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_is_signed_and_reaches_only_what_upstreams_may(project: ProjectInfo) -> None:
    with listening() as (url, got):
        saved = editing.save_channel(
            actor=SHELL,
            project_id=project.id,
            edit=ChannelEdit(
                name="here", kind=ChannelKind.WEBHOOK, address=url, allow_private=True
            ),
            now=NOW,
        )
        editing.send_test(actor=SHELL, project_id=project.id, channel_id=saved.id, now=NOW)
        # Whatever a row says: the guard has the last word, at the socket.
        AlertChannel.objects.update(allow_private=False)
        delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)
        assert got == []
        refused = AlertDelivery.objects.get()
        assert (refused.state, refused.http_status) == ("waiting", None)
        assert "Channel here may not be called: 127.0.0.1 is on this machine" in refused.told
        AlertChannel.objects.update(allow_private=True, retry_at=None)
        delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    ((headers, body),) = got
    secret = base64.b64decode(str(saved.made_secret).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert json.loads(body)["test"] is True
    assert AlertDelivery.objects.get().state == "sent"
    kept = json.dumps([*AlertChannel.objects.values()], default=str)
    kept += json.dumps([*AuditEntry.objects.values()], default=str)
    assert "from=us" not in kept
    assert str(saved.made_secret) not in kept


def test_mail_is_sent_where_a_server_is_named(project: ProjectInfo, settings: Any) -> None:
    number = channel(project, ChannelKind.EMAIL)
    editing.send_test(actor=SHELL, project_id=project.id, channel_id=number, now=NOW)

    settings.EMAIL_HOST = ""
    delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)
    assert "HELMDASH_SMTP_URL" in AlertDelivery.objects.get().told
    AlertChannel.objects.update(retry_at=None)
    settings.EMAIL_HOST = "mail.example"
    delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["a@example.org"], "Test: Resolved: The channel email works")
    # By its id a mail program takes one that is sent again, after a crash, for the same.
    key = AlertMessage.objects.get().key
    assert sent.extra_headers == {"Message-ID": f"<{key}@helmdash.invalid>"}


@pytest.mark.one_database
@pytest.mark.parametrize("between", ["\r\n", "\x0b", "\x1c", "\u2028", "\u202e"])
def test_a_name_begins_no_header_of_a_mail_and_holds_up_nobody(
    project: ProjectInfo, settings: Any, between: str
) -> None:
    """Also names that were stored before they were looked at."""
    settings.EMAIL_HOST = "mail.example"
    number = channel(project, ChannelKind.EMAIL)
    AlertChannel.objects.update(name=f"a{between}Bcc: else@example.org")
    editing.send_test(actor=SHELL, project_id=project.id, channel_id=number, now=NOW)

    delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    assert AlertDelivery.objects.get().state == "sent"
    (written,) = mail.outbox
    sent = message_from_bytes(written.message().as_bytes(), policy=default)
    assert sent.keys().count("Subject") == 1
    assert "Bcc" not in sent
    assert str(sent["Subject"]).isprintable()


@pytest.mark.one_database
def test_a_mail_that_cannot_be_written_is_told_and_holds_up_nobody(
    project: ProjectInfo, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any, **more: Any) -> None:
        raise HeaderParseError("header value appears to contain an embedded header")

    monkeypatch.setattr(mail.EmailMessage, "send", refused)
    settings.EMAIL_HOST = "mail.example"
    number = channel(project, ChannelKind.EMAIL)
    editing.send_test(actor=SHELL, project_id=project.id, channel_id=number, now=NOW)

    delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)

    assert AlertDelivery.objects.get().told == "the mail server: HeaderParseError"


def test_a_name_makes_no_link_in_a_message_of_discord() -> None:
    name = "[Acknowledge](https://evil.example) \\[twice](https://evil.example)"
    target = Target(
        name="d",
        kind=ChannelKind.DISCORD,
        address="https://x.test/y",
        secret="",
        allow_private=False,
    )
    entry = Entry(
        dedup_key="k",
        status="firing",
        severity="critical",
        subject=name,
        title=name,
        detail="",
        path="/calls/?model=%5Bx%5D",
        starts_at="2026-06-05T14:41:03+00:00",
        ends_at=None,
    )
    message = Message(
        key="k",
        incident="i",
        project="default",
        rule="r",
        kind="level",
        firing=1,
        total=1,
        part=1,
        parts=1,
        entries=(entry,),
    )

    sent = outgoing(target, message, Links(base="https://helm.test", project="default"), now=NOW)

    assert isinstance(sent, HttpPost)
    told = json.loads(sent.body)
    for text in (told["content"], told["embeds"][0]["description"]):
        # A sign behind an odd number of backslashes is itself.
        assert re.findall(r"(?<!\\)(?:\\\\)*\[", text) == []
    assert (
        "https://helm.test/calls/?model=%5Bx%5D&project=default" in told["embeds"][0]["description"]
    )


# --- editing


@pytest.mark.one_database
@pytest.mark.parametrize("between", ["\n", "\x0b", "\u2028", "\u202e"])
def test_names_are_one_line_that_can_be_read(project: ProjectInfo, between: str) -> None:
    for save in (channel, lambda *args, **over: rule(project, RuleKind.LEVEL, **over)):
        with pytest.raises(AlertProblem) as told:
            save(project, name=f"a{between}b")
        assert list(told.value.errors) == ["name"]
        assert "on one line" in told.value.errors["name"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("kind", "over", "field"),
    [
        (ChannelKind.WEBHOOK, {"address": "ftp://host/x"}, "address"),
        (ChannelKind.WEBHOOK, {"address": "http://169.254.169.254/"}, "address"),
        (ChannelKind.WEBHOOK, {"address": "http://10.0.0.1/"}, "address"),
        (ChannelKind.WEBHOOK, {"address": "https://me:pw@host.example/"}, "address"),
        (ChannelKind.WEBHOOK, {"address": ""}, "address"),
        (ChannelKind.WEBHOOK, {"name": ""}, "name"),
        (ChannelKind.SLACK, {"secret": "x"}, "secret"),
        (ChannelKind.EMAIL, {"address": "nobody"}, "address"),
        (ChannelKind.EMAIL, {"address": ",".join(["a@example.org"] * 11)}, "address"),
        (ChannelKind.PAGERDUTY, {"secret": "short"}, "secret"),
    ],
)
def test_what_is_wrong_with_a_channel(
    project: ProjectInfo, kind: ChannelKind, over: dict[str, Any], field: str
) -> None:
    with pytest.raises(AlertProblem) as raised:
        channel(project, kind, **over)

    assert field in raised.value.errors


@pytest.mark.one_database
def test_owners_edit_and_only_superusers_reach_private_addresses(project: ProjectInfo) -> None:
    owner = Person(name="olga", roles={project.id: MemberRole.OWNER})
    editor = Person(name="ed", roles={project.id: MemberRole.EDITOR})
    edit = ChannelEdit(name="x", kind=ChannelKind.SLACK, address="https://hooks.example.com/a")
    private = ChannelEdit(
        name="y", kind=ChannelKind.SLACK, address="http://10.0.0.1/a", allow_private=True
    )

    with pytest.raises(Forbidden):
        editing.save_channel(actor=editor, project_id=project.id, edit=edit, now=NOW)
    editing.save_channel(actor=owner, project_id=project.id, edit=edit, now=NOW)
    with pytest.raises(AlertProblem):
        editing.save_channel(actor=owner, project_id=project.id, edit=private, now=NOW)
    lent = editing.save_channel(actor=SHELL, project_id=project.id, edit=private, now=NOW).id
    with pytest.raises(AlertProblem):
        editing.save_channel(
            actor=owner, project_id=project.id, edit=edit, channel_id=lent, now=NOW
        )
    with pytest.raises(AlertProblem) as raised:
        rule(project, RuleKind.LEVEL, level="red", quiet_start=time(1), zone="Nowhere")
    assert set(raised.value.errors) == {"level", "quiet_end", "zone"}
    with pytest.raises(AlertProblem):
        rule(project, RuleKind.LEVEL)  # switched on, and tells nobody
