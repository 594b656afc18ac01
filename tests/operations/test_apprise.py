"""Apprise as operators have it: the real package, with URLs that only they name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from helmdash import conf, notifier
from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.apprise_names import parse_named_urls
from helmdash.core.alerts.channels import ChannelKind
from helmdash.operations.alerts import delivering, editing
from helmdash.operations.alerts.editing import AlertProblem
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.alerts.rules import channels
from helmdash.records.models import AlertChannel, AlertDelivery, AuditEntry
from tests.factories import NOW, make_project
from tests.operations.alert_support import channel
from tests.operations.test_alerts import listening

pytestmark = [
    pytest.mark.one_database,
    # Apprise looks whether this Python has it.
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),
]

SECRET = "token-77"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    yield
    conf.env.cache_clear()


def name_urls(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HELMDASH_APPRISE_URLS", text)
    conf.env.cache_clear()


def test_send_by_name(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    status = 500
    with listening(lambda: status) as (url, got):
        there = url.replace("http://", "json://").partition("?")[0]
        name_urls(monkeypatch, f"ops={there}/{SECRET} broken=pigeon://x")
        number = channel(project, ChannelKind.APPRISE, name="Ops", address="ops")
        broken = channel(project, ChannelKind.APPRISE, name="Broken", address="broken")
        for each in (number, broken):
            editing.send_test(actor=SHELL, project_id=project.id, channel_id=each, now=NOW)

        told = deliver()
        assert told == {
            "Ops": ("waiting", "Apprise could not deliver it to ops"),
            "Broken": (
                "waiting",
                "Apprise cannot read the URL of broken in HELMDASH_APPRISE_URLS",
            ),
        }
        status = 200
        assert deliver()["Ops"] == ("sent", "")
        name_urls(monkeypatch, f"other={there}/{SECRET}")
        assert deliver()["Broken"] == ("waiting", "HELMDASH_APPRISE_URLS has no broken any more")

    _, body = got[-1]
    assert json.loads(body)["title"] == "Test: Resolved: The channel Ops works"
    assert json.loads(body)["type"] == "info"
    (shown,) = [each for each in channels(project_id=project.id) if each.id == number]
    kept = json.dumps([*AlertChannel.objects.values(), *AuditEntry.objects.values()], default=str)
    assert shown.host == "ops"
    assert SECRET not in kept + caplog.text + conf.shown("apprise_urls", conf.env())


def deliver() -> dict[str, tuple[str, str]]:
    """Try all that waits once; what the log says of each channel."""
    AlertChannel.objects.update(retry_at=None)
    delivering.deliver_due(now=NOW, sending=notifier.opened, go_on=lambda: None)
    rows = AlertDelivery.objects.values_list("channel__name", "state", "told")
    return {name: (state, told) for name, state, told in rows}


def test_a_service_that_says_nothing_is_left_behind(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "_SECONDS", 0.1)
    answered = threading.Event()

    def answer() -> int:
        answered.wait(20)
        return 200

    with listening(answer) as (url, _):
        name_urls(monkeypatch, f"slow={url.replace('http://', 'json://')}&rto=20")
        number = channel(project, ChannelKind.APPRISE, address="slow")
        editing.send_test(actor=SHELL, project_id=project.id, channel_id=number, now=NOW)
        assert deliver() == {"apprise": ("waiting", "no answer within 0 seconds")}
        answered.set()


def test_only_the_operators_names_are_taken(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AlertProblem, match="HELMDASH_APPRISE_URLS is not set"):
        channel(project, ChannelKind.APPRISE, address="ops")
    name_urls(monkeypatch, f"ops=json://example.org/{SECRET}")
    for typed in ("json://example.org/mine", "Ops", ""):
        with pytest.raises(AlertProblem) as raised:
            channel(project, ChannelKind.APPRISE, address=typed)
        assert "address" in raised.value.errors
        assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ops", "entry 1"),
        (f"ops=json://a =json://{SECRET}", "entry 2"),
        (f"ops={SECRET}", "entry 1"),
        (f"ops=json://a ops=json://{SECRET}", "an earlier one"),
        (f"ops=json://{SECRET}{'x' * 2000}", "2,000"),
        (" ".join(f"n{number}=json://{SECRET}" for number in range(51)), "51 entries"),
    ],
)
def test_what_is_wrong_with_the_setting(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        parse_named_urls(text)
    monkeypatch.setenv("HELMDASH_APPRISE_URLS", text)
    with pytest.raises(conf.BadSetting, match=r"HELMDASH_APPRISE_URLS=\*\*\*: ") as raised:
        conf.read_env()
    assert SECRET not in str(raised.value)


def test_a_setting_without_the_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELMDASH_APPRISE_URLS", f"ops=json://{SECRET}")
    conf.read_env()
    monkeypatch.setattr(conf, "find_spec", lambda name: None)
    with pytest.raises(conf.BadSetting) as raised:
        conf.read_env()
    assert str(raised.value) == (
        "HELMDASH_APPRISE_URLS needs a package that is not installed: run "
        "pip install 'apprise>=2.2', or take the setting away"
    )
