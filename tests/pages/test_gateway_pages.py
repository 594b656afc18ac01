"""The pages of the gateway: set-up, upstreams with their test, the recorder's ledger."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.upstreams.upstream_variables import VARIABLES
from helmdash.gateway.requests.options import RequestOptions
from helmdash.gateway.requests.routes import Action, find_route
from helmdash.operations.demo.loading import load_demo
from helmdash.operations.recorder import recorder
from helmdash.pages.parts import gateway_facts
from helmdash.pages.views.settings import upstreams as upstream_views
from helmdash.queries.access.access import BUDGET_MODES, ProjectInfo
from helmdash.records.access.secrets import seal
from helmdash.records.models import Job, Project, RecorderLedger, Upstream
from tests.admin.forms import filled
from tests.factories import make_capture, make_project, record
from tests.pages.hygiene import faults
from tests.support.upstreams import Fleet, run_fleet
from tests.support.upstreams.fleet import KEYS

GATEWAY, UPSTREAMS, RECORDER = "/settings/gateway/", "/settings/upstreams/", "/settings/recorder/"
POLICY = "/settings/gateway/policy/"
SECRET = "sk-very-secret-upstream-key"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No upstream in the environment, and a recorder that has taken nothing in."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    recorder.cache_clear()


@pytest.fixture(scope="module")
def vendors() -> Iterator[Fleet]:
    """Upstreams that answer."""
    with run_fleet() as fleet:
        yield fleet


def add(name: str, **over: Any) -> Upstream:
    values = {"kind": "openai", "base_url": f"https://{name}.test/v1"}
    return Upstream.objects.create(name=name, **{**values, **over})


def text(client: Client, path: str) -> str:
    """The page's text as people read it."""
    bare = re.sub(r"<[^>]+>", " ", client.get(path).content.decode())
    return " ".join(unescape(bare).split())


# --- set-up -----------------------------------------------------------------------------------


def test_snippets_hold_this_address_a_listed_model_and_no_key(
    owner: Client, project: ProjectInfo
) -> None:
    add("acme", models_served="big-*\nbig-7b\nsmall-1b", key_encrypted=seal(SECRET))

    html = unescape(owner.get(GATEWAY, headers={"Host": "localhost:8123"}).content.decode())

    assert 'base_url="http://localhost:8123/v1"' in html
    assert "export ANTHROPIC_BASE_URL=http://localhost:8123\n" in html
    # The pattern is no model.
    assert html.count("acme/big-7b") > 10
    assert "acme/big-*" not in html
    assert "$HELMDASH_API_KEY" in html
    assert SECRET not in html


def test_where_nothing_is_listed_a_recorded_model_serves_or_a_blank(
    owner: Client, project: ProjectInfo
) -> None:
    assert "No upstream can be called yet" in text(owner, GATEWAY)
    assert "provider/MODEL" in text(owner, GATEWAY)

    add("acme")
    page = text(owner, GATEWAY)
    assert "No upstream can be called yet" not in page
    assert "in place of acme/MODEL" in page

    record(make_capture(model="elsewhere/x"), make_capture(model="acme/used"), project=project)
    page = text(owner, GATEWAY)
    assert 'model="acme/used"' in page
    assert "MODEL." not in page
    assert "elsewhere/x" not in page


def test_upstreams_that_cannot_be_called_are_no_example(
    owner: Client, project: ProjectInfo
) -> None:
    add("keyless", models_served="m", key_variable="NOWHERE_API_KEY")
    add("resting", models_served="m", enabled=False)
    add("theirs", models_served="m", project=Project.objects.create(slug="o", name="O"))

    page = text(owner, GATEWAY)

    assert "No upstream can be called yet" in page
    assert not re.search(r"(keyless|resting|theirs)/", page)


def test_any_model_can_be_filled_in_and_stays_text(owner: Client, project: ProjectInfo) -> None:
    evil = "</code><script>alert('1')</script>\" + '$(date)"

    response = owner.get(GATEWAY, {"model": evil})

    html = response.content.decode()
    assert (response.status_code, faults(html)) == (200, [])
    assert "<script>alert" not in html
    # Inside single quotes of the shell, and escaped there.
    assert "'\"'\"'$(date)" in unescape(html)


