"""Somebody's own account: their look, their password, their sessions, and a password forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from helmdash import conf
from helmdash.operations.access import passwords, sessions, sign_in_links
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AuditEntry, SignedIn
from tests.pages.hygiene import faults

OLD, NEW = "the-old-password", "a-new-password-2"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1"
EDGE = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0"


@pytest.fixture
def vera(project: ProjectInfo) -> User:
    """A member of nothing, who may yet see to her own account."""
    return User.objects.create_user("vera", password=OLD, email="vera@example.org")


def browser(user: User, agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    client = Client(HTTP_USER_AGENT=agent, REMOTE_ADDR=address)
    client.force_login(user)
    return client


def change(client: Client, old: str, new: str = NEW) -> Any:
    sent = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/profile/password/", sent)


def test_every_session_is_listed_and_can_be_ended(vera: User) -> None:
    here, phone, work = browser(vera), browser(vera, PHONE, "192.0.2.8"), browser(vera, EDGE)
    for each in (phone, work, here):
        assert each.get("/profile/").status_code == 200
    other = browser(User.objects.create_user("somebody"))
    other.get("/profile/")

    html = here.get("/profile/").content.decode()
    row = SignedIn.objects.get(device="Safari on iPhone")
    theirs = SignedIn.objects.get(user__username="somebody")
    here.post("/profile/sessions/end/", {"session": row.pk})
    here.post("/profile/sessions/end/", {"session": theirs.pk})
    after = [each.get("/profile/").status_code for each in (here, phone, work, other)]
    here.post("/profile/sessions/end/")
    left = [each.get("/profile/").status_code for each in (here, phone, work, other)]

    assert faults(html) == []
    assert [word in html for word in ("Firefox on Linux", "Safari on iPhone", "Edge on Windows")]
    assert html.count("this one") == 1
    assert "192.0.2.8" in html
    assert "somebody" not in html
    assert (after, left) == ([200, 302, 200, 200], [200, 302, 302, 200])
    assert AuditEntry.objects.filter(action="signed out", by="vera").count() == 2


@pytest.mark.parametrize("way", ["password", "link"])
def test_a_session_is_listed_and_ends_whatever_it_was_used_for(vera: User, way: str) -> None:
    """One that never asks for a whole page, as a program that has a password does."""
    here, hidden = browser(vera), Client(HTTP_HX_REQUEST="true", HTTP_USER_AGENT=PHONE)
    if way == "password":
        hidden.post("/login/", {"username": "vera", "password": OLD})
    else:
        hidden.post(sign_in_links.make_link_path(username="vera"))
    assert hidden.get("/profile/").status_code == 200

    html = here.get("/profile/").content.decode()
    here.post("/profile/sessions/end/")

    assert "Safari on iPhone" in html
    assert "HX-Redirect" in hidden.get("/profile/")
    assert here.get("/profile/").status_code == 200


def test_sessions_that_ended_are_forgotten(vera: User) -> None:
    one, two = browser(vera), browser(vera, PHONE)
    for each in (one, two):
        each.get("/profile/")
    two.post("/logout/")

    assert sessions.forget_ended(now=timezone.now()) == 1
    assert SignedIn.objects.get().device == "Firefox on Linux"


def test_whether_a_process_lives_is_told_without_asking_who_asks(
    vera: User, django_assert_num_queries: Any
) -> None:
    here = browser(vera)

    with django_assert_num_queries(0):
        assert here.get("/healthz").status_code == 200


def test_a_new_password_wants_the_old_one_and_ends_other_sessions(vera: User) -> None:
    here, phone = browser(vera), browser(vera, PHONE)
    phone.get("/profile/")
    assert "Safari on iPhone" in here.get("/profile/").content.decode()

    wrong, short = change(here, "guess"), change(here, OLD, "short")
    right = change(here, OLD)

    assert (wrong.status_code, short.status_code, right.status_code) == (422, 422, 302)
    assert faults(wrong.content.decode()) == []
    # Nor is it listed any more, before its browser finds out.
    assert "Safari on iPhone" not in here.get("/profile/").content.decode()
    assert [each.get("/profile/").status_code for each in (here, phone)] == [200, 302]
    vera.refresh_from_db()
    assert vera.check_password(NEW)
    entry = AuditEntry.objects.get(kind="account")
    assert (entry.by, entry.changes) == ("vera", [["password", "set", "set anew"]])


def test_who_came_by_a_link_sets_a_first_password(project: ProjectInfo) -> None:
    vera = User.objects.create_user("vera")
    client = browser(vera)

    assert "old_password" not in client.get("/profile/").content.decode()
    assert change(client, "").status_code == 302
    vera.refresh_from_db()
    assert vera.check_password(NEW)


def test_the_look_is_kept_and_rules_every_page(viewer: Client) -> None:
    saved = viewer.post("/profile/look/", {"theme": "dark", "zone": "Asia/Tokyo"}, follow=True)
    settings = viewer.get("/settings/members/").content.decode()
    wrong = viewer.post("/profile/look/", {"theme": "dark", "zone": "Mars/Olympus"})
    viewer.post("/profile/look/", {"theme": "", "zone": ""})

    html = saved.content.decode()
    assert (faults(html), 'data-theme="dark"' in html, 'value="Asia/Tokyo"' in html) == (
        *([], True),
        True,
    )
    assert re.search(r'title="[0-9 :-]+ JST"', settings)
    assert (wrong.status_code, "write a zone such as" in wrong.content.decode()) == (422, True)
    assert "data-theme" not in viewer.get("/").content.decode()


@pytest.fixture
def _mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HELMDASH_SMTP_URL", "smtp://localhost")
    conf.env.cache_clear()
    yield
    conf.env.cache_clear()


@pytest.mark.usefixtures("_mail")
@pytest.mark.parametrize("name", ["vera", "VERA@example.org"])
def test_a_forgotten_password_is_set_anew_by_a_link_in_a_mail(
    vera: User, client: Client, name: str
) -> None:
    sign_in = client.get("/login/").content.decode()
    asked = client.post("/login/reset/", {"account": name})
    passwords.settle(60)
    (sent,) = mail.outbox
    path = re.findall(r"http://testserver(/\S+)", str(sent.body))[0]

    form = client.get(path, follow=True)
    address = form.redirect_chain[-1][0]
    sent_new = {"new_password1": NEW, "new_password2": NEW}
    done = client.post(address, sent_new)

    assert "/login/reset/" in sign_in
    assert (faults(form.content.decode()), sent.to) == ([], ["vera@example.org"])
    assert "Check your mail" in asked.content.decode()
    # The token is not in the address of the form, which a browser may tell others.
    assert path.rstrip("/").rsplit("/", 1)[1] not in address
    assert done.status_code == 302
    assert "The new password is set" in client.get("/login/").content.decode()
    vera.refresh_from_db()
    assert vera.check_password(NEW)
    assert "no longer works" in client.get(path, follow=True).content.decode()


@pytest.mark.usefixtures("_mail")
@pytest.mark.parametrize("allowed", ["*", ".example.org"])
def test_whoever_asks_for_a_link_does_not_choose_where_it_leads(
    vera: User, settings: Any, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    """A name of a pattern may be anybody's, and the link is as good as the password."""
    settings.ALLOWED_HOSTS = ["helm.example.org", allowed]
    monkeypatch.setenv("HELMDASH_ALLOWED_HOSTS", f"helm.example.org,{allowed}")
    conf.env.cache_clear()
    stranger, known = Client(HTTP_HOST="their.example.org"), Client(HTTP_HOST="helm.example.org")

    assert "/login/reset/" not in stranger.get("/login/").content.decode()
    assert stranger.post("/login/reset/", {"account": "vera"}).status_code == 404
    assert known.post("/login/reset/", {"account": "vera"}).status_code == 200
    monkeypatch.setenv("HELMDASH_PUBLIC_URL", "https://public.example.org")
    conf.env.cache_clear()
    assert stranger.post("/login/reset/", {"account": "vera"}).status_code == 200
    passwords.settle(60)

    led_to = [re.findall(r"(https?://[^/]+)/login/reset/", str(each.body)) for each in mail.outbox]
    assert led_to == [["http://helm.example.org"], ["https://public.example.org"]]


