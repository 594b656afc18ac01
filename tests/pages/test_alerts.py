"""The pages of alerts: channels and rules, a preview, the log, and the link in a message."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash import conf
from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.alerts import acknowledging, looking
from helmdash.operations.alerts.editing import ChannelEdit, save_channel
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertMessage,
    AlertRule,
)
from tests.factories import NOW, make_capture, make_project, record
from tests.operations.alert_support import channel, rule
from tests.pages.hygiene import faults

PAGE = "/settings/alerts/"
RULE, SAVE_RULE = f"{PAGE}rule/", f"{PAGE}rule/save/"
CHANNEL, SAVE_CHANNEL = f"{PAGE}channel/", f"{PAGE}channel/save/"
HOOK = "https://hooks.example.com/T1/secret-path"


def text_of(client: Client, path: str) -> str:
    html = client.get(path).content.decode()
    assert faults(html) == []
    return unescape(html)


def add_channel(owner: Client, **over: str) -> AlertChannel:
    given = {"do": "save", "kind": "webhook", "name": "Ops", "address": HOOK, "enabled": "on"}
    owner.post(SAVE_CHANNEL, {**given, **over})
    return AlertChannel.objects.get(name=over.get("name", "Ops"))


@pytest.mark.parametrize(
    ("kind", "set_up", "told"),
    [
        ("email", {}, ["HELMDASH_SMTP_URL", "HELMDASH_PUBLIC_URL"]),
        ("email", {"smtp_url": "smtp://mail.example"}, ["HELMDASH_PUBLIC_URL"]),
        ("webhook", {}, ["HELMDASH_PUBLIC_URL"]),
        ("webhook", {"public_url": "https://helm.example"}, []),
    ],
)
def test_what_a_channel_lacks_of_the_servers_settings_is_said_before_it_is_tried(
    owner: Client,
    project: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    set_up: dict[str, str],
    told: list[str],
) -> None:
    env = conf.env().model_copy(update={"smtp_url": "", "public_url": "", **set_up})
    monkeypatch.setattr(conf, "env", lambda: env)
    # Nobody is told of what no channel of theirs wants.
    assert "is not set" not in text_of(owner, PAGE)
    form = text_of(owner, f"{CHANNEL}?kind={kind}")
    channel(project, ChannelKind(kind))
    page = text_of(owner, PAGE)

    for name in ("HELMDASH_SMTP_URL", "HELMDASH_PUBLIC_URL"):
        sentence = f"{name} is not set, so "
        assert (sentence in form, sentence in page) == (name in told, name in told)


def rule_form(*channels: int, **over: str) -> dict[str, object]:
    given = {"do": "save", "kind": "level", "name": "Full", "level": "caution", "group_s": "0"}
    return {**given, "zone": "UTC", "enabled": "on", "channels": channels, **over}


def test_what_a_rule_that_is_off_saw_last_does_not_fire_now(
    owner: Client, project: ProjectInfo
) -> None:
    """Nobody looks whether it goes on: it stood there for good, with its beginning of long ago."""
    number = rule(project, RuleKind.LEVEL, channel(project))
    at = timezone.now()
    record(
        make_capture(usage={"prompt_tokens": 125_000, "completion_tokens": 9}, started_at=at),
        project=project,
    )
    looking.look_at_due(now=at, go_on=lambda: None)
    assert "talk is critical" in text_of(owner, PAGE)

    AlertRule.objects.filter(pk=number).update(enabled=False)

    shown = text_of(owner, PAGE)
    assert "talk is critical" not in shown
    assert 'data-name="Firing">0<' in shown


def test_a_page_of_many_alerts_says_that_they_are_not_all(
    owner: Client, project: ProjectInfo
) -> None:
    number = rule(project, RuleKind.LEVEL, channel(project))
    at = timezone.now()
    Alert.objects.bulk_create(
        Alert(
            project_id=project.id, rule_id=number, subject=f"c{each}", severity="critical",
            title=f"c{each} is critical", opened_at=at, changed_at=at,
        )
        for each in range(51)
    )  # fmt: skip

    shown = text_of(owner, PAGE)

    assert shown.count(" is critical<") == 50
    assert "the newest 50 of 51" in shown
    Alert.objects.filter(subject="c0").delete()
    assert "the newest 50 of" not in text_of(owner, PAGE)


def test_an_owner_sets_alerts_up_and_a_viewer_sees_no_secret(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    for kind in ChannelKind:
        assert "New channel" in text_of(owner, f"{CHANNEL}?kind={kind}")
    for watched in RuleKind:
        assert "New rule" in text_of(owner, f"{RULE}?kind={watched}")

    response = owner.post(
        SAVE_CHANNEL, {"kind": "webhook", "name": "Ops", "address": HOOK, "enabled": "on"}
    )
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", response.content.decode())
    channel = AlertChannel.objects.get()
    assert response["Cache-Control"] == "no-store"
    assert owner.post(SAVE_RULE, rule_form(channel.pk)).status_code == 302
    owner.post(SAVE_CHANNEL, {"do": "test", "id": channel.pk})

    for reader in (owner, viewer):
        page = text_of(reader, PAGE)
        assert "hooks.example.com" in page
        assert "The channel Ops works" in page
        assert secret not in page
        assert "secret-path" not in page
    assert "secret-path" not in text_of(owner, f"{CHANNEL}?id={channel.pk}")
    assert 'name="do"' not in text_of(viewer, PAGE)

    # An edit without an address keeps it; deleting a channel leaves the rule without it.
    sealed = channel.address_encrypted
    owner.post(SAVE_CHANNEL, {"id": channel.pk, "kind": "webhook", "name": "On call"})
    channel.refresh_from_db()
    assert (channel.name, channel.address_encrypted, channel.enabled) == ("On call", sealed, False)
    owner.post(SAVE_CHANNEL, {"do": "delete", "id": channel.pk})
    assert "nobody" in text_of(owner, PAGE)
    rule = AlertRule.objects.get()
    owner.post(SAVE_RULE, {"do": "delete", "id": rule.pk})
    assert not AlertRule.objects.exists()


def test_an_empty_page_says_what_comes_next(owner: Client, project: ProjectInfo) -> None:
    assert "Add a channel first" in text_of(owner, PAGE)

    add_channel(owner)

    assert "Add a channel first" not in text_of(owner, PAGE)
    assert "choose below what to watch" in text_of(owner, PAGE)


def test_the_usual_rules_are_one_press_and_each_is_there_once(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    assert "Add the usual rules" not in text_of(owner, PAGE)
    owner.post(SAVE_RULE, {"do": "usual"})
    assert "choose a channel" in text_of(owner, PAGE)
    assert not AlertRule.objects.exists()

    channel = add_channel(owner)
    assert "Add the usual rules" in text_of(owner, PAGE)
    assert "Add the usual rules" not in text_of(viewer, PAGE)
    for _ in range(2):
        owner.post(SAVE_RULE, {"do": "usual"})

    rules = {rule.kind: rule for rule in AlertRule.objects.all()}
    assert sorted(rules) == ["cut", "failing", "level", "refusal"]
    assert AlertRule.objects.count() == 4
    assert {(rule.enabled, tuple(rule.channels)) for rule in rules.values()} == {
        (True, (channel.pk,))
    }
    assert (rules["level"].level, rules["failing"].threshold) == ("critical", 5)
    assert "Add the usual rules" not in text_of(owner, PAGE)


def test_apprise_is_offered_where_the_operator_named_urls(
    owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"kind": "apprise", "name": "Family", "address": "family", "enabled": "on"}
    assert 'value="apprise"' not in text_of(owner, PAGE)
    assert "is not set" in owner.post(SAVE_CHANNEL, chosen).content.decode()

    named = conf.env().model_copy(update={"apprise_urls": "ops=json://a/key family=ntfy://key"})
    monkeypatch.setattr(conf, "env", lambda: named)
    assert 'value="apprise"' in text_of(owner, PAGE)
    form = text_of(owner, f"{CHANNEL}?kind=apprise")
    assert re.findall(r'<option value="(\w*)"', form) == ["", "ops", "family"]
    assert owner.post(SAVE_CHANNEL, chosen).status_code == 302
    kept = AlertChannel.objects.get()
    page = text_of(owner, PAGE) + text_of(owner, f"{CHANNEL}?id={kept.pk}")
    assert (kept.host, "ntfy" in page, "keep what is stored" in page) == ("family", False, True)


def test_what_is_wrong_is_said_beside_its_field(owner: Client) -> None:
    for data, said in (
        ({"kind": "webhook", "name": "x", "address": "http://10.0.0.1/"}, "private network"),
        ({"kind": "email", "name": "x", "address": "nobody"}, "no e-mail address"),
        ({"kind": "pigeon", "name": "x"}, "pigeon"),
    ):
        response = owner.post(SAVE_CHANNEL, data)
        html = response.content.decode()
        assert (response.status_code, said in html, faults(html)) == (422, True, [])
    for typed, said in (
        (rule_form(), "choose a channel"),
        (rule_form(99), "99"),
        (rule_form(quiet_start="22:00"), "both ends"),
        (rule_form(zone="Nowhere"), "Europe/Berlin"),
        (rule_form(group_s="x"), "whole number"),
        (rule_form(kind="failing", threshold="0", minutes="9999"), "1 to 100,000 calls"),
    ):
        response = owner.post(SAVE_RULE, typed)
        html = response.content.decode()
        assert (response.status_code, said in html, faults(html)) == (422, True, []), said
    other = make_project(slug="other")
    edit = ChannelEdit(name="Theirs", kind=ChannelKind.SLACK, address=HOOK)
    theirs = save_channel(actor=SHELL, project_id=other.id, edit=edit, now=NOW).id
    for path in (f"{RULE}?id=7", f"{CHANNEL}?id=x", f"{CHANNEL}?id={theirs}"):
        assert owner.get(path).status_code == 404
    assert owner.post(SAVE_CHANNEL, {"do": "delete", "id": theirs}).status_code == 404


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("slack", "Incoming webhook's URL"),
        ("email", "Addresses, with commas between"),
        ("pagerduty", "Routing key"),
    ],
)
def test_a_new_channel_stays_of_its_kind_while_it_is_mended(
    owner: Client, kind: str, label: str
) -> None:
    refused = owner.post(SAVE_CHANNEL, {"do": "save", "kind": kind, "name": "", "enabled": "on"})
    form = unescape(refused.content.decode())

    assert refused.status_code == 422
    assert f'name="kind" value="{kind}"' in form
    assert f">{label}</label>" in form
    assert "URL that takes a POST" not in form


def test_a_rule_is_tried_on_the_last_week_and_stores_nothing(
    owner: Client, project: ProjectInfo
) -> None:
    now = timezone.now()
    for hours, tokens in ((60, 20_000), (50, 125_000), (40, 20_000)):
        usage = {"prompt_tokens": tokens, "completion_tokens": 9}
        at = now - timedelta(hours=hours)
        record(make_capture(usage=usage, started_at=at), project=project)

    for form, said in (
        (rule_form(), "2 messages"),
        (rule_form(kind="silence", minutes="120"), "5 messages"),
        (rule_form(kind="refusal", minutes="10"), "0 messages"),
        (rule_form(kind="cut", minutes="10"), "0 messages"),
        (rule_form(kind="failing", minutes="10", threshold="1"), "0 messages"),
        (rule_form(kind="countdown", threshold="3"), "0 messages"),
        (rule_form(kind="fullness", threshold="70"), "2 messages"),
        (rule_form(kind="recorder_lag", threshold="1"), "is known since"),
    ):
        html = owner.post(SAVE_RULE, {**form, "do": "preview"}).content.decode()
        assert (said in html, faults(html)) == (True, []), said
    assert not AlertRule.objects.exists()


def test_who_has_the_message_says_that_they_see_to_it(
    owner: Client, client: Client, project: ProjectInfo
) -> None:
    now = timezone.now()
    channel = add_channel(owner)
    owner.post(SAVE_RULE, rule_form(channel.pk))
    looking.look_at_due(now=timezone.now(), go_on=lambda: None)
    usage = {"prompt_tokens": 125_000, "completion_tokens": 9}
    record(make_capture(usage=usage, started_at=now), project=project)
    looking.look_at_due(now=timezone.now() + timedelta(seconds=6), go_on=lambda: None)
    path = acknowledging.path_of(AlertMessage.objects.get().key, project_id=project.id)
    assert "nobody yet" in text_of(owner, PAGE)

    # A program that looks at links does nothing.
    assert "Acknowledge this alert?" in text_of(client, path)
    assert Alert.objects.get().acknowledged_at is None
    # Its form without a body: the front reads none of people nobody knows, with no token in it.
    stranger = Client(enforce_csrf_checks=True)
    assert "csrfmiddlewaretoken" not in text_of(stranger, path)
    assert "Acknowledged<" in stranger.post(path).content.decode()
    assert "Acknowledged already" in text_of(client, path)
    assert client.get(path.replace("/seen/", "/seen/x")).status_code == 410

    assert "who got the message" in text_of(owner, PAGE)
    assert AlertDelivery.objects.get().state == "waiting"


def test_the_page_asks_as_much_of_the_database_however_long_its_lists(
    owner: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        channel = add_channel(owner, name=f"Ops {number}")
        owner.post(SAVE_RULE, rule_form(channel.pk, name=f"Full {number}"))
        owner.post(SAVE_CHANNEL, {"do": "test", "id": str(channel.pk)})
    text_of(owner, PAGE)

    with django_assert_max_num_queries(12):
        owner.get(PAGE)


def test_an_alert_of_many_calls_leads_to_just_those_that_it_counted(
    owner: Client, project: ProjectInfo
) -> None:
    """Its words say how many; the list behind its link has as many."""
    now = timezone.now()
    calm: dict[str, Any] = {"conversation": None, "latency_ms": 100}
    calls = [
        make_capture(id=f"calm-{n}", started_at=now - timedelta(minutes=30 * n), **calm)
        for n in range(2, 320)
    ]
    for n in range(60):
        bad = {"http_status": 500, "content": None} if n % 2 else {"latency_ms": 9_000}
        at = now - timedelta(seconds=20 * n)
        calls.append(make_capture(**{**calm, **bad}, id=f"bad-{n:02d}", started_at=at))
    record(*calls, project=project)
    for kind in (RuleKind.FAILING, RuleKind.FAILURE_RATE, RuleKind.LATENCY):
        rule(project, kind, channel(project, name=kind.value))
    Alert.objects.all().delete()
    AlertRule.objects.update(next_at=now)
    looking.look_at_due(now=now, go_on=lambda: None)

    for word, wanted in (("failing", 23), ("failure_rate", 30), ("latency", 29)):
        alert = Alert.objects.get(rule__kind=word)
        html = owner.get(alert.path, follow=True).content.decode()
        counted = int(alert.title.split(": ")[1].split()[0])
        listed = set(re.findall(r"(?:bad|calm)-\d+", html))
        assert (counted, len(listed)) == (wanted, wanted), alert.title
