"""The weekly report by mail: to whom, once for each week, and with nobody's control characters."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from smtplib import (
    SMTPAuthenticationError,
    SMTPDataError,
    SMTPRecipientsRefused,
    SMTPServerDisconnected,
)

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from helmdash import conf
from helmdash.core.access.permissions import SHELL, Forbidden, MemberRole
from helmdash.operations import weekly_mail
from helmdash.operations.access import members
from helmdash.operations.jobs import kinds
from helmdash.queries.access.access import ProjectInfo, person_of
from helmdash.records.models import WeeklySubscription
from tests.factories import make_capture, make_project, record

MONDAY = datetime(2026, 6, 8, tzinfo=UTC)
AT_SIX = MONDAY + timedelta(hours=6)


@pytest.fixture(autouse=True)
def mailing(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"public_url": "https://helm.example", "smtp_url": "smtp://mail.example"}
    set_up = conf.env().model_copy(update=given)
    monkeypatch.setattr(conf, "env", lambda: set_up)


@pytest.fixture
def project() -> ProjectInfo:
    return make_project()


def subscriber(project: ProjectInfo, name: str = "ann", since: datetime = MONDAY) -> User:
    members.set_member(actor=SHELL, user=name, project=project.slug, role=MemberRole.VIEWER)
    user = User.objects.get(username=name)
    user.email = f"{name}@example.org"
    user.save()
    weekly_mail.subscribe(
        actor=person_of(user),
        user_id=user.pk,
        email=user.email,
        project_id=project.id,
        now=since - timedelta(days=2),
    )
    return user


def send(now: datetime = AT_SIX) -> tuple[int, int]:
    return weekly_mail.send_due(now=now, go_on=lambda: None)[:2]


def test_a_week_is_mailed_once_to_each_who_may_still_read_it(project: ProjectInfo) -> None:
    record(
        make_capture(
            id="bad",
            model="acme/<b>tiny\u202e\x07",
            http_status=429,
            usage=None,
            finish_reason=None,
            error_message="rate limited",
            started_at=MONDAY - timedelta(days=2),
            content="a text of somebody's",
        )
    )
    subscriber(project)
    gone = subscriber(project, "bob")
    members.remove_member(actor=SHELL, user="bob", project=project.slug)
    subscriber(project, "late", since=MONDAY + timedelta(days=3))

    assert send() == (1, 0)
    assert send() == send(AT_SIX + timedelta(days=6)) == (0, 0)

    (message,) = mail.outbox
    assert isinstance(message, mail.EmailMultiAlternatives)
    assert message.to == ["ann@example.org"]
    assert message.subject == "Default: the week to 2026-06-07"
    html = str(message.alternatives[0][0])
    for text in (str(message.body), html):
        assert "somebody's" not in text
        assert not {"\u202e", "\x07"} & set(text)
        assert "https://helm.example/weekly/?project=default" in text
    # Each number leads to what it counts, from wherever the mail is read.
    link = "https://helm.example/calls/?project=default&query=outcome%3Aclean&range=2026-06-01T"
    (number,) = re.findall(r"% clean \[(\d+)\]", str(message.body))
    assert f"[{number}] {link}" in message.body
    assert f'<a href="{link.replace("&", "&amp;")}' in html
    assert "acme/<b>tiny" in message.body
    assert "acme/&lt;b&gt;tiny" in html
    # The next week's is another one, and has another id.
    assert send(AT_SIX + timedelta(days=7)) == (2, 0)
    ids = [each.extra_headers["Message-ID"] for each in mail.outbox]
    assert len(set(ids)) == 3
    assert not WeeklySubscription.objects.get(user=gone).sent_until


def test_what_another_process_sent_or_somebody_stopped_meanwhile_is_not_sent(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run before went to sleep at the first mail, and wakes up to what it read then."""
    ann, bob, carl = (subscriber(project, name) for name in ("ann", "bob", "carl"))
    deliver = mail.EmailMultiAlternatives.send

    def sleep(self: mail.EmailMultiAlternatives, fail_silently: bool = False) -> int:
        WeeklySubscription.objects.filter(user=bob).update(sent_until=MONDAY)
        weekly_mail.unsubscribe(by="carl", user_id=carl.pk, project_id=project.id)
        return deliver(self, fail_silently)

    monkeypatch.setattr(mail.EmailMultiAlternatives, "send", sleep)

    assert send() == (1, 0)
    assert [message.to for message in mail.outbox] == [[ann.email]]