@pytest.mark.usefixtures("_mail", "no_wait_ends")
def test_the_answer_tells_nobody_who_has_an_account(vera: User) -> None:
    User.objects.create_user("locked", email="l@example.org", is_active=False)
    User.objects.create_user("mailless")
    csrf = re.compile(r'name="csrfmiddlewaretoken" value="[^"]+"')

    def answers(name: str) -> list[tuple[int, str]]:
        client = Client(REMOTE_ADDR=f"192.0.2.{len(name)}")
        found = [client.post("/login/reset/", {"account": name}) for _ in range(7)]
        return [(each.status_code, csrf.sub("", each.content.decode())) for each in found]

    by_name = {name: answers(name) for name in ("vera", "nobody", "locked", "mailless")}
    passwords.settle(60)

    assert len({str(each) for each in by_name.values()}) == 1
    # The brake of sign-in holds here, too, also against filling a mailbox.
    assert [status for status, _ in by_name["vera"]] == [200] * 5 + [429] * 2
    assert {to for each in mail.outbox for to in each.to} == {"vera@example.org"}
    assert len(mail.outbox) == 5


@pytest.mark.usefixtures("_mail", "no_wait_ends")
def test_an_address_is_one_account_however_it_is_written(vera: User) -> None:
    """Or its mailbox is filled by as many spellings as it has letters, from many addresses."""
    written = ("vera@example.org", "VERA@example.org", "Vera@Example.org", "vEra@example.ORG")
    statuses = [
        Client(REMOTE_ADDR=f"192.0.2.{number}")
        .post("/login/reset/", {"account": written[number % len(written)]})
        .status_code
        for number in range(9)
    ]
    passwords.settle(60)

    assert statuses == [200] * 5 + [429] * 4
    assert len(mail.outbox) == 5