def test_the_page_tells_of_the_gateway_as_it_is() -> None:
    options = {field.name.replace("_", "-") for field in fields(RequestOptions)} - {"is-retry"}
    options |= {"ollama-context"}  # an option of one format only
    wire = Path("docs/wire.md").read_text(encoding="utf-8")

    assert {fact.name for fact in gateway_facts.HEADERS_IN} == {f"x-helmdash-{n}" for n in options}
    assert [fact.name for fact in gateway_facts.HEADERS_OUT if fact.name not in wire] == []
    assert tuple(mode.value for mode in gateway_facts.MODES) == BUDGET_MODES
    for each in gateway_facts.ENDPOINTS:
        route = find_route(each.path, {}, b"")
        assert route is not None, each.path
        assert (each.path, route.method, route.action is Action.UNKNOWN) == (
            each.path,
            each.method,
            False,
        )


# --- policy -----------------------------------------------------------------------------------


def test_a_policy_is_saved_and_said(owner: Client, project: ProjectInfo) -> None:
    add("acme")

    answer = owner.post(POLICY, {"budget_mode": "enforce", "default_upstream": "acme"})

    row = Project.objects.get(pk=project.id)
    assert (answer["Location"], row.budget_mode, row.default_upstream) == (
        f"{GATEWAY}?project=default",
        "enforce",
        "acme",
    )
    page = text(owner, GATEWAY)
    assert "enforce in force" in page
    assert "goes to the default upstream, acme ." in page

    Upstream.objects.update(enabled=False)
    assert "which cannot be called at present" in text(owner, GATEWAY)


WRONG_POLICIES = [
    ({"budget_mode": "shout"}, "budget_mode: choose one of observe, warn, enforce"),
    ({}, "budget_mode: choose one of observe, warn, enforce"),
    (
        {"budget_mode": "warn", "default_upstream": "nobody\x00"},
        "default_upstream: no enabled upstream is called 'nobody\\x00'; choose one of acme",
    ),
    ({"budget_mode": "warn", "default_upstream": "resting"}, "no enabled upstream is called"),
]


def test_a_policy_that_cannot_be_is_refused_with_its_fix(
    owner: Client, project: ProjectInfo
) -> None:
    add("acme")
    add("resting", enabled=False)

    for sent, said in WRONG_POLICIES:
        response = owner.post(POLICY, sent)

        html = response.content.decode()
        assert (sent, response.status_code, faults(html)) == (sent, 422, [])
        assert said in unescape(html)
    assert Project.objects.get(pk=project.id).budget_mode == "observe"


def test_demo_data_has_no_policy_of_its_own(owner: Client, project: ProjectInfo) -> None:
    load_demo(actor=SHELL, now=timezone.now())

    page = owner.get(f"{GATEWAY}?project=demo").content.decode()
    answer = owner.post(POLICY, {"budget_mode": "warn"})

    assert POLICY not in page
    assert answer.status_code == 422
    assert set(Project.objects.values_list("budget_mode", flat=True)) == {"observe"}


def test_a_viewer_reads_the_policy_and_has_no_button(viewer: Client, project: ProjectInfo) -> None:
    add("acme")

    assert "observe in force" in text(viewer, GATEWAY)
    assert POLICY not in viewer.get(GATEWAY).content.decode()
    assert "/test/" not in viewer.get(UPSTREAMS).content.decode()
    assert "/admin/" not in viewer.get(UPSTREAMS).content.decode()


# default upstream, whether the admin takes it: as `operations.access.project_settings` does
ADMIN_NAMES = [
    ("acme", True),
    ("", True),
    ("openai", True),  # of the environment
    ("nobody", False),
    ("resting", False),
    ("theirs", False),
]


