"""What others see of the recorder: readiness, metrics, and reports during an outage."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError, connection, connections
from django.test import AsyncRequestFactory, Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from helmdash import conf
from helmdash.doors.limits import KeyLimits
from helmdash.doors.patience import TURNED_AWAY_KEY
from helmdash.operations.database.timeouts import DatabaseNotResponding, with_timeout
from helmdash.operations.recorder import Recorder, RecorderFull, recorder
from helmdash.pages.liveness import readyz
from helmdash.queries.access.access import Caller, ProjectInfo
from helmdash.records.models import RecorderLedger
from tests import factories
from tests.factories import NOW
from tests.recorder.support import counts, expected, names, submit
from tests.recording import load
from tests.support.postgres import Postgres, create_database
from tests.support.server import Served


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.django_db
def test_readyz_names_the_recorders_state() -> None:
    factories.make_project()

    ready = Client().get("/readyz")

    assert ready.status_code == 200
    assert ready.json()["recorder"]["state"] == "storing"
    told = ready.json()["recorder"]
    assert told["writer"] == "thread"
    assert told.keys() == {
        *(
            "state",
            "writer",
            "waiting",
            "spool_bytes",
            "accepted",
            "stored",
            "duplicate",
            "rejected",
        ),
        *("spooled", "dropped", "bare", "damaged_lines"),
    }
    parts = ("status", "gateway", "api", "pages", "database", "spool")
    assert [ready.json()[part] for part in parts] == ["ok"] * 6
    counts = recorder().own_ledger().counts
    assert (told["accepted"], told["stored"]) == (counts.accepted, counts.stored)


@pytest.mark.django_db
def test_files_of_the_spool_that_cannot_be_read_are_told_without_their_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "host-1-now.lock").write_text("/secret/place is not an ordinary file\n")
    monkeypatch.setattr(recorder(), "_spool_dir", tmp_path)
    factories.make_project()
    caller = factories.make_key(scopes=("read",))

    ready = Client().get("/readyz")
    told = Client().get("/metrics", headers={"authorization": f"Bearer {caller}"})

    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert ready.json()["spool"].startswith("files that a process left there cannot be read")
    assert samples(told.content.decode())["helmdash_recorder_stuck_files"] == 1
    assert b"/secret/place" not in ready.content + told.content


def test_a_full_disk_is_told_and_keeps_no_call_from_the_database(
    project: ProjectInfo, make_recorder: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = make_recorder()
    recorder.start()
    before = recorder.spool_problem()

    def refuse(handle: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    submit(recorder, project, *range(20))

    assert before is None
    assert recorder.spool_problem() == (
        "the disk takes no calls that have to wait: No space left on device"
    )
    assert recorder.settle()
    assert names() == expected(*range(20))
    assert counts(recorder).dropped == 0


def test_readyz_tells_a_disk_that_takes_nothing_and_one_that_says_nothing(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def hang() -> None:
        is_over.wait(10)

    for ask, said in ((lambda: "the disk is full", "the disk is full"), (hang, "does not respond")):
        monkeypatch.setattr(recorder(), "spool_problem", ask)
        began = time.monotonic()
        ready = Client().get("/readyz")

        assert time.monotonic() - began < 8  # of the ten that it hangs
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert said in ready.json()["spool"]
        assert ready.json()["gateway"] == ready.json()["pages"] == "ok"
    is_over.set()


@pytest.mark.django_db
def test_readyz_is_not_ready_while_others_are_turned_away() -> None:
    request = AsyncRequestFactory().get("/readyz")
    request.scope = {**request.scope, TURNED_AWAY_KEY: True}

    ready = readyz(request)

    told = json.loads(ready.content)
    assert (ready.status_code, told["status"]) == (503, "unavailable")
    assert told["api"] == told["pages"] == told["database"] != "ok"
    assert told["gateway"].startswith("ok for keys")


@pytest.mark.django_db
def test_metrics_add_all_processes_up_and_want_a_key() -> None:
    factories.make_project()
    key = factories.make_key(name="scraper", scopes=("read",))
    other = factories.make_key(name="writer", scopes=("record",))
    client = Client()

    def scrape(key: str) -> dict[str, float]:
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        return samples(answer.content.decode())

    before = scrape(key)
    RecorderLedger.objects.create(
        name="earlier", started_at=NOW, seen_at=NOW, stored=40, accepted=41, waiting=1
    )
    after = scrape(key)

    def grown(name: str) -> float:
        return after[name] - before[name]

    assert grown("helmdash_recorder_calls_totalstored") == 40
    assert grown("helmdash_recorder_calls_totalaccepted") == 41
    assert grown("helmdash_recorder_waiting") == 1
    assert after["helmdash_recorder_statestoring"] == 1
    assert after["process_resident_memory_bytes"] > 0
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {other}"}, 403)):
        refused = client.get("/metrics", headers=headers)
        assert refused.status_code == status
        assert refused["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
def test_metrics_are_open_where_the_operator_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = conf.env().model_copy(update={"metrics_open": True})
    monkeypatch.setattr(conf, "env", lambda: opened)

    assert Client().get("/metrics").status_code == 200


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A function that makes every statement of every connection wait, as for a silent server."""
    is_over = threading.Event()

    def wait(self: object) -> None:
        is_over.wait(10)
        raise OperationalError("the server is away")

    yield lambda: monkeypatch.setattr(type(connections["default"]), "cursor", wait)
    is_over.set()


