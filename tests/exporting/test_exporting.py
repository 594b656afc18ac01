"""Recorded calls reach a receiver of OTLP traces, whatever happens in between."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families

from helmdash import conf
from helmdash.api.metrics import KnownUsage, known_usage
from helmdash.conf.header_list import parse_headers
from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.core.calls.capture import CapturedTrim
from helmdash.core.calls.routes import CallRoute
from helmdash.exporting import running
from helmdash.exporting.running import KIND
from helmdash.operations.care.clearing import clear
from helmdash.operations.exporting import environment, outbox
from helmdash.operations.jobs.running import JobThread, Run
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.exporting import export_states
from helmdash.records.access.secrets import seal
from helmdash.records.models import AuditEntry, Exporter, PendingExport, Round
from helmdash.upstream.services.trace_export import address_of
from tests.factories import make_capture, make_key, make_project, record, sign_in


class Receiver:
    """A server that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.unwanted = ""
        self.words = b"no, thanks"
        self.rejected = 0
        self.is_free = threading.Event()
        self.is_free.set()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str]]:
        assert path == "/v1/traces"
        self.headers.append(headers)
        self.is_free.wait(20)
        if self.answers:
            return self.answers.pop(0)
        request = ExportTraceServiceRequest.FromString(gzip.decompress(body))
        spans = [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
        if any(attributes(span).get("helmdash.call_id") == self.unwanted for span in spans):
            return 400, {}
        self.spans += spans
        return 200, {}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as kept:
        yield kept


@contextmanager
def receiving() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = kept.take(self.path, headers, body)
            answer = ExportTraceServiceResponse()
            answer.partial_success.rejected_spans = kept.rejected
            content = answer.SerializeToString() if status == 200 else kept.words
            self.send_response_only(status)  # without a date, which a test may have to say
            for name, value in {**more, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    yield kept
    kept.is_free.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def project(db: None) -> ProjectInfo:
    known_usage.forget()
    running._at_once.clear()
    return make_project()


def add(receiver: Any, **over: Any) -> Exporter:
    values = {"name": "phoenix", "url": receiver.url, "allow_private": True, **over}
    return Exporter.objects.create(**values)


def export() -> None:
    """One look of a server's thread."""
    JobThread((KIND,), holder="here").look_once()


def _exporting(step: Callable[[], None]) -> None:
    """One run, with something done between its steps."""
    now = timezone.now()
    KIND.run(Run(now=now, cursor="", go_on=step, tell=lambda _: step()))


def again() -> None:
    """The wait after a failure is over."""
    Exporter.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    export()


def attributes(span: Any) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }


def test_a_call_comes_with_its_judgement(project: ProjectInfo, receiver: Receiver) -> None:
    add(receiver, headers_encrypted=seal("Authorization=Bearer%20hidden"))
    record(
        make_capture(id="one", usage={"prompt_tokens": 120_000, "completion_tokens": 5}),
        make_capture(
            id="two",
            usage=None,
            finish_reason=None,
            status="error",
            http_status=500,
            error_message="gone",
            latency_ms=1500,
        ),
        make_capture(
            id=f"otel:{'a' * 32}:{'b' * 16}", trim=CapturedTrim(before_bytes=900, after_bytes=7)
        ),
        project=project,
    )

    export()

    names = ("one", "two", f"otel:{'a' * 32}:{'b' * 16}")
    by_name = {attributes(span)["helmdash.call_id"]: span for span in receiver.spans}
    first, second, third = (by_name[name] for name in names)
    told = attributes(first)
    assert told["helmdash.health.level"] == "critical"
    assert told["gen_ai.usage.input_tokens"] == told["llm.token_count.prompt"] == 120_000
    assert told["gen_ai.conversation.id"] == told["session.id"] == "talk"
    assert told["helmdash.suspected_cut"] is False
    assert first.status.code == 1
    assert (second.status.code, attributes(second)["error.type"]) == (2, "upstream_error")
    assert second.end_time_unix_nano - second.start_time_unix_nano == 1_500_000_000
    assert attributes(third)["helmdash.trim.after_bytes"] == 7
    assert (third.trace_id.hex(), third.parent_span_id.hex()) == ("a" * 32, "b" * 16)
    assert receiver.headers[0]["authorization"] == "Bearer hidden"
    assert PendingExport.objects.count() == 0
    (state,) = export_states()
    assert (state.exported, state.refused, state.waiting) == (3, 0, 0)
    export()
    assert len(receiver.spans) == 3


def test_a_call_that_another_door_completes_is_sent_again(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver)
    told = make_capture(id="anthropic:req_1", usage=None, routes=(CallRoute.OTLP_SPAN,))
    better = replace(told, usage={"prompt_tokens": 9_000}, routes=(CallRoute.GATEWAY,))
    record(told, project=project)
    export()

    record(better, project=project)
    export()
    record(replace(told, routes=(CallRoute.TRANSCRIPT,)), make_capture(id="b"), project=project)
    export()

    spans = [span for span in receiver.spans if attributes(span)["helmdash.call_id"] != "b"]
    assert len({(span.trace_id, span.span_id) for span in spans}) == 1
    prompts = [attributes(span).get("gen_ai.usage.input_tokens") for span in spans]
    assert prompts == [None, 9_000, 9_000]
    # Completed before it was sent, it goes once.
    record(replace(told, id="anthropic:req_2"), project=project)
    record(replace(better, id="anthropic:req_2"), project=project)
    before = len(receiver.spans)
    export()
    assert len(receiver.spans) == before + 1


def test_nothing_is_lost_while_a_receiver_is_away(project: ProjectInfo, receiver: Receiver) -> None:
    add(receiver)
    receiver.answers = [(503, {"Retry-After": "7"}), (401, {})]
    record(make_capture(id="one"), project=project)

    export()
    export()  # too early: nobody is asked
    waiting = export_states()[0]
    assert (waiting.waiting, waiting.failures, len(receiver.headers)) == (1, 1, 1)
    assert waiting.problem == "503 no, thanks"
    assert waiting.lag_s(timezone.now()) > 0
    again()
    record(make_capture(id="two"), project=project)
    assert export_states()[0].failures == 2
    again()

    assert [attributes(span)["helmdash.call_id"] for span in receiver.spans] == ["one", "two"]
    assert (export_states()[0].failures, export_states()[0].problem) == (0, "")


@pytest.mark.parametrize(
    ("asked", "waits_s"),
    [
        ("7", 7),
        # as a date, by the receiver's own clock (RFC 9110, 10.2.3)
        ("Sun, 22 Nov 2026 01:01:30 GMT", 90),
        # shorter than our own first wait
        ("0", 5),
        ("Sun, 22 Nov 2026 00:00:00 GMT", 5),
        # no wait that anybody can mean
        ("Tue, 22 Nov 2044 01:00:00 GMT", 600),
        ("9" * 19, 600),
        ("soon", 5),
    ],
)
def test_a_receiver_is_left_alone_for_as_long_as_it_asks(
    project: ProjectInfo, receiver: Receiver, asked: str, waits_s: int
) -> None:
    add(receiver)
    said_at = "Sun, 22 Nov 2026 01:00:00 GMT"
    receiver.answers = [(503, {"Retry-After": asked, "Date": said_at})]
    record(make_capture(id="one"), project=project)
    before = timezone.now()

    export()

    next_try_at = Exporter.objects.get().next_try_at
    assert next_try_at is not None
    assert waits_s <= (next_try_at - before).total_seconds() < waits_s + 20


def test_an_exporter_does_not_wait_for_a_clock_that_was_set_back(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver, failures=1, next_try_at=timezone.now() + timedelta(hours=2))
    record(make_capture(id="one"), project=project)

    export()

    assert [attributes(span)["helmdash.call_id"] for span in receiver.spans] == ["one"]


def test_one_call_that_is_not_taken_does_not_hold_up_the_others(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver)
    receiver.unwanted = "two"
    receiver.answers = [(413, {})]
    for name in ("one", "two", "three"):
        record(make_capture(id=name), project=project)

    export()

    assert [attributes(span)["helmdash.call_id"] for span in receiver.spans] == ["one", "three"]
    (state,) = export_states()
    assert (state.exported, state.refused, state.waiting) == (2, 1, 0)


def test_one_of_a_batch_does_not_take_the_others_along(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver)
    receiver.unwanted = "call-3"
    record(*(make_capture(id=f"call-{number}") for number in range(9)), project=project)

    export()

    names = sorted(attributes(span)["helmdash.call_id"] for span in receiver.spans)
    assert names == [f"call-{number}" for number in range(9) if number != 3]
    (state,) = export_states()
    assert (state.exported, state.refused, state.waiting) == (8, 1, 0)


def test_a_receiver_that_refuses_everything_loses_nothing(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver)
    receiver.answers = [(400, {})] * 400
    record(*(make_capture(id=f"call-{number}") for number in range(30)), project=project)

    export()
    assert (export_states()[0].waiting, export_states()[0].refused) == (30, 0)
    assert export_states()[0].problem == "400 no, thanks"

    receiver.answers = []
    again()
    assert len(receiver.spans) == 30


def test_a_slow_receiver_holds_up_no_other(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those that are asked after it, nor what is recorded meanwhile for the others."""
    monkeypatch.setattr(running, "_LOOK_SECONDS", 0.05)
    with receiving() as slow:
        add(slow, name="slow")
        add(receiver, name="fast")
        slow.is_free.clear()
        record(make_capture(id="one"), project=project)
        fast, take = ["one"], receiver.take

        def taken(*request: Any) -> tuple[int, dict[str, str]]:
            answer = take(*request)
            if len(fast) == len(receiver.spans) == 3:
                slow.is_free.set()
            return answer

        def recorded_meanwhile() -> None:
            if len(fast) == len(receiver.spans) < 3:
                fast.append(f"more-{len(fast)}")
                record(make_capture(id=fast[-1]), project=project)

        monkeypatch.setattr(receiver, "take", taken)
        _exporting(recorded_meanwhile)

        assert [attributes(span)["helmdash.call_id"] for span in receiver.spans] == fast
        assert sorted(attributes(span)["helmdash.call_id"] for span in slow.spans) == sorted(fast)
    assert [(state.exported, state.waiting) for state in export_states()] == [(3, 0), (3, 0)]


def test_what_a_receiver_took_before_it_failed_is_not_sent_again(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that takes so many requests a minute, and refuses a call, never gets further."""
    add(receiver)
    names = [f"call-{number}" for number in range(64)]
    record(*(make_capture(id=name) for name in names), project=project)
    receiver.unwanted = "call-40"
    take, left = receiver.take, 0

    def limited(*request: Any) -> tuple[int, dict[str, str]]:
        nonlocal left
        left -= 1
        return take(*request) if left >= 0 else (429, {"Retry-After": "1"})

    monkeypatch.setattr(receiver, "take", limited)
    tries = 0
    while export_states()[0].waiting and tries < 9:
        left, tries = 7, tries + 1
        again()

    sent = [attributes(span)["helmdash.call_id"] for span in receiver.spans]
    assert sorted(sent) == sorted(set(names) - {"call-40"})
    assert (export_states()[0].exported, export_states()[0].refused) == (63, 1)


def test_who_is_too_slow_for_many_calls_gets_fewer(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(receiver)
    record(*(make_capture() for _ in range(300)), project=project)
    take, sizes = receiver.take, []

    def slow_for_many(*request: Any) -> tuple[int, dict[str, str]]:
        before = len(receiver.spans)
        answer = take(*request)
        sizes.append(len(receiver.spans) - before)
        if sizes[-1] > 100:
            del receiver.spans[before:]
            return 504, {}
        return answer

    monkeypatch.setattr(receiver, "take", slow_for_many)
    for _ in range(9):
        again()

    assert sizes == [300, 250, 125, 62, 124, 62, 124, 62, 114, 62, 52]
    assert (export_states()[0].exported, export_states()[0].waiting) == (300, 0)


def test_a_failure_late_in_a_run_is_waited_for_from_then_on(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = timezone.now() + timedelta(minutes=5)
    monkeypatch.setattr(running, "clock", lambda: later)
    add(receiver)
    receiver.answers = [(503, {})]
    record(make_capture(), project=project)

    export()

    assert Exporter.objects.get().next_try_at == later + timedelta(seconds=5)


def test_each_exporter_gets_what_is_its_own(project: ProjectInfo, receiver: Receiver) -> None:
    other = make_project(slug="elsewhere")
    add(receiver, name="theirs", project_id=other.id)
    add(receiver, name="off", enabled=False)
    record(make_capture(id="ours"), project=project)
    record(make_capture(id="theirs"), project=other)
    erased = make_capture(id="gone", conversation="gone")
    record(erased, project=other)
    erase_conversation(actor=SHELL, project=other, conversation="gone", now=timezone.now())

    export()

    assert [attributes(span)["helmdash.call_id"] for span in receiver.spans] == ["theirs"]
    assert PendingExport.objects.count() == 0


def test_a_request_has_no_more_spans_than_it_may(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of one transaction stay together, and were sent with those of others beyond it."""
    add(receiver)
    for number in (2, 2, 1, 3, 1):
        record(*(make_capture() for _ in range(number)), project=project)
    monkeypatch.setattr(running, "_AT_ONCE", 3)
    sizes: list[int] = []
    take = receiver.take

    def measured(*request: Any) -> tuple[int, dict[str, str]]:
        before = len(receiver.spans)
        answer = take(*request)
        sizes.append(len(receiver.spans) - before)
        return answer

    monkeypatch.setattr(receiver, "take", measured)
    export()

    assert sizes == [2, 3, 3, 1]


def test_what_is_too_old_is_counted_and_given_up(project: ProjectInfo, receiver: Receiver) -> None:
    add(receiver, next_try_at=timezone.now() + timedelta(minutes=9))
    record(make_capture(), project=project)
    PendingExport.objects.update(at=timezone.now() - outbox.KEPT - timedelta(minutes=1))

    assert outbox.give_up_old(now=timezone.now()) == 1
    assert export_states()[0].refused == 1


def test_what_waits_for_one_that_is_off_is_given_up_too(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver)
    record(make_capture(), project=project)
    Exporter.objects.update(enabled=False)
    export()
    assert export_states()[0].waiting == 1
    PendingExport.objects.update(at=timezone.now() - outbox.KEPT - timedelta(minutes=1))

    export()

    assert (export_states()[0].waiting, export_states()[0].refused) == (0, 1)
    assert receiver.headers == []


def test_a_private_address_needs_the_operators_word(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver, allow_private=False)
    record(make_capture(), project=project)

    export()

    (state,) = export_states()
    assert receiver.headers == []
    assert state.waiting == 1
    assert "machine" in state.problem


def test_the_environment_is_an_exporter_like_any_other(
    project: ProjectInfo, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELMDASH_OTLP_EXPORT_URL", f"{receiver.url}/v1/traces")
    monkeypatch.setenv("HELMDASH_OTLP_EXPORT_HEADERS", "x-key=a%2Cb")
    conf.env.cache_clear()
    environment.follow_environment()
    environment.follow_environment()
    record(make_capture(), project=project)
    export()
    assert receiver.headers[0]["x-key"] == "a,b"
    assert len(receiver.spans) == 1

    monkeypatch.delenv("HELMDASH_OTLP_EXPORT_URL")
    conf.env.cache_clear()
    environment.follow_environment()
    assert Exporter.objects.count() == 0
    conf.env.cache_clear()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://tempo:4318", "http://tempo:4318/v1/traces"),
        ("http://tempo:4318/", "http://tempo:4318/v1/traces"),
        ("https://l.test/api/public/otel", "https://l.test/api/public/otel/v1/traces"),
        ("https://p.test/v1/traces", "https://p.test/v1/traces"),
    ],
)
def test_the_path_of_traces_is_put_behind_a_base(given: str, address: str) -> None:
    assert address_of(given) == address


def test_headers_are_read_in_both_forms() -> None:
    assert parse_headers("Authorization=Basic%20cGs%3D,x-a=1") == (
        ("authorization", "Basic cGs="),
        ("x-a", "1"),
    )
    assert parse_headers("Authorization: Basic cGs=\nX-A: 1") == (
        ("authorization", "Basic cGs="),
        ("x-a", "1"),
    )
    assert parse_headers("") == ()
    for wrong in ("token", "a b=1", "x=\u00e9"):
        with pytest.raises(ValueError, match="header 1 is no header") as caught:
            parse_headers(wrong)
        assert wrong not in str(caught.value)


def test_metrics_tell_of_calls_in_the_names_of_the_conventions(
    project: ProjectInfo, receiver: Receiver
) -> None:
    other = make_project(slug="elsewhere")
    add(receiver, next_try_at=timezone.now() + timedelta(minutes=9))
    record(*(make_capture(latency_ms=700) for _ in range(3)), project=project)
    record(make_capture(status="error", http_status=500, usage=None), project=project)
    untold = {"completion_tokens": 800_700}
    record(*(make_capture(usage=untold, finish_reason=None) for _ in range(2)), project=project)
    clear(actor=SHELL, project=project, conversation="talk", now=timezone.now())
    record(make_capture(model="anthropic/claude-sonnet-4-5"), project=other)
    key = make_key(name="scraper", scopes=("read",))

    told = Client().get("/metrics", headers={"Authorization": f"Bearer {key}"}).content.decode()
    values = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(told)
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float:
        return values[name, tuple(sorted(labels.items()))]

    of_model = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "openai",
        "gen_ai_request_model": "openai/gpt-4o",
    }
    assert value("gen_ai_client_inference_usage_input_tokens_total", **of_model) == 60_000
    kind = {"gen_ai_token_type": "input"}
    assert value("gen_ai_client_token_usage_sum", **of_model, **kind) == 60_000
    assert value("gen_ai_client_token_usage_bucket", **of_model, **kind, le="16384.0") == 0
    assert value("gen_ai_client_token_usage_bucket", **of_model, **kind, le="65536.0") == 3
    # Two replies that ended, and two of which the tokens alone are known.
    output = {"gen_ai_token_type": "output"}
    for name, labels in (
        ("gen_ai_client_token_usage", of_model | output),
        ("gen_ai_client_inference_operation_output_tokens", of_model),
    ):
        assert value(f"{name}_sum", **labels) == 1_602_000
        assert value(f"{name}_bucket", **labels, le="64.0") == 0
        assert value(f"{name}_bucket", **labels, le="256.0") == 3
        assert value(f"{name}_bucket", **labels, le="262144.0") == 3
        assert value(f"{name}_bucket", **labels, le="1048576.0") == 5
    assert value("helmdash_compactions_total", by="helmdash") == 1
    assert value("helmdash_compactions_total", by="client") == 0
    assert value("gen_ai_client_operation_duration_seconds_bucket", **of_model, le="1.28") == 3
    assert value("helmdash_calls_total", model="openai/gpt-4o", cause="") == 5
    assert value("helmdash_calls_total", model="openai/gpt-4o", cause="upstream_error") == 1
    assert value("helmdash_context_fullness_ratio_count", model="openai/gpt-4o") == 3
    assert (
        value("helmdash_conversations", level="healthy")
        + value("helmdash_conversations", level="unknown")
        == 1
    )
    assert value("helmdash_export_waiting_calls", exporter="phoenix") == 7
    # Another project's models are not this key's business.
    assert "claude-sonnet" not in told


def test_a_round_that_retention_takes_stays_counted(project: ProjectInfo) -> None:
    record(make_capture(), project=project)
    known = KnownUsage(seconds=0)

    def counted() -> int:
        told = known.told(project.id)
        assert told is not None
        return told.rounds.get("clear", 0)

    clear(actor=SHELL, project=project, conversation="talk", now=timezone.now())
    assert counted() == 1
    Round.objects.filter(opened_by="clear").delete()
    assert counted() == 1
    record(make_capture(conversation="more"), project=project)
    clear(actor=SHELL, project=project, conversation="more", now=timezone.now())
    assert counted() == 2


def test_the_dashboard_reads_names_that_there_are(project: ProjectInfo, receiver: Receiver) -> None:
    add(receiver)
    record(
        make_capture(
            latency_ms=5,
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 3},
            },
        ),
        project=project,
    )
    key = make_key(name="scraper", scopes=("read",))
    told = Client().get("/metrics", headers={"Authorization": f"Bearer {key}"}).content.decode()
    dashboard = Path("docs/deploy/grafana.json").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:helmdash|gen_ai)_[a-z_]+", dashboard))
    labels = set(re.findall(r"[{,](\w+)=", told))

    assert json.loads(dashboard)["title"] == "HelmDash"
    assert {name for name in named - labels if f"\n{name}" not in told} == set()


def test_what_a_receiver_says_is_bounded_and_tells_no_key(
    project: ProjectInfo, receiver: Receiver
) -> None:
    add(receiver, headers_encrypted=seal("Authorization=Bearer%20very-hidden"))
    receiver.answers = [(503, {"Retry-After": "9" * 30})]
    receiver.words = b"you sent very-hidden"
    record(make_capture(id="one"), project=project)

    export()

    state = export_states()[0]
    assert state.problem == "503 you sent [hidden]"
    row = Exporter.objects.get()
    assert row.next_try_at is not None
    assert row.next_try_at < timezone.now() + timedelta(hours=1)
    again()
    assert len(receiver.spans) == 1


def test_headers_are_in_no_audit_entry_and_problems_for_operators_only(
    project: ProjectInfo, receiver: Receiver
) -> None:
    superuser = sign_in("root", project=project, role=MemberRole.OWNER)
    get_user_model().objects.filter(username="root").update(is_superuser=True, is_staff=True)
    form = {"name": "phoenix", "url": "https://phoenix.test", "headers": "x-key=very-hidden"}
    made = superuser.post("/admin/records/exporter/add/", {**form, "enabled": "on"})
    assert made.status_code == 302, made.content.decode()[-3000:]
    Exporter.objects.update(failures=3, latest_problem="what it said")
    viewer = sign_in("viewer", project=project, role=MemberRole.VIEWER)

    entries = [f"{each} {each.changes}" for each in AuditEntry.objects.all()]
    assert any("phoenix" in each for each in entries)
    assert not any(Exporter.objects.get().headers_encrypted[:20] in each for each in entries)
    assert "what it said" in superuser.get("/settings/recorder/").content.decode()
    seen = viewer.get("/settings/recorder/").content.decode()
    assert "3 failed tries" in seen
    assert "what it said" not in seen