def test_the_admin_offers_the_policy_too(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    add("acme")
    add("resting", enabled=False)
    add("theirs", project_id=make_project(slug="other").id)
    url = f"/admin/records/project/{project.id}/change/"

    for name, is_taken in ADMIN_NAMES:
        sent = filled(owner, url, budget_mode="warn", default_upstream=name)
        status = owner.post(url, sent).status_code

        assert (name, status) == (name, 302 if is_taken else 200)
    assert Project.objects.get(pk=project.id).budget_mode == "warn"


# --- upstreams --------------------------------------------------------------------------------


def test_without_upstreams_the_page_says_how_to_get_one(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    page = text(owner, UPSTREAMS)

    assert "No upstream yet" in page
    assert [name for name in VARIABLES if name not in page] == []
    assert "/admin/records/upstream/add/" in owner.get(UPSTREAMS).content.decode()
    assert "ask an owner of the project to add one" in text(viewer, UPSTREAMS)


def test_every_upstream_says_where_its_key_is_and_never_the_key(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.setenv("OLLAMA_HOST", "localhost")
    add("stored", key_encrypted=seal(SECRET), base_url="https://user:pw@stored.test/v1")
    add("named", key_variable="GROQ_API_KEY")
    add("lost", key_variable="NOWHERE_API_KEY")
    add("sealed", key_encrypted="not-ours")
    add("groq", models_served="a\nb", enabled=False)
    add("inside", base_url="http://10.0.0.7/v1")

    html = owner.get(UPSTREAMS).content.decode()
    rows = {
        match[0]: " ".join(unescape(re.sub(r"<[^>]+>", " ", match[1])).split())
        for match in re.findall(r'<b class="id" title="([^"]+)">(.*?)</tr>', html, re.DOTALL)
    }

    assert faults(html) == []
    assert SECRET not in html
    assert "pw@" not in html
    assert "OPENAI_API_KEY (set)" in rows["openai"]
    assert "environment in use" in rows["openai"]
    assert "private addresses allowed none" in rows["ollama"]
    assert " stored " in rows["stored"]
    assert "GROQ_API_KEY (set)" in rows["named"]
    assert "NOWHERE_API_KEY (missing)" in rows["lost"]
    assert "cannot be called The variable NOWHERE_API_KEY is not set" in rows["lost"]
    assert "stored, but unreadable" in rows["sealed"]
    assert "cannot be called" in rows["inside"]
    # Both of the name are there: the row that is disabled, and what it hides.
    assert html.count('title="groq"') == 2
    assert "disabled" in html
    assert "not used: another of its name comes first" in html


def test_a_test_asks_the_upstream_and_leads_to_its_models(
    owner: Client, project: ProjectInfo, vendors: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = add(
        "acme",
        base_url=f"{vendors.openai.root_url}/v1",
        allow_private=True,
        key_encrypted=seal(KEYS["openai"]),
        enabled=False,
    )
    # Of the environment's upstreams on this machine, only Ollama may be called by default.
    monkeypatch.setenv("OLLAMA_HOST", vendors.ollama.root_url)
    monkeypatch.setenv("OLLAMA_API_KEY", KEYS["ollama"])

    for path, name in (
        (f"/settings/upstreams/{row.pk}/test/", "acme"),
        ("/settings/upstreams/test/", "ollama"),
    ):
        response = owner.post(path, {"name": name})

        html = response.content.decode()
        assert (response.status_code, faults(html)) == (200, [])
        assert f"Upstream {name} answers and lists" in html
        assert re.search(r">\d+ ms<", html)
        link = unescape(html.split(f'href="{GATEWAY}?model', 1)[1].split('"', 1)[0])
        assert link.startswith(f"={name}%2F")
        assert f'value="{name}/' in owner.get(f"{GATEWAY}?model{link}").content.decode()


def test_a_test_that_fails_says_why_without_the_key(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not allowed: the environment's upstreams may not be in a private network by default.
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.1:9/v1")
    closed = add(
        "closed", base_url="http://127.0.0.1:9/v1", allow_private=True, key_encrypted=seal(SECRET)
    )

    guarded = owner.post("/settings/upstreams/test/", {"name": "openai"})
    refused = owner.post(f"/settings/upstreams/{closed.pk}/test/")

    for response, said in ((guarded, "may not be called"), (refused, "closed")):
        html = response.content.decode()
        assert (response.status_code, faults(html)) == (200, [])
        assert "The test failed." in html
        assert said in html.split('id="tested"', 1)[1].split("</section>", 1)[0]
        assert SECRET not in html


def test_nobody_waits_long_for_a_silent_upstream(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_views, "_TEST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        row = add("silent", base_url=f"http://127.0.0.1:{port}/v1", allow_private=True)

        html = owner.post(f"/settings/upstreams/{row.pk}/test/").content.decode()

    assert "The test failed." in html
    # Ten seconds where nothing is patched; a loaded machine takes its time beside the 200 ms.
    (took,) = re.findall(r">([\d,]+) ms<", html)
    assert int(took.replace(",", "")) < 5_000


def test_what_is_not_there_cannot_be_tested(owner: Client, project: ProjectInfo) -> None:
    for number in (77, 10**30):
        assert owner.post(f"/settings/upstreams/{number}/test/").status_code == 404
    assert owner.post("/settings/upstreams/test/", {"name": "no\x00"})["Location"] == (
        f"{UPSTREAMS}?project=default"
    )
    assert "no upstream called no." in text(owner, UPSTREAMS)
    assert owner.get("/settings/upstreams/77/test/").status_code == 405


# --- the recorder -----------------------------------------------------------------------------


def process(name: str, **over: Any) -> RecorderLedger:
    now = timezone.now()
    values = {"started_at": now - timedelta(hours=1), "seen_at": now, "stopped_at": None}
    return RecorderLedger.objects.create(name=name, **{**values, **over})


def terms(html: str) -> dict[str, int]:
    """The members of the sum, in their order."""
    sum_ = html.split('<dl class="sum"', 1)[1].split("</dl>", 1)[0]
    found = re.findall(r"<dt>(\w+)</dt><dd>([\d,]+)</dd>", sum_)
    return {name: int(value.replace(",", "")) for name, value in found}


def test_before_the_first_call_the_ledger_is_empty(owner: Client, project: ProjectInfo) -> None:
    page = text(owner, RECORDER)

    assert "Storing" in page
    assert "No call was taken in yet" in page
    assert GATEWAY in owner.get(RECORDER).content.decode()


def test_the_ledger_adds_up_over_all_processes(owner: Client, project: ProjectInfo) -> None:
    process("one", accepted=5_000, stored=4_900, duplicate=60, rejected=25, dropped=15)
    process("two", accepted=40, stored=38, waiting=2, spooled=9, spool_bytes=1234)
    captures = [make_capture(), make_capture(conversation="b")]
    recorder().record_and_wait(
        project=project, captures=captures, caller="owner", now=timezone.now()
    )

    html = owner.get(RECORDER).content.decode()

    found = terms(html)
    assert list(found) == ["accepted", "stored", "duplicate", "rejected", "dropped", "waiting"]
    assert found["accepted"] == 5_042
    assert found["accepted"] == sum(found.values()) - found["accepted"]
    assert "1,234" in html
    assert faults(html) == []


@pytest.mark.parametrize(("is_admin", "says_why"), [(True, True), (False, False)])
def test_files_of_the_spool_that_cannot_be_read_are_shown_with_what_to_do(
    request: pytest.FixtureRequest,
    project: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_admin: bool,
    says_why: bool,
) -> None:
    monkeypatch.setattr(recorder(), "_spool_dir", tmp_path)
    client = request.getfixturevalue("admin_client" if is_admin else "viewer")
    assert "cannot be read" not in text(client, RECORDER)
    (tmp_path / "host-1-now.lock").write_text("/a/<b> is not an ordinary file\n")

    html = client.get(RECORDER).content.decode()

    assert "host-1-now" in html
    assert "restart the server" in html
    assert ("/a/&lt;b&gt; is not an ordinary file" in html) is says_why
    assert faults(html) == []


NOW_ISH = timedelta(seconds=20)
# stopped before, seen before, said
ENDS = [
    (timedelta(hours=2), timedelta(hours=2), "shut down"),
    (timedelta(hours=1), timedelta(hours=2), "crashed"),  # closed by its heir
    (None, timedelta(minutes=9), "not responding; perhaps crashed"),
    (None, NOW_ISH, "running"),
]


@pytest.mark.parametrize(("stopped", "seen", "said"), ENDS)
def test_each_process_says_how_it_goes_or_how_it_ended(
    owner: Client,
    project: ProjectInfo,
    stopped: timedelta | None,
    seen: timedelta,
    said: str,
) -> None:
    now = timezone.now()
    process("other", seen_at=now - seen, stopped_at=now - stopped if stopped else None)

    assert f" other {said} " in text(owner, RECORDER)


# what its row counts, said below "crashed"
LOSSES = [(0, "nothing lost in flight"), (1_017, "1,017 lost in flight")]


@pytest.mark.parametrize(("lost", "said"), LOSSES)
def test_a_process_that_ended_by_force_says_what_it_lost(
    owner: Client, project: ProjectInfo, lost: int, said: str
) -> None:
    now = timezone.now()
    seen_at = now - timedelta(hours=2)
    process("killed", seen_at=seen_at, stopped_at=now, in_flight_lost=lost)
    process("ended", seen_at=now, stopped_at=now)

    page = text(owner, RECORDER)

    assert f" killed crashed {said} " in page
    assert page.count(said) == 1


def test_a_process_is_shown_without_the_moment_it_started(
    owner: Client, project: ProjectInfo
) -> None:
    whole = "west-of-here-4711-20261119T032740123456"
    process(whole)

    assert f'title="{whole}">west-of-here-4711</span>' in owner.get(RECORDER).content.decode()


# what its row holds beside its name, said of it
JOBS = [
    ({}, "not done yet"),
    ({"turns": 1, "until": timedelta(seconds=20)}, "running"),
    ({"turns": 1, "until": timedelta(seconds=-20)}, "broken off; another process goes on"),
    (
        {"turns": 1, "ended_at": timedelta(seconds=-9), "outcome": "done", "told": "swept"},
        "done swept",
    ),
    (
        {"turns": 1, "ended_at": timedelta(seconds=-9), "outcome": "interrupted"},
        "interrupted by a stop",
    ),
    (
        {
            "turns": 3,
            "ended_at": timedelta(0),
            "outcome": "failed",
            "told": "OSError",
            "failures": 3,
        },
        "failed 3 times: OSError",
    ),
]


@pytest.mark.parametrize(("values", "said"), JOBS)
def test_each_job_says_how_it_stands(
    owner: Client, project: ProjectInfo, values: dict[str, Any], said: str
) -> None:
    now = timezone.now()
    at = {
        name: now + each if isinstance(each, timedelta) else each for name, each in values.items()
    }
    started_at = now - timedelta(seconds=12) if values else None
    Job.objects.create(
        name="retention", holder="west-4711" if at else "", started_at=started_at, **at
    )

    html = owner.get(RECORDER).content.decode()

    assert f"retention Delete what projects keep no longer {said}" in text(owner, RECORDER)
    assert ("is-caution" in html.split('id="jobs"', 1)[1]) is ("broken" in said or "failed" in said)
    assert faults(html) == []


def test_a_poll_brings_the_ledger_only_when_it_changed(owner: Client, project: ProjectInfo) -> None:
    row = process("one", accepted=3, stored=3)
    asked = {"HX-Request": "true"}

    def poll(etag: str) -> Any:
        return owner.get(RECORDER, headers={**asked, "If-None-Match": etag})

    etag = owner.get(RECORDER, headers=asked)["ETag"]
    # The tag also holds the minute, which may have turned since.
    if poll(etag).status_code != 304:
        etag = owner.get(RECORDER, headers=asked)["ETag"]
        assert poll(etag).status_code == 304
    # That the process was heard of again is no news.
    row.seen_at = timezone.now()
    row.accepted = 4
    row.waiting = 1
    row.save()

    response = poll(etag)

    assert response.status_code == 200
    assert "<html" not in response.content.decode()
    assert terms(response.content.decode())["waiting"] == 1


def test_the_settings_say_how_the_recorder_is(viewer: Client, project: ProjectInfo) -> None:
    assert "Recorder : storing, 0 waiting" in text(viewer, "/settings/")
