"""The files: what is written, what is deleted when, and what is read after a sudden end."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.operations.recorder.capture_json import dump_capture, load_capture, make_storable
from helmdash.operations.recorder.files import orphaned_segments
from helmdash.operations.recorder.files.damaged_lines import DamagedLines
from helmdash.operations.recorder.files.orphaned_segments import OrphanedSegments, adopt
from helmdash.operations.recorder.files.spool import Entry, Spool
from helmdash.operations.recorder.files.spool_lines import call_line, done_line
from helmdash.operations.recorder.files.stuck_files import stuck_files
from tests.factories import NOW, make_capture

# Of Linux alone, which also tells of holes.
_COUNTS = Path("/proc/self/io")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(directory: Path) -> Iterator[Spool]:
    # Three calls of 100 bytes fill a segment.
    spool = Spool(directory, "host-1-now", max_bytes=10_000, segment_bytes=400)
    spool.open()
    yield spool
    spool.close()


def add(spool: Spool, name: str) -> Entry:
    body = orjson.dumps({"id": name, "model": "m", "pad": "x" * 40})
    entry = spool.add(project_id=1, capture=body, call_id=name)
    assert entry is not None
    return entry


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.ndjson"))


def tidy(spool: Spool, *, is_idle: bool = False) -> None:
    spool.remove(spool.tidy(is_idle=is_idle))


def after_a_kill(spool: Spool, directory: Path) -> OrphanedSegments:
    """What the next process finds: the lock is free, everything else as it was."""
    lock, spool._lock_handle = spool._lock_handle, None
    assert lock is not None
    os.close(lock)
    (found,) = adopt(directory)
    return found


def bytes_read() -> int:
    """How many this process has asked the system for so far."""
    return int(_COUNTS.read_text().split()[1])


def ids(orphaned: OrphanedSegments) -> list[str]:
    return [told.capture["id"] for told, _ in orphaned.lines()]


def written(path: Path) -> int:
    """Bytes of a segment that hold something: its room is reserved beforehand."""
    return len(path.read_bytes().rstrip(b"\0"))


def test_a_segment_goes_when_all_in_it_is_settled_and_not_before(
    spool: Spool, directory: Path
) -> None:
    entries = [add(spool, f"call-{number}") for number in range(7)]
    before = files(directory)
    spool.settle(entries[1:6])
    tidy(spool)
    held_by_the_first = files(directory)
    spool.settle(entries[:1])
    tidy(spool)

    assert len(before) >= 3
    assert held_by_the_first[0] == before[0]
    assert before[0] not in files(directory)
    assert spool.size == sum(written(directory / name) for name in files(directory))


def test_the_newest_file_is_emptied_when_nothing_is_under_way(
    spool: Spool, directory: Path
) -> None:
    spool.begin("call-1", 1)
    tidy(spool, is_idle=True)
    assert spool.size > 0

    spool.settle([add(spool, "call-1")])
    tidy(spool, is_idle=True)
    assert spool.size == 0
    assert [written(directory / name) for name in files(directory)] == [0]


def test_a_long_call_does_not_keep_old_files(spool: Spool, directory: Path) -> None:
    spool.begin("long", 1)
    spool.settle([add(spool, f"call-{number}") for number in range(20)])
    tidy(spool)

    assert len(files(directory)) <= 2
    assert after_a_kill(spool, directory).in_flight == ("long",)


def test_calls_are_read_back_from_a_place_on_over_files(spool: Spool) -> None:
    entries = [add(spool, f"call-{number}") for number in range(9)]
    spool.settle(entries[:2])
    spool.begin("another", 1)

    found = [
        (entry.seq, orjson.loads(line)["capture"]["id"])
        for entry, line in spool.read(entries[2], calls=5, size=10_000)
    ]
    assert found == [(number + 1, f"call-{number}") for number in range(2, 7)]
    (only,) = spool.read(entries[4], calls=5, size=1)
    assert only[0] == entries[4]


def test_there_is_a_bound_and_room_again_once_calls_are_settled(
    spool: Spool, directory: Path
) -> None:
    found = [spool.add(project_id=1, capture=b'{"id":"a"}', call_id="a") for _ in range(500)]
    entries = [entry for entry in found if entry is not None]
    assert 0 < len(entries) < 500
    had_room = spool.has_room
    assert 9_900 < spool.size <= 10_000
    on_disk = sum(written(path) for path in directory.glob("*.ndjson"))
    assert on_disk == spool.size

    spool.settle(entries)
    tidy(spool)
    assert (had_room, spool.has_room) == (False, True)
    add(spool, "again")


def test_a_dead_process_leaves_what_was_not_settled_and_says_what_was_under_way(
    spool: Spool, directory: Path
) -> None:
    for name in ("lost", "call-0", "nothing"):
        spool.begin(name, 1)
    entries = [add(spool, f"call-{number}") for number in range(6)]
    spool.end("nothing")
    spool.settle([entries[0], entries[1], entries[4]])

    orphaned = after_a_kill(spool, directory)

    assert ids(orphaned) == ["call-2", "call-3", "call-5"]
    assert (orphaned.calls, orphaned.damaged, orphaned.in_flight) == (3, 0, ("lost",))
    orphaned.discard()
    assert list(directory.iterdir()) == []


def flipped(line: bytes, what: bytes, to: bytes) -> bytes:
    assert what in line
    return line.replace(what, to, 1)


GOOD = call_line(99, 1, b'{"id":"half","model":"m","content":"said"}')
OLD = b'{"seq":99,"project":1,"capture":{"id":"old","model":"m"}}\n'
# What stands behind a good call, how many lines of it are damaged, and which calls are read.
DAMAGE: dict[str, tuple[bytes, int, list[str]]] = {
    "nothing": (b"", 0, []),
    "a line of the version before": (OLD, 0, ["old"]),
    "half a call": (GOOD[:40], 1, []),
    "a call without its last byte": (GOOD[:-2], 1, []),
    "a call without its line break": (GOOD[:-1], 0, ["half"]),
    "the very start of a call": (b'{"se', 1, []),
    "half a start mark": (b'{"begin":"x', 1, []),
    "a flipped letter in a text": (flipped(GOOD, b"said", b"sbid"), 1, []),
    "a flipped digit of a project": (flipped(GOOD, b'ct":1', b'ct":9'), 1, []),
    "a flipped digit of a seq": (flipped(GOOD, b"99", b"19"), 1, []),
    "a flipped digit of a checksum": (GOOD[:-3] + b"x}\n", 1, []),
    "a flipped note of what is done": (flipped(done_line([[7, 7]]), b"7,7", b"1,9"), 1, []),
    "a flipped brace": (b"[" + GOOD[1:], 1, []),
    "behind a block that never came": (b'\0\0\0\0\0\0\0\0"}}', 1, []),
    "binary garbage": (bytes(range(1, 256)) * 3, 4, []),
    "somebody else's": (b'["not ours"]\n{"other":1}\nplain words\n', 3, []),
    "a call of another version": (
        b'{"seq":9,"project":1,"capture":[1]}\n{"seq":9,"project":"p","capture":{}}\n', 2, []
    ),
    "numbers that are none": (b'{"seq":1e5,"project":1,"capture":{"model":"m"}}\n', 1, []),
    "a note of nonsense": (b'{"done":[["a","b"]]}\n{"done":[1]}\n{"done":{}}\n', 3, []),
    "a start of nobody": (b'{"begin":{"a":1}}\n{"end":5}\n', 2, []),
    "a good call behind garbage": (b"\xff\xfe\n" + GOOD, 1, ["half"]),
}  # fmt: skip


@pytest.mark.parametrize(("behind", "damaged", "read"), DAMAGE.values(), ids=DAMAGE.keys())
def test_what_is_damaged_is_kept_aside_and_the_rest_is_read(
    directory: Path, behind: bytes, damaged: int, read: list[str]
) -> None:
    spool = Spool(directory, "host-1-now", max_bytes=10_000)
    spool.open()
    add(spool, "call-0")
    newest = spool._segments[-1]
    newest.write(behind, newest.size)

    orphaned = after_a_kill(spool, directory)

    assert (ids(orphaned), orphaned.damaged) == (["call-0", *read], damaged)
    assert orphaned.calls == 1 + len(read)
    aside = directory / "damaged"
    if damaged:
        assert aside.stat().st_mode & 0o777 == 0o600
        assert len(aside.read_bytes().splitlines()) >= damaged
        lines = behind.strip(b"\0\n").split(b"\n")
        assert any(line.strip(b"\0\r\t ") in aside.read_bytes() for line in lines)
    assert aside.exists() == bool(damaged)
    orphaned.mark_counted()
    orphaned.release()
    (again,) = adopt(directory)
    assert again.damaged == 0
    again.discard()
    assert [path.name for path in directory.iterdir()] == ["damaged"] * bool(damaged)


@pytest.mark.parametrize("hit", [b"\x0b", b"", b"x\t"])
def test_where_a_line_break_is_hit_both_calls_are_read(
    spool: Spool, directory: Path, hit: bytes
) -> None:
    # A nested object that begins like a line is none.
    nested = orjson.dumps({"id": "call-1", "model": "m", "metadata": {"a": {"seq": 7}}})
    lines = [call_line(number, 1, nested.replace(b"-1", b"-%d" % number)) for number in (1, 2, 3)]
    add(spool, "call-0")
    newest = spool._segments[-1]
    newest.write(lines[0][:-1] + hit + lines[1][:-1] + b"{junk" + lines[2], newest.size)

    orphaned = after_a_kill(spool, directory)

    assert ids(orphaned) == ["call-0", "call-1", "call-2", "call-3"]
    assert orphaned.calls == 4
    assert orphaned.damaged == 1 + bool(hit.strip())
    orphaned.release()


def test_a_file_that_is_larger_than_the_memory_is_read_in_pieces(
    spool: Spool, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphaned_segments, "_LONGEST_BYTES", 1 << 20)
    add(spool, "call-0")
    newest = spool._segments[-1]
    with newest.path.open("r+b") as file:
        file.seek(newest.size)
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.truncate(1 << 28)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + call_line(2, 1, b'{"id":"call-1","model":"m"}'))
    tracemalloc.start()

    orphaned = after_a_kill(spool, directory)

    assert (ids(orphaned), orphaned.damaged) == (["call-0", "call-1"], 1)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()
    orphaned.release()


@pytest.mark.skipif(not _COUNTS.exists(), reason="nothing tells here how much was read")
def test_a_hole_in_a_file_is_not_read_through(spool: Spool, directory: Path) -> None:
    add(spool, "call-0")
    newest = spool._segments[-1]
    with newest.path.open("r+b") as file:
        file.truncate(1 << 33)
        file.seek(0, os.SEEK_END)
        # Right behind the hole, and not at the beginning of a block of the disk.
        file.write(call_line(2, 1, b'{"id":"call-1","model":"m"}'))
        file.truncate(1 << 34)
    before = bytes_read()

    orphaned = after_a_kill(spool, directory)

    assert (ids(orphaned), orphaned.damaged) == (["call-0", "call-1"], 0)
    assert bytes_read() - before < 1 << 30, "of 16 GiB of zeros that take no room"
    orphaned.release()


def test_a_lock_that_cannot_be_opened_is_told(
    spool: Spool, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(spool, "call-0")
    after_a_kill(spool, directory).release()
    # As one of another user's; root opens those.
    (directory / "host-1-now.lock").unlink()
    (directory / "host-1-now.lock").mkdir()

    assert adopt(directory) == []
    assert "may stay there" in caplog.text
    assert "host-1-now.lock" in caplog.text


@pytest.mark.parametrize("size", [0, 400])
def test_an_empty_file_is_nothing(spool: Spool, directory: Path, size: int) -> None:
    (directory / "host-1-now-000001.ndjson").write_bytes(bytes(size))

    orphaned = after_a_kill(spool, directory)

    assert (orphaned.calls, orphaned.damaged, orphaned.in_flight) == (0, 0, ())
    orphaned.discard()
    assert list(directory.iterdir()) == []


def test_where_damage_cannot_be_kept_aside_its_file_stays(spool: Spool, directory: Path) -> None:
    add(spool, "call-0")
    newest = spool._segments[-1]
    newest.write(b"junk", newest.size)
    (directory / "damaged").mkdir()

    orphaned = after_a_kill(spool, directory)
    orphaned.discard()

    assert newest.path.exists()
    assert b"junk" in newest.path.read_bytes()


def test_of_files_that_stay_anybody_finds_why_until_they_are_read(
    spool: Spool, directory: Path
) -> None:
    add(spool, "call-0")
    pipe, lock = directory / "host-1-now-999998.ndjson", directory / "host-1-now.lock"
    os.mkfifo(pipe)
    # As a lock of another user's; root opens those.
    (directory / "other.lock").mkdir()
    os.utime(lock, (1_700_000_000, 1_700_000_000))
    assert [each.process for each in stuck_files(directory)] == ["other"]

    orphaned = after_a_kill(spool, directory)

    mine, others = stuck_files(directory)
    assert (mine.process, mine.why) == ("host-1-now", f"{pipe.name} is not an ordinary file")
    assert "Is a directory" in others.why
    assert orphaned.began_at == 1_700_000_000
    orphaned.release()
    assert len(stuck_files(directory)) == 2
    pipe.unlink()
    (directory / "other.lock").rmdir()
    (again,) = adopt(directory)
    assert stuck_files(directory) == ()
    assert again.began_at == 1_700_000_000
    again.discard()
    assert list(directory.iterdir()) == []


def test_what_cannot_be_read_or_removed_stays_and_stops_nobody(
    spool: Spool, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(spool, "call-0")
    newest = spool._segments[-1].path
    # As a failing disk does: neither opened for reading nor removed, by root either.
    unreadable = directory / "host-1-now-999999.ndjson"
    unreadable.mkdir()
    # Nor a pipe, which would be waited at.
    os.mkfifo(directory / "host-1-now-999998.ndjson")

    orphaned = after_a_kill(spool, directory)
    assert ids(orphaned) == ["call-0"]
    orphaned.discard()

    assert newest.exists()
    assert unreadable.exists()
    (again,) = adopt(directory)
    assert ids(again) == ["call-0"]
    again.problem = ""
    again.discard()
    assert "cannot be removed" in caplog.text
    (last,) = adopt(directory)
    last.release()


def test_files_whose_lock_is_gone_are_read_as_well(spool: Spool, directory: Path) -> None:
    add(spool, "call-0")
    after_a_kill(spool, directory).release()
    (directory / "host-1-now.lock").unlink()

    (orphaned,) = adopt(directory)

    assert ids(orphaned) == ["call-0"]
    orphaned.discard()
    assert list(directory.iterdir()) == []


def test_there_is_a_bound_to_what_is_kept_aside_and_the_log_says_what_had_no_room(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory.mkdir()
    aside = DamagedLines(directory, max_bytes=100)

    assert aside.keep([b"x" * 40, b'"talk"' * 7])
    assert "2 lines of the spool cannot be read; they are kept" in caplog.text
    assert aside.keep([b"z" * 40, b"w" * 40])
    assert "2 lines of the spool cannot be read; the file `damaged`" in caplog.text
    assert "had room for 0 of them, and for a part of the next" in caplog.text
    assert (directory / "damaged").read_bytes().splitlines()[2:] == [b"z" * 15]
    assert aside.keep([b"v"])
    assert (directory / "damaged").stat().st_size == 100
    assert (aside.forget("talk"), aside.forget("talk")) == (1, 0)
    assert (directory / "damaged").read_bytes() == b"x" * 40 + b"\n" + b"z" * 15 + b"\n"


def test_a_call_that_is_done_leaves_no_text_behind(spool: Spool, directory: Path) -> None:
    spool.begin("long", 1)
    gone, waits = add(spool, "gone"), add(spool, "waits")
    spool.settle([gone])

    held = b"".join(path.read_bytes() for path in sorted(directory.glob("*.ndjson")))
    assert held.count(b"x" * 40) == 1
    ((entry, line),) = spool.read(gone, calls=9, size=9_000)
    assert (entry, b"waits" in line) == (waits, True)
    orphaned = after_a_kill(spool, directory)
    assert (ids(orphaned), orphaned.damaged, orphaned.in_flight) == (["waits"], 0, ("long",))
    orphaned.release()


def test_calls_under_way_are_counted_once_also_when_the_heir_dies_too(
    spool: Spool, directory: Path
) -> None:
    spool.begin("lost", 1)
    first = after_a_kill(spool, directory)
    first.mark_counted()
    first.release()

    (second,) = adopt(directory)
    assert (first.in_flight, second.in_flight) == (("lost",), ())
    second.release()


def test_the_files_of_a_living_process_are_left_alone(spool: Spool, directory: Path) -> None:
    add(spool, "call-0")

    assert adopt(directory) == []


def test_a_clean_end_leaves_no_file(spool: Spool, directory: Path) -> None:
    spool.settle([add(spool, "call-0")])
    spool.close()

    assert list(directory.iterdir()) == []


TEXTS = st.text(max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
OBJECTS = st.dictionaries(TEXTS, st.none() | st.booleans() | NUMBERS | TEXTS, max_size=3)
CAPTURES = st.builds(
    make_capture,
    id=TEXTS,
    finish_reason=st.none() | TEXTS,
    content=st.none() | TEXTS,
    messages=st.none() | st.lists(OBJECTS, max_size=3).map(tuple),
    metadata=st.none() | OBJECTS,
    attempts=st.lists(OBJECTS, max_size=2).map(tuple),
    started_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    trim=st.none() | st.builds(CapturedTrim, before_bytes=st.just(2), after_bytes=st.just(1)),
    sent=st.none() | st.builds(SentSizes, bytes=st.none() | st.integers(0, 10)),
)


@settings(max_examples=150, deadline=None)
@given(CAPTURES)
def test_a_capture_comes_back_from_its_line_as_it_is_stored(capture: Capture) -> None:
    stored, line = dump_capture(make_storable(capture))

    assert b"\n" not in line
    assert load_capture(orjson.loads(line)) == stored
    assert dump_capture(stored)[1] == line


def test_what_no_database_stores_is_replaced_and_the_rest_kept() -> None:
    odd: dict[str, Any] = {
        "nul": "a\0",
        "half": "\ud83d",
        "big": 2**70,
        "deep": [{"x\0": "\udc00"}],
    }
    stored, _ = dump_capture(make_capture(metadata=odd, content="fine", started_at=NOW))

    assert stored.metadata == {
        "nul": "a\ufffd",
        "half": "\ufffd",
        "big": float(2**70),
        "deep": [{"x\ufffd": "\ufffd"}],
    }
    assert (stored.content, stored.started_at) == ("fine", NOW)


def test_a_line_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    told = {"model": "m", "from_the_future": 1, "sent": {"bytes": 5, "also": 2}}

    assert load_capture(told) == Capture(model="m", sent=SentSizes(bytes=5))


@pytest.mark.parametrize("levels", [100, 250, 255, 1_000, 20_000])
def test_what_is_nested_deeper_than_json_goes_is_cut_and_says_so(levels: int) -> None:
    deep: Any = "the end"
    for _ in range(levels):
        deep = {"a": [deep]}

    stored, line = dump_capture(make_capture(metadata={"deep": deep, "kept": 1}))

    assert stored.metadata is not None
    assert stored.metadata["kept"] == 1
    assert (b"the end" in line) == (levels <= 100)
    assert (b"nested too deeply" in line) == (levels > 100)
    assert orjson.loads(line)["metadata"]["kept"] == 1


def test_a_capture_that_is_in_order_is_not_copied() -> None:
    capture = replace(make_capture(), started_at=datetime(2026, 6, 5, tzinfo=UTC))

    assert make_storable(capture) is capture
    assert dump_capture(capture)[0] is capture