@pytest.mark.usefixtures("_mail")
def test_who_was_locked_out_sets_no_password(vera: User, client: Client) -> None:
    client.post("/login/reset/", {"account": "vera"})
    passwords.settle(60)
    path = re.findall(r"http://testserver(/\S+)", str(mail.outbox[0].body))[0]
    address = client.get(path, follow=True).redirect_chain[-1][0]
    User.objects.update(is_active=False)

    told = client.post(address, {"new_password1": NEW, "new_password2": NEW})

    assert "no longer works" in told.content.decode()
    vera.refresh_from_db()
    assert not vera.check_password(NEW)


@pytest.mark.one_database
@pytest.mark.usefixtures("_mail")
def test_a_mail_that_cannot_be_written_is_told_in_the_log(
    vera: User, caplog: pytest.LogCaptureFixture
) -> None:
    User.objects.update(email="vera@example.org\nBcc: all@example.org")

    passwords.mail_reset_link(name="vera", base="http://testserver")
    passwords.settle(60)

    assert [record.getMessage() for record in caplog.records] == [
        "a mail about a password could not be sent: BadHeaderError"
    ]


def test_without_a_mail_server_no_link_is_offered(client: Client, project: ProjectInfo) -> None:
    assert "/login/reset/" not in client.get("/login/").content.decode()
    assert client.get("/login/reset/").status_code == 404


def test_scheme_and_zone_follow_the_account(viewer: Client, owner: Client) -> None:
    account = User.objects.get(username="viewer")
    viewer.post("/profile/look/", {"theme": "dark", "zone": "Asia/Tokyo"})

    phone = browser(account, PHONE)
    phone.cookies["helmdash_theme"] = "light"
    there = [phone.get(path).content.decode() for path in ("/", "/admin/", "/profile/")]
    phone.post("/theme/", {"theme": "light", "next": "/"})
    here = viewer.get("/profile/").content.decode()

    assert all('data-theme="dark"' in html for html in there)
    assert 'value="Asia/Tokyo"' in there[2]
    assert ('data-theme="light"' in here, 'value="Asia/Tokyo"' in here) == (True, True)
    assert "data-theme" not in owner.get("/").content.decode()