def test_one_that_could_not_be_sent_is_tried_again(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = subscriber(project)

    def refuse(self: object, fail_silently: bool = False) -> int:
        raise ConnectionRefusedError

    with monkeypatch.context() as patched:
        patched.setattr(mail.EmailMultiAlternatives, "send", refuse)
        assert send() == (0, 1)
    row = WeeklySubscription.objects.get(user=user)
    assert (row.problem, row.sent_until) == ("the mail server: ConnectionRefusedError", None)
    # Who waits for it learns so where they asked for it.
    client = Client()
    client.force_login(user)
    sentence = "could not be sent yet: the mail server: ConnectionRefusedError."
    assert sentence in client.get("/weekly/").getvalue().decode()
    assert send() == (1, 0)
    assert sentence not in client.get("/weekly/").getvalue().decode()
    row.refresh_from_db()
    assert (row.problem, row.sent_until) == (None, MONDAY)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (TimeoutError(), 1),
        (SMTPServerDisconnected("gone"), 1),
        (SMTPAuthenticationError(535, b"no"), 1),
        # A word on one mail is none on the others.
        (SMTPRecipientsRefused({}), 2),
        (SMTPDataError(554, b"spam"), 2),
    ],
)
def test_a_run_ends_where_the_mail_server_is_away(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    subscriber(project)
    subscriber(project, "bob")
    tried = []

    def refuse(self: object, fail_silently: bool = False) -> int:
        tried.append(self)
        raise error

    monkeypatch.setattr(mail.EmailMultiAlternatives, "send", refuse)

    mailed = weekly_mail.send_due(now=AT_SIX, go_on=lambda: None)

    assert (len(tried), mailed) == (tries, (0, tries, True))


def test_one_mail_at_which_the_server_breaks_off_keeps_no_other_from_its_turn(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To us it looks away each time, and there the run ends."""
    for name in ("ann", "bob", "carl"):
        subscriber(project, name)
    deliver = mail.EmailMultiAlternatives.send

    def send_it(self: mail.EmailMultiAlternatives, fail_silently: bool = False) -> int:
        if self.to == ["ann@example.org"]:
            raise SMTPServerDisconnected("gone")
        return deliver(self, fail_silently)

    monkeypatch.setattr(mail.EmailMultiAlternatives, "send", send_it)

    send()
    send()

    assert sorted(message.to[0] for message in mail.outbox) == [
        "bob@example.org",
        "carl@example.org",
    ]


def test_what_only_a_person_can_mend_is_not_tried_again_soon(
    project: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    user = subscriber(project)
    User.objects.filter(pk=user.pk).update(email="")

    # No report is made for nobody.
    with django_assert_max_num_queries(6):
        assert weekly_mail.send_due(now=AT_SIX, go_on=lambda: None) == (0, 1, False)
    assert "no e-mail address" in (WeeklySubscription.objects.get().problem or "")

    subscriber(project, "bob")
    without = conf.env().model_copy(update={"public_url": ""})
    monkeypatch.setattr(conf, "env", lambda: without)
    assert weekly_mail.send_due(now=AT_SIX, go_on=lambda: None) == (0, 2, False)


def test_the_link_in_a_mail_ends_it_without_signing_in(project: ProjectInfo) -> None:
    user = subscriber(project)
    send()
    (message,) = mail.outbox
    link = message.extra_headers["List-Unsubscribe"].strip("<>")
    path = link.removeprefix("https://helm.example")
    assert link in message.body
    client = Client(enforce_csrf_checks=True)

    # Programs that look at links send a GET: it changes nothing.
    assert "No more weekly reports?" in client.get(path).content.decode()
    assert weekly_mail.subscription(user_id=user.pk, project_id=project.id)
    one_click = client.post(path, {"List-Unsubscribe": "One-Click"})

    assert "You get no more of them" in one_click.content.decode()
    assert not weekly_mail.subscription(user_id=user.pk, project_id=project.id)
    assert client.get("/weekly/stop/forged/").status_code == 410
    assert send(AT_SIX + timedelta(days=7)) == (0, 0)


def test_people_subscribe_themselves_where_they_may_read(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = subscriber(project)
    stranger = User.objects.create_user("stranger", "s@example.org")
    with pytest.raises(Forbidden):
        weekly_mail.subscribe(
            actor=person_of(stranger),
            user_id=stranger.pk,
            email=stranger.email,
            project_id=project.id,
            now=MONDAY,
        )
    client = Client()
    client.force_login(user)
    assert "Stop mailing it to me" in client.get("/weekly/").getvalue().decode()
    client.post("/weekly/mail/", {"do": "stop"})
    assert not WeeklySubscription.objects.exists()
    client.post("/weekly/mail/", {"do": "start"})
    assert WeeklySubscription.objects.get().user_id == user.pk
    client.post("/weekly/mail/", {"do": "stop"})
    # Without an address, and where no mail can be sent, nobody is subscribed and the page says why.
    User.objects.filter(pk=user.pk).update(email="not one")
    client.post("/weekly/mail/", {"do": "start"})
    assert "no e-mail address" in client.get("/weekly/").getvalue().decode()
    without = conf.env().model_copy(update={"smtp_url": ""})
    monkeypatch.setattr(conf, "env", lambda: without)
    assert "HELMDASH_SMTP_URL is not set" in client.get("/weekly/").getvalue().decode()
    assert not WeeklySubscription.objects.exists()


def test_the_command_prints_and_sends(project: ProjectInfo) -> None:
    def run(*words: str) -> str:
        out = StringIO()
        call_command("weekly_report", *words, stdout=out)
        return out.getvalue()

    subscriber(project, since=datetime(2020, 1, 6, tzinfo=UTC))

    printed = run("--print")
    assert "What was saved" in printed
    assert "No more of these" not in printed
    assert run("--send") == "mailed 1 report\n"
    assert run("--send") == "mailed 0 reports\n"


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (MONDAY, AT_SIX),
        (AT_SIX, AT_SIX + timedelta(days=7)),
        (MONDAY - timedelta(seconds=1), AT_SIX),
        (AT_SIX + timedelta(days=3), AT_SIX + timedelta(days=7)),
    ],
)
def test_it_is_due_on_mondays(now: datetime, due: datetime) -> None:
    assert weekly_mail.next_due(now) == due
    assert "weekly-report" in kinds.WORDS
