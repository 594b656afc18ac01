"""What others see of the recorder: readiness, metrics, and reports during an outage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from helmdash import conf
from helmdash.operations.recorder import RecorderFull, recorder
from helmdash.records.models import RecorderLedger
from tests import factories
from tests.factories import NOW
from tests.recorder.test_outages import AWAY_SECONDS
from tests.recording import load
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
    assert ready.json()["recorder"].keys() == {"state", "waiting", "spool_bytes"}


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
def test_reports_during_an_outage_are_answered_503_and_none_is_lost_or_doubled(
    serve: Callable[..., Served],
) -> None:
    server = serve(DATABASE_URL="", HELMDASH_METRICS_OPEN="1")
    database = server.data_dir / "helmdash.sqlite3"
    away = server.data_dir / "away.sqlite3"
    is_over = threading.Event()
    statuses: set[int] = set()

    def write(writer: int) -> list[str]:
        sent: list[str] = []
        with httpx.Client(headers=server.headers, timeout=30, trust_env=False) as client:
            while not is_over.is_set():
                call = load.call(f"w{writer}-{len(sent)}")
                answer = client.post(f"{server.base_url}/api/v1/calls", json=call)
                statuses.add(answer.status_code)
                if answer.status_code == 503:
                    assert int(answer.headers["Retry-After"]) > 0
                    assert answer.json()["code"] == "unavailable"
                    time.sleep(0.1)
                else:
                    sent.append(call["id"])
        return sent

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(4)]
        time.sleep(1)
        database.rename(away)
        time.sleep(AWAY_SECONDS)
        ready = httpx.get(f"{server.base_url}/readyz", timeout=10)
        made_anew = database.exists()
        away.rename(database)
        time.sleep(2)
        is_over.set()
        sent = [name for each in writing for name in each.result()]

    assert not made_anew
    assert statuses == {201, 503} or statuses == {200, 201, 503}
    assert ready.status_code == 503
    assert ready.json()["recorder"]["state"] == "spooling"
    scraped = samples(httpx.get(f"{server.base_url}/metrics").text)
    assert scraped["helmdash_recorder_calls_totalstored"] == len(sent)
    with httpx.Client(headers=server.headers, trust_env=False) as client:
        found = client.post(
            f"{server.base_url}/api/v1/calls/reconcile", json={"ids": sent[:500]}
        ).json()
    assert found["missing"] == []