@pytest.fixture
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that takes the database away: silent on PostgreSQL, gone on SQLite."""
    if connection.vendor == "postgresql":
        hang: Callable[[], None] = request.getfixturevalue("hang")
        return hang

    def fail(self: object) -> None:
        raise OperationalError("unable to open database file")

    def take_away() -> None:
        # By Django's cursors, and by statements that go past them (records.statements.direct).
        for way in ("cursor", "ensure_connection"):
            monkeypatch.setattr(type(connections["default"]), way, fail)

    return take_away


@pytest.mark.django_db(transaction=True)
def test_metrics_and_readiness_answer_soon_while_the_database_is_away(
    away: Callable[[], None],
) -> None:
    factories.make_project()
    key, other = (factories.make_key(name=name, scopes=("read",)) for name in ("one", "two"))
    elsewhere = factories.make_key(name="three", scopes=("read",))
    blind = factories.make_key(name="four", scopes=("fit",))
    RecorderLedger.objects.create(name="earlier", started_at=NOW, seen_at=NOW, stored=40)
    client = Client()

    def scrape(key: str) -> Any:
        return client.get("/metrics", headers={"Authorization": f"Bearer {key}"})

    before = samples(scrape(key).content.decode())
    # Keys that were good at another door.
    for each, path in ((elsewhere, "calls"), (blind, "budgets")):
        asked = client.get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {each}"})
        assert asked.status_code == 200
    away()
    assert (scrape(elsewhere).status_code, scrape(blind).status_code) == (200, 503)
    began = time.monotonic()
    during = scrape(key)
    unknown = scrape(other)
    ready = client.get("/readyz")
    took = time.monotonic() - began

    assert took < 3
    assert during.status_code == 200
    after = samples(during.content.decode())
    name = "helmdash_recorder_calls_totalstored"
    assert after[name] == before[name] >= 40
    assert unknown.status_code == 503
    assert ready.status_code == 503
    assert ready.json()["database"].startswith("the database does not respond")
    assert ready.json()["gateway"].startswith("ok for keys")
    assert ready.json()["pages"] == ready.json()["api"] == ready.json()["database"]
    assert (before["helmdash_database_available"], after["helmdash_database_available"]) == (1, 0)
    assert "stored" in ready.json()["recorder"]


def test_a_key_is_known_for_a_while_until_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=0)
    project = ProjectInfo(
        id=1,
        slug="one",
        name="One",
        is_default=True,
        is_demo=False,
        payload="off",
        retention_days=None,
    )
    callers = {
        name: Caller(
            key_id=number,
            name=name,
            scopes=frozenset({"read"}),
            project=project,
            latest_used_at=None,
            expires_at=expires_at,
        )
        for number, (name, expires_at) in enumerate(
            {"good": None, "ended": None, "expires": timezone.now() + timedelta(seconds=60)}.items()
        )
    }
    for name, caller in callers.items():
        limits.let_in(f"key of {name}", caller)
    limits.turn_away(["key of ended"], "")

    def known(name: str, *, seconds: float = 60) -> Caller | None:
        return limits.known(["somebody else's", f"key of {name}"], seconds=seconds)

    assert known("good") is callers["good"]
    assert known("expires") is callers["expires"]
    assert known("ended") is known("good", seconds=0) is known("nobody") is None
    later = timezone.now() + timedelta(seconds=61)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert known("expires") is None


def test_a_silent_database_is_not_waited_for(
    hang: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hang()

    for _ in range(6):
        with pytest.raises(DatabaseNotResponding):
            with_timeout(lambda: connection.cursor(), seconds=0.05)
    assert sum(each.name == "with-timeout" for each in threading.enumerate()) <= 4


@pytest.mark.django_db
def test_a_full_recorder_is_a_503_that_says_when_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factories.make_project()
    key = factories.make_key(scopes=("record",))

    def refuse(**given: object) -> None:
        raise RecorderFull("The recorder has too much to store just now.")

    monkeypatch.setattr(recorder(), "record", refuse)
    answer = Client().post(
        "/api/v1/calls",
        {"model": "m"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )

    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "unavailable"
    assert "too much to store" in answer.json()["detail"]


@pytest.mark.slow
@pytest.mark.one_database
def test_reports_during_an_outage_are_answered_503_and_none_is_lost_or_doubled(
    serve: Callable[..., Served],
) -> None:
    server = serve(DATABASE_URL="", HELMDASH_METRICS_OPEN="1")
    database = server.data_dir / "helmdash.sqlite3"
    away = server.data_dir / "away.sqlite3"
    is_over = threading.Event()
    statuses: list[int] = []

    def wait_for(count: int, *wanted: int) -> None:
        """Until so many more reports were answered with one of these."""
        before, last = len(statuses), time.monotonic() + 60
        while sum(status in wanted for status in statuses[before:]) < count:
            assert time.monotonic() < last, statuses
            time.sleep(0.05)

    def write(writer: int) -> list[str]:
        sent: list[str] = []
        with httpx.Client(headers=server.headers, timeout=30, trust_env=False) as client:
            while not is_over.is_set():
                call = load.call(f"w{writer}-{len(sent)}")
                answer = client.post(f"{server.base_url}/api/v1/calls", json=call)
                statuses.append(answer.status_code)
                if answer.status_code == 503:
                    assert int(answer.headers["Retry-After"]) > 0
                    assert answer.json()["code"] == "unavailable"
                    time.sleep(0.1)
                else:
                    sent.append(call["id"])
        return sent

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(4)]
        wait_for(20, 201)
        database.rename(away)
        # Each writer more than once: those under way at that moment, and those that came later.
        wait_for(20, 503)
        ready = httpx.get(f"{server.base_url}/readyz", timeout=10)
        made_anew = database.exists()
        away.rename(database)
        wait_for(20, 200, 201)
        is_over.set()
        sent = [name for each in writing for name in each.result()]

    assert not made_anew
    assert {201, 503} <= set(statuses) <= {200, 201, 503}
    assert ready.status_code == 503
    assert ready.json()["recorder"]["state"] == "spooling"
    scraped = samples(httpx.get(f"{server.base_url}/metrics").text)
    assert scraped["helmdash_recorder_calls_totalstored"] == len(sent)
    with httpx.Client(headers=server.headers, trust_env=False) as client:
        found = client.post(
            f"{server.base_url}/api/v1/calls/reconcile", json={"ids": sent[:500]}
        ).json()
    assert found["missing"] == []


@pytest.mark.slow
@pytest.mark.one_database
def test_postgresql_is_stopped_and_the_counters_can_be_read_on(
    serve: Callable[..., Served], server: Postgres
) -> None:
    served = serve(DATABASE_URL=create_database(server.url("postgres"), "scraped"))

    with httpx.Client(base_url=served.base_url, timeout=20, trust_env=False) as client:

        def ask(path: str, **headers: str) -> tuple[httpx.Response, float]:
            began = time.monotonic()
            return client.get(path, headers=headers), time.monotonic() - began

        client.post("/api/v1/calls", json=load.call("one"), headers=served.headers)
        before, _ = ask("/metrics", **served.headers)
        server.halt()
        asked = [ask("/metrics", **served.headers) for _ in range(3)]
        unknown, unknown_took = ask("/metrics", Authorization="Bearer hd_unknown")
        ready, ready_took = ask("/readyz")
        server.resume()
        end = time.monotonic() + 20
        while ask("/readyz")[0].status_code != 200 and time.monotonic() < end:
            time.sleep(0.2)
        refused, _ = ask("/metrics", Authorization="Bearer hd_unknown")

    name = "helmdash_recorder_calls_totalstored"
    assert before.status_code == 200
    # The limit of a report's own answer, on a machine that does other things besides.
    for during, took in asked:
        assert (during.status_code, took < 5) == (200, True)
        assert samples(during.text)[name] == samples(before.text)[name] == 1
    assert (unknown.status_code, unknown_took < 5) == (503, True)
    assert (ready.status_code, ready_took < 5) == (503, True)
    assert ready.json()["recorder"]["stored"] == 1
    assert refused.status_code == 401
