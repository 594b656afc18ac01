"""What is taken in is stored, once, in order, and every number says so."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import DataError, IntegrityError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from helmdash.core.budgets.budget_table import MissingFallback
from helmdash.core.calls.capture import CapturedTrim, SentSizes
from helmdash.core.calls.composition import Composition
from helmdash.operations import ledger as operations
from helmdash.operations.database.sqlite_file import DatabaseFileGone
from helmdash.operations.recorder import Recorder, RecorderFull, RecorderState, group_commit
from helmdash.operations.recorder.kept_texts import OTHER_KEY
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries import ledger
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.ledger import LedgerCounts
from helmdash.records.access import secrets
from helmdash.records.models import Call, Conversation, Project, RecorderLedger
from tests.factories import NOW
from tests.recorder.support import call, counts, expected, names, submit
from tests.recording.support import make_ruled_project

Make = Callable[..., Recorder]


def test_calls_are_stored_in_the_order_they_ended(started: Recorder, project: ProjectInfo) -> None:
    submit(started, project, *range(300))

    assert started.settle()
    assert names() == expected(*range(300))
    assert [row.generation for row in Conversation.objects.order_by("name")] == [100, 100, 100]
    found = counts(started)
    assert (found.accepted, found.stored, found.waiting, found.spooled) == (300, 300, 0, 0)
    assert started.state() is RecorderState.STORING


def test_a_repeat_is_counted_as_one_and_stored_once(
    started: Recorder, project: ProjectInfo
) -> None:
    submit(started, project, 1, 2, 1)

    assert started.settle()
    assert names() == expected(1, 2)
    assert (counts(started).stored, counts(started).duplicate) == (2, 1)


def test_what_is_missing_in_a_capture_is_filled_in(started: Recorder, project: ProjectInfo) -> None:
    started.submit(project, "key", call(1, id=None, started_at=None, caller=None), NOW)

    assert started.settle()
    row = Call.objects.get()
    assert (row.caller, row.started_at) == ("key", NOW)
    assert row.name.startswith("call_")


def test_words_that_are_too_long_or_unstorable_do_not_lose_the_call(
    started: Recorder, project: ProjectInfo
) -> None:
    submit(
        started,
        project,
        1,
        model="m" * 400,
        finish_reason="f" * 100,
        error_code="e" * 300,
        content="a\0b\ud800c",
        messages=({"role": "user", "content": "nul \0 and \udc00", "n": 2**70},),
        latency_ms=-5,
        http_status=99_999,
        usage={"prompt_tokens": 5, "odd": float("nan")},
    )

    assert started.settle()
    row = Call.objects.get()
    assert (len(row.model), len(row.finish_reason_raw), len(row.error_code)) == (255, 64, 128)
    assert (row.latency_ms, row.http_status, row.prompt_tokens) == (None, None, 5)
    assert counts(started).rejected == 0


def _nested(levels: int) -> Any:
    value: Any = "the end"
    for _ in range(levels):
        value = {"a": value}
    return value


class _Odd:
    def __str__(self) -> str:
        raise RuntimeError("no words")


# What a capture may hold: everything that comes from a client or an upstream is theirs to choose.
HOSTILE: dict[str, dict[str, Any]] = {
    "deep metadata": {"metadata": _nested(300)},
    "metadata without end": {"metadata": _nested(20_000)},
    "deep messages": {"messages": ({"role": "user", "content": _nested(700)},)},
    "deep usage": {"usage": {"prompt_tokens": _nested(500), "total_tokens": 9}},
    "odd usage": {"usage": {"prompt_tokens": -(2**80), "completion_tokens": "x", "\0": 1e400}},
    "deep attempts": {"attempts": ({"number": 1, "message": _nested(300)},)},
    "what no JSON can say": {"metadata": {"a": {1, 2}, "b": b"x", 3: object()}},
    "what cannot even be named": {"metadata": {"a": _Odd()}},
    "a text of 3 MB": {"content": "x\u00e9" * 1_000_000},
    "words of 3 MB": {"content": " ".join(f"w{number}" for number in range(400_000))},
    "an error of 3 MB": {"error_message": "\0" * 3_000_000, "status": "error"},
    "half pairs and NUL": {"content": "\ud800\0", "model": "\udfff\0", "pack": "\0"},
    "large counts": {
        "sent": SentSizes(bytes=2**70, messages=-1, tools_bytes=2**63, images=10**30),
        "composition": Composition(system=2**70, results_by_tool={"\0": -1}),
        "window": 2**70,
        "round_number": 2**70,
        "overhead_ms": float("inf"),
        "latency_ms": 2**64,
        "reasoning_len": -5,
        "attempt": 2**40,
    },
    "counts at the edge of 64 bits": {
        "usage": {"prompt_tokens": 2**64 - 1, "completion_tokens": 2**63 - 1, "total_tokens": 2**63}
    },
    "counts whose sum is beyond it": {
        "usage": {"input_tokens": 2**62, "cache_read_input_tokens": 2**63 - 1, "output_tokens": 1}
    },
    "no number": {"overhead_ms": float("nan"), "usage": {"prompt_tokens": float("nan")}},
    "long words": {
        "id": "i" * 5_000,
        "model": "m" * 100_000,
        "conversation": "c" * 3_000,
        "finish_reason": "f" * 9_000,
        "response_format": "r" * 9_000,
        "purpose": "p" * 9_000,
    },
    "a trim out of bounds": {"trim": CapturedTrim(before_bytes=2**70, after_bytes=-(2**70))},
}


def test_whatever_a_call_holds_it_is_recorded(started: Recorder, project: ProjectInfo) -> None:
    for number, hostile in enumerate(HOSTILE.values()):
        submit(started, project, 2 * number, **hostile)
        submit(started, project, 2 * number + 1)  # and its neighbour is not harmed

    assert started.settle(30)
    stored = dict(Call.objects.order_by("id").values_list("name", "payload__metadata"))
    missing = [
        name
        for number, (name, hostile) in enumerate(HOSTILE.items())
        if (hostile.get("id") or f"call-{2 * number:05d}")[:128] not in stored
    ]
    assert missing == []
    assert len(stored) == 2 * len(HOSTILE)
    found = counts(started)
    assert (found.stored, found.rejected, found.dropped) == (len(stored), 0, 0)
    # Those of which something is missing say so.
    bare = [told for told in stored.values() if told and "not_stored" in told]
    assert found.bare == len(bare)


def test_a_call_larger_than_all_room_is_recorded_without_its_texts(
    project: ProjectInfo, make_recorder: Make
) -> None:
    recorder = make_recorder(spool_max_bytes=50_000, queue_bytes=50_000)
    recorder.start()
    submit(recorder, project, 1, content="x" * 200_000, finish_reason="stop")
    submit(recorder, project, 2)

    assert recorder.settle()
    row = Call.objects.select_related("payload").get(name="call-00001")
    assert row.payload.metadata == {"not_stored": "too large to wait"}
    assert (row.raw_content_bytes, row.finish_reason, row.payload.content) == (
        200_000,
        "stop",
        None,
    )
    assert (counts(recorder).stored, counts(recorder).bare, counts(recorder).dropped) == (2, 1, 0)


def test_damaged_lines_are_counted_apart_from_calls(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    dead = make_recorder()
    dead._intake.open()
    submit(dead, project, 1, 2, 3)
    (segment,) = dead._intake._spool._segments
    segment.write(b"QUESTION", segment.path.read_bytes().find(b"question 2"))
    lock, dead._intake._spool._lock_handle = dead._intake._spool._lock_handle, None
    os.close(lock or 0)
    recorder = make_recorder()
    recorder.start()

    assert recorder.settle()
    assert names() == expected(1, 3)
    found = counts(recorder)
    assert (found.accepted, found.stored, found.rejected) == (2, 2, 0)
    # The call that began and has no sound end is one that was lost on the way.
    assert (found.damaged_lines, found.in_flight_lost) == (1, 0)
    assert RecorderLedger.objects.get(name=dead.name).in_flight_lost == 1
    assert b"QUESTION 2" in (tmp_path / "spool" / "damaged").read_bytes()


def test_a_line_that_is_spoilt_while_it_waits_does_not_stop_the_recorder(
    project: ProjectInfo,
    make_recorder: Make,
    stuck: Callable[[], AbstractContextManager[None]],
) -> None:
    recorder = make_recorder(queue_calls=1, batch_calls=2)
    recorder.start()
    with stuck():
        submit(recorder, project, *range(8))
        (segment,) = recorder._intake._spool._segments
        for number in (3, 5):
            at = segment.path.read_bytes().find(b"question %d" % number)
            segment.write(b'"}{"', at)

    assert recorder.settle()
    assert names() == expected(0, 1, 2, 4, 6, 7)
    found = counts(recorder)
    assert (found.stored, found.dropped, found.damaged_lines) == (6, 2, 2)
    assert _until(lambda: recorder.own_ledger().counts.spool_bytes == 0)


def test_a_call_that_cannot_be_stored_is_put_aside_and_its_neighbours_stored(
    started: Recorder, project: ProjectInfo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # No column takes a negative number; nothing cuts it to one that does.
    submit(started, project, *range(10))
    submit(started, project, 10, attempt=-1)
    submit(started, project, *range(11, 20))

    assert started.settle()
    assert names() == expected(*range(10), *range(11, 20))
    assert (counts(started).stored, counts(started).rejected) == (19, 1)
    kept = tmp_path / "spool" / "rejected.ndjson"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (line,) = kept.read_bytes().splitlines()
    assert orjson.loads(line)["capture"]["id"] == "call-00010"
    assert "1 calls cannot be stored and were put aside" in caplog.text
    assert "answer 10" not in caplog.text


def test_calls_of_a_deleted_project_are_rejected_and_the_others_stored(
    started: Recorder, project: ProjectInfo
) -> None:
    with_row = Project.objects.create(slug="gone", name="Gone")
    gone = project_info(with_row)
    with_row.delete()
    submit(started, gone, 1)
    submit(started, project, 2)

    assert started.settle()
    assert names() == expected(2)
    assert counts(started).rejected == 1


def test_a_report_is_answered_after_its_commit(started: Recorder, project: ProjectInfo) -> None:
    answers = started.record_and_wait(
        project=project, captures=[call(1), call(2, id=None), call(1)], caller="key", now=NOW
    )

    assert [answer.duplicate for answer in answers] == [False, False, True]
    assert answers[0].id == "call-00001"
    assert Call.objects.count() == 2
    found = counts(started)
    assert (found.accepted, found.stored, found.duplicate) == (3, 2, 1)
    assert started.record_and_wait(project=project, captures=[], caller="key", now=NOW) == ()


def test_reports_of_many_threads_share_commits_and_get_their_own_answers(
    started: Recorder, project: ProjectInfo
) -> None:
    def report(number: int) -> tuple[Recorded, ...]:
        return started.record_and_wait(
            project=project,
            captures=[call(number), call(number + 1000)],
            caller="key",
            now=NOW,
        )

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(report, range(100)))

    assert [[a.id for a in each] for each in answers] == [expected(n, n + 1000) for n in range(100)]
    assert Call.objects.count() == 200


def test_a_faulty_report_fails_alone_and_whole(started: Recorder, project: ProjectInfo) -> None:
    good = started.record(project=project, captures=[call(1)], caller="key", now=NOW)
    bad = started.record(
        project=project, captures=[call(2), call(3, attempt=-1)], caller="key", now=NOW
    )
    other = started.record(project=project, captures=[call(4)], caller="key", now=NOW)

    assert good.result(5)[0].id == "call-00001"
    assert other.result(5)[0].id == "call-00004"
    assert isinstance(bad.exception(5), Exception)
    assert sorted(names()) == expected(1, 4)
    assert counts(started).rejected == 2


def test_a_report_that_gives_up_before_its_turn_is_withdrawn(
    project: ProjectInfo, make_recorder: Make, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    recorder = make_recorder(timeout=0.2)
    recorder.start()
    with stuck():
        first = recorder.record(project=project, captures=[call(1)], caller="key", now=NOW)
        assert _until(first.running)
        with pytest.raises(RecorderFull):
            recorder.record_and_wait(project=project, captures=[call(2)], caller="key", now=NOW)

    assert first.result(10)[0].id == "call-00001"
    assert recorder.settle()
    assert names() == expected(1)
    assert counts(recorder).accepted == 1


def test_memory_is_bounded_and_what_it_cannot_hold_is_read_back_in_order(
    project: ProjectInfo, make_recorder: Make, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    recorder = make_recorder(queue_calls=50, batch_calls=20)
    recorder.start()
    with stuck():
        # The writer has begun with this one: what comes behind it stays where it is put.
        held = recorder.record(project=project, captures=[call(2000)], caller="k", now=NOW)
        assert _until(held.running)
        submit(recorder, project, *range(400))
        calls, size = recorder.queued()
        assert calls == 50
        assert size < 50 * 2000
        assert recorder.state() is RecorderState.SPOOLING
        assert recorder.waiting() == 400
        # One report is taken in also when the queue is full; those behind it are turned away.
        recorder.record(project=project, captures=[call(1000)], caller="k", now=NOW)
        with pytest.raises(RecorderFull):
            recorder.record(project=project, captures=[call(1001)], caller="k", now=NOW)

    assert recorder.settle()
    stored = [name for name in names() if name < "call-01000"]
    assert stored == expected(*range(400))
    assert (counts(recorder).spooled, counts(recorder).dropped) == (350, 0)
    submit(recorder, project, 500)
    assert recorder.settle()
    assert counts(recorder).spooled == 350


def test_a_spool_that_runs_full_leaves_texts_out_first_and_drops_last(
    project: ProjectInfo, make_recorder: Make, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    recorder = make_recorder(spool_max_bytes=100_000, queue_calls=10, batch_calls=5)
    recorder.start()
    with stuck():
        submit(recorder, project, *range(200), content="x" * 2000)
        assert recorder.state() is RecorderState.FULL
        assert counts(recorder).spool_bytes <= 100_000 + 1000

    assert recorder.settle()
    found = counts(recorder)
    assert found.dropped > 0
    assert found.stored + found.dropped == 200
    assert names() == expected(*range(found.stored))
    texts = list(Call.objects.order_by("id").values_list("payload__content", flat=True))
    first_without = texts.index(None)
    assert 20 < first_without < len(texts) - 10
    assert set(texts[first_without:]) == {None}


def test_stopping_stores_what_waits_and_leaves_no_file(
    started: Recorder, project: ProjectInfo, tmp_path: Path
) -> None:
    submit(started, project, *range(700))
    started.begin("nothing-came-of-it", project.id)
    started.abandon("nothing-came-of-it")

    started.stop()

    assert names() == expected(*range(700))
    assert list((tmp_path / "spool").iterdir()) == []
    assert started.state() is RecorderState.STOPPED
    with pytest.raises(RecorderFull):
        started.record(project=project, captures=[call(1)], caller="key", now=NOW)
    row = RecorderLedger.objects.get()
    assert (row.accepted, row.stored, row.waiting) == (700, 700, 0)
    assert row.stopped_at is not None


def test_a_call_that_ends_after_the_stop_waits_for_the_next_start(
    started: Recorder, project: ProjectInfo, make_recorder: Make
) -> None:
    started.stop()
    submit(started, project, 1)
    assert names() == []
    assert (counts(started).spooled, counts(started).waiting) == (1, 1)

    # The process ends, and with it its lock.
    started._intake.close()
    following = make_recorder()
    following.start()

    assert following.settle()
    assert names() == expected(1)


def test_the_spool_is_for_its_owner_only_and_empty_when_idle(
    started: Recorder, project: ProjectInfo, tmp_path: Path
) -> None:
    submit(started, project, 1)
    spool = tmp_path / "spool"
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in spool.iterdir()} == {0o600}

    assert started.settle()
    assert _until(lambda: not any(path.read_bytes().strip(b"\0") for path in spool.iterdir()))


def test_the_spool_holds_no_text_that_the_project_does_not_keep(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    keeps_none = replace(project, payload="off")
    dead = make_recorder()
    dead._intake.open()
    said = {"content": "of the patient", "messages": ({"role": "user", "content": "my patient"},)}
    submit(dead, keeps_none, 1, **said)
    submit(dead, keeps_none, 2, http_status=400, error_message="no: 'my patient'", **said)

    spooled = b"".join(path.read_bytes() for path in (tmp_path / "spool").iterdir())
    assert b"call-00001" in spooled
    assert b"call-00002" in spooled
    assert b"patient" not in spooled
    # What is stored from memory is judged by the whole call; what an heir finds, by its figures.
    assert dead.settle()
    lengths = Call.objects.order_by("id").values_list("raw_content_bytes", "cause")
    assert list(lengths) == [(14, ""), (14, "bad_request")]


@pytest.mark.parametrize(
    ("read_with", "text", "metadata"),
    [
        ("the same key", "mail [email]", None),
        ("another key", None, {"not_stored": OTHER_KEY}),
    ],
)
def test_what_is_kept_masked_waits_sealed(
    project: ProjectInfo,
    make_recorder: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read_with: str,
    text: str | None,
    metadata: object,
) -> None:
    Project.objects.filter(pk=project.id).update(payload="redacted")
    dead = make_recorder()
    dead._intake.open()
    masked = replace(project, payload="redacted")
    submit(dead, masked, 1, content="mail ann@example.org", error_message="no: ann@example.org")

    spooled = b"".join(path.read_bytes() for path in (tmp_path / "spool").iterdir())
    assert b"call-00001" in spooled
    assert b"ann@" not in spooled
    dead._intake.close()
    following = make_recorder()
    if read_with == "another key":
        monkeypatch.setattr(secrets, "_signing_key", lambda: "another")
    following.start()
    assert following.settle()
    row = Call.objects.select_related("payload").get(name="call-00001")
    assert (row.payload.content, row.payload.metadata) == (text, metadata)
    assert row.raw_content_bytes == len("mail ann@example.org")


def test_the_ledger_adds_up_over_processes(
    started: Recorder, project: ProjectInfo, make_recorder: Make
) -> None:
    submit(started, project, 1, 2)
    started.stop()
    following = make_recorder()
    following.start()
    submit(following, project, 2, 3)
    assert following.settle()

    own = following.own_ledger()
    total = ledger.totals(own=own)
    assert (total.accepted, total.stored, total.duplicate, total.waiting) == (4, 3, 1, 0)
    listed = ledger.processes(own=own)
    assert [each.name for each in listed] == [following.name, started.name]
    assert [each.is_own for each in listed] == [True, False]
    assert listed[1].stopped_at is not None


def test_the_ledger_is_written_with_the_calls_it_counts(
    started: Recorder, project: ProjectInfo
) -> None:
    # The second burst comes within a second of the first.
    for burst in (range(5), range(5, 9)):
        submit(started, project, *burst)
        assert started.settle()
        row = RecorderLedger.objects.get(name=started.name)
        assert row.stored == Call.objects.count()
    submit(started, project, 20, attempt=-1)
    assert started.settle()

    row = RecorderLedger.objects.get(name=started.name)
    assert (row.accepted, row.stored, row.rejected, row.waiting) == (10, 9, 1, 0)


def test_a_fault_of_the_ledger_costs_no_call(
    started: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(own: object) -> None:
        raise IntegrityError("a value the ledger does not take")

    monkeypatch.setattr(operations, "write", fail)
    submit(started, project, 1, 2)

    assert started.settle()
    assert names() == expected(1, 2)
    assert counts(started).rejected == 0


def test_a_killed_process_keeps_its_books_and_its_heir_takes_what_waited(
    started: Recorder, project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    started.stop()
    dead = make_recorder()
    dead._intake.open()
    submit(dead, project, 0, 1, 2)
    dead.begin("under-way", project.id)
    # One was stored when the kill came, and not yet noted so in the spool.
    record_calls(project=project, captures=[call(0)], caller="owner", now=NOW)
    # Its row says three waited, of which one is nowhere.
    operations.write(
        replace(dead.own_ledger(), counts=LedgerCounts(accepted=9, stored=6, waiting=3))
    )
    _die(dead)
    heir = make_recorder()
    heir.start()
    assert heir.settle()
    assert _until(lambda: not list((tmp_path / "spool").glob(f"{dead.name}*")))

    row = RecorderLedger.objects.get(name=dead.name)
    assert (row.accepted, row.stored, row.waiting, row.in_flight_lost) == (6, 6, 0, 1)
    assert row.stopped_at is not None
    found = counts(heir)
    assert (found.accepted, found.stored, found.duplicate) == (2, 2, 0)
    assert found.in_flight_lost == 0
    assert ledger.totals(own=heir.own_ledger()).in_flight_lost == 1


def test_a_process_that_never_reached_the_database_gets_a_row_for_what_it_lost(
    project: ProjectInfo, make_recorder: Make
) -> None:
    dead = make_recorder()
    dead._intake.open()
    dead.begin("under-way", project.id)
    _die(dead)
    heir = make_recorder()
    heir._intake.open()
    # Until the row can be written, the loss shows in the heir's own numbers.
    assert heir.own_ledger().counts.in_flight_lost == 1
    _die(heir)
    last = make_recorder()
    last.start()
    assert _until(lambda: RecorderLedger.objects.filter(name=dead.name).exists())
    last.stop()

    lost = dict(RecorderLedger.objects.values_list("name", "in_flight_lost"))
    assert lost == {dead.name: 1, last.name: 0}
    assert RecorderLedger.objects.get(name=dead.name).stopped_at is not None


def test_what_was_inherited_and_not_stored_is_accepted_by_the_next_only(
    project: ProjectInfo, make_recorder: Make
) -> None:
    dead = make_recorder()
    dead._intake.open()
    submit(dead, project, 1, 2)
    _die(dead)
    between = make_recorder()
    between._intake.open()
    assert counts(between).waiting == 2
    between._intake.close()
    assert (counts(between).accepted, counts(between).waiting) == (0, 0)
    last = make_recorder()
    last.start()

    assert last.settle()
    assert (counts(last).accepted, counts(last).stored) == (2, 2)


def _die(recorder: Recorder) -> None:
    """The process is gone: its lock is free, its files are as they were."""
    lock = recorder._intake._spool._lock_handle
    assert lock is not None
    os.close(lock)
    recorder._intake._spool._lock_handle = None
    recorder._intake._adopted.release()


@pytest.mark.django_db
def test_rows_of_long_ago_are_added_up_in_one() -> None:
    kept = operations.KEPT_ROWS
    for number in range(kept + 7):
        RecorderLedger.objects.create(
            name=f"p{number}",
            started_at=NOW + timedelta(hours=number),
            seen_at=NOW,
            stopped_at=NOW,
            accepted=3,
            stored=2,
            rejected=1,
        )
    RecorderLedger.objects.create(name="running", started_at=NOW, seen_at=NOW, accepted=1)
    before = ledger.totals()

    operations.fold(now=NOW)
    operations.fold(now=NOW)

    assert ledger.totals() == before
    assert RecorderLedger.objects.count() == kept + 2
    assert RecorderLedger.objects.get(name=operations.EARLIER).stored == 14
    assert RecorderLedger.objects.filter(name="running").exists()


@pytest.mark.parametrize(
    ("error", "is_unavailable"),
    [
        (OperationalError("disk is full, no server, locked ..."), True),
        (DatabaseFileGone("moved"), True),
        # Somebody deleted the rule that judges whatever no other rule knows.
        (MissingFallback("no fallback"), True),
        (IntegrityError("a constraint"), False),
        (DataError("a value"), False),
        (ValueError("a value"), False),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), False),
    ],
)
def test_an_error_is_the_databases_or_the_datas(error: Exception, is_unavailable: bool) -> None:
    assert group_commit.is_unavailable(error) is is_unavailable


_READ_ONLY = {
    "sqlite": "PRAGMA query_only = 1",
    "postgresql": "SET default_transaction_read_only = on",
}


def test_a_database_that_is_read_but_takes_no_writes_is_not_back_before_it_takes_one(
    project: ProjectInfo, make_recorder: Make
) -> None:
    """After a report was refused nothing waits, and nothing is stored: that shows nothing."""
    is_read_only = True

    def take_no_writes(connection: BaseDatabaseWrapper, **_: object) -> None:
        if is_read_only and threading.current_thread().name == "recorder":
            with connection.cursor() as cursor:
                cursor.execute(_READ_ONLY[connection.vendor])

    connection_created.connect(take_no_writes)
    try:
        recorder = make_recorder(outage=0.0)
        recorder.start()
        with pytest.raises(RecorderFull):
            recorder.record_and_wait(project=project, captures=[call(1)], caller="key", now=NOW)
        is_back = _until(lambda: recorder.is_writing, seconds=2.5)
        is_read_only = False

        assert not is_back
        assert _until(lambda: recorder.is_writing)
    finally:
        connection_created.disconnect(take_no_writes)
    recorder.record_and_wait(project=project, captures=[call(1)], caller="key", now=NOW)
    assert names() == expected(1)


def test_without_a_start_reports_are_stored_in_the_callers_transaction(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    recorder = make_recorder()
    with transaction.atomic():
        (answer,) = recorder.record_and_wait(
            project=project, captures=[call(1)], caller="key", now=NOW
        )
        submit(recorder, project, 2)
        assert recorder.settle()
        assert names() == expected(1, 2)
        transaction.set_rollback(True)

    assert answer.id == "call-00001"
    assert names() == []
    assert recorder.state() is RecorderState.STORING
    assert not (tmp_path / "spool").exists()


def _until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    tick = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return True
        tick.wait(0.01)
    return False


def test_reports_that_are_half_stored_when_the_server_stops_are_answered(
    started: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of two projects wait together, and the database goes between the two."""
    other, goes_on = make_ruled_project(slug="other", name="Other"), threading.Event()

    def store(**given: Any) -> object:
        if given["project"].id == other.id:
            raise OperationalError("gone")
        goes_on.wait(5)
        return record_calls(**given)

    monkeypatch.setattr(group_commit, "record_calls", store)
    _, stored, left = [
        started.record(project=each, captures=[call(number)], caller="key", now=NOW)
        for number, each in enumerate((project, project, other))
    ]
    goes_on.set()
    assert stored.result(5)
    started.stop(0.3)

    with pytest.raises(RecorderFull, match="stopping"):
        left.result(0)
    row = RecorderLedger.objects.get(name=started.name)
    assert (row.stored, row.waiting) == (2, 0)
