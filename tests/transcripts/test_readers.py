"""What agents wrote, against counts by hand."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from helmdash.core.agents.names import foreign_name
from helmdash.transcripts.agents import NAMES, readers_of
from helmdash.transcripts.calls import conversation_name, moment_of, short_id
from helmdash.transcripts.importing import Importer, Progress, Stored
from helmdash.transcripts.reading import Home, parse_object
from helmdash.transcripts.sent_files import SentFiles
from helmdash.transcripts.telling import ProgressBar, summary_lines
from tests.transcripts.homes import CALLS, SESSION, claude_line, make_home, write_lines

SECRETS = ("secret", "The words of")


class Receiver:
    """Stores as HelmDash does: an id once."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}

    def __call__(self, reports: Sequence[dict[str, Any]]) -> Stored:
        fresh = {report["id"]: report for report in reports if report["id"] not in self.stored}
        self.stored |= fresh
        return Stored(new=len(fresh), known=len(reports) - len(fresh))


def importer_of(
    home: Path, send: Receiver, *, agents: Sequence[str] = (), texts: bool = False, **options: Any
) -> Importer:
    return Importer(
        readers_of(agents),
        Home(path=home, system="linux"),
        send=send,
        texts=texts,
        **{"sent": SentFiles(), **options},
    )


def test_a_home_of_all_agents_comes_to_the_count_by_hand(tmp_path: Path) -> None:
    receiver = Receiver()
    importer = importer_of(make_home(tmp_path), receiver)

    importer.run()

    told = {
        key: (
            report["conversation"],
            report.get("usage", {}).get("prompt_tokens"),
            report.get("usage", {}).get("completion_tokens"),
        )
        for key, report in receiver.stored.items()
    }
    assert told == {key: (talk, prompt, answer) for _, key, talk, prompt, answer, _ in CALLS}
    for _, key, _, _, _, members in CALLS:
        report = receiver.stored[key]
        assert {name: report.get(name) for name in members} == members, key
    counted = {name: summary.calls for name, summary in importer.summaries.items()}
    assert counted == {name: sum(call[0] == name for call in CALLS) for name in NAMES}


def test_a_second_run_adds_nothing_and_opens_nothing_that_has_not_changed(tmp_path: Path) -> None:
    home, receiver = make_home(tmp_path / "home"), Receiver()
    memory = tmp_path / "state" / "sent.json"
    importer_of(home, receiver, sent=SentFiles(memory)).run()
    stored = dict(receiver.stored)

    again = importer_of(home, receiver, sent=SentFiles(memory))
    again.run()
    without_memory = importer_of(home, receiver)
    without_memory.run()

    assert receiver.stored == stored
    assert {each.calls for each in again.summaries.values()} == {0}
    assert sum(each.new for each in without_memory.summaries.values()) == 0
    assert sum(each.known for each in without_memory.summaries.values()) == len(CALLS)


def test_a_side_question_of_a_session_that_was_sent_before_repeats_nothing(tmp_path: Path) -> None:
    receiver, memory = Receiver(), tmp_path / "sent.json"
    session = tmp_path / ".claude" / "projects" / "p" / f"{SESSION}.jsonl"
    write_lines(session, [claude_line("one"), claude_line("two")])
    importer_of(tmp_path, receiver, sent=SentFiles(memory)).run()
    aside: dict[str, Any] = {"isSidechain": True, "agentId": "btw"}
    write_lines(
        session.with_suffix("") / "subagents" / "agent-btw.jsonl",
        [claude_line("one", request="req_again", **aside), claude_line("aside", **aside)],
    )

    importer_of(tmp_path, receiver, sent=SentFiles(memory)).run()

    assert list(receiver.stored) == [
        "anthropic:req_one",
        "anthropic:req_two",
        "anthropic:req_aside",
    ]


def test_texts_leave_the_machine_only_where_they_may(tmp_path: Path) -> None:
    home, without, with_texts = make_home(tmp_path), Receiver(), Receiver()

    importer_of(home, without).run()
    importer_of(home, with_texts, texts=True).run()

    assert not [secret for secret in (*SECRETS, "/srv/somebody") if secret in str(without.stored)]
    assert all(secret in str(with_texts.stored) for secret in (*SECRETS, "/srv/somebody"))
    # Sizes in a provider's sentence are no text of the user's.
    failed = without.stored["claude:u-failed-7"]
    assert failed["error_message"] == "prompt is too long: 205000 tokens > 200000 maximum"


def test_a_compaction_is_kept_with_the_first_call_after_it(tmp_path: Path) -> None:
    receiver = Receiver()
    importer_of(make_home(tmp_path), receiver).run()

    told = receiver.stored["anthropic:req_four"]["metadata"]["compaction"]
    assert told == {"trigger": "auto", "before_tokens": 190_023, "after_tokens": 5_000}
    assert "compaction" not in receiver.stored["anthropic:req_three"]["metadata"]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    importer = importer_of(make_home(tmp_path), Receiver())
    importer.run()

    lines = "\n".join(summary_lines(importer.summaries))

    assert "claude: 1 refusals by the client itself left out" in lines
    assert "codex: 3 totals told again left out" in lines
    assert "codex: 2 totals without a call left out" in lines
    assert "opencode: 6 copies left out" in lines
    assert "cline: 2 requests without an end left out" in lines


HOSTILE: dict[str, bytes] = {
    "no JSON": b"nothing of the kind\n",
    "half a character": b'{"type":"assistant","sessionId":"s","message":{"model":"\xff\xfe"}}\n',
    "deep": b'{"type":' + b"[" * 100_000 + b"\n",
    "a list": b"[1,2,3]\n",
    "other kinds everywhere": b'{"type":"assistant","sessionId":{},"message":[],"payload":7}\n',
    "counts that are none": b'{"type":"assistant","sessionId":"s","message":{"id":"m","model":"m",'
    b'"usage":{"input_tokens":1e400,"output_tokens":-3,"cache_read_input_tokens":true}}}\n',
    "too many values": b'{"type":"assistant","sessionId":"s","n":[' + b"[]," * 600_000 + b"1]}\n",
    "an endless number": b'{"type":"assistant","sessionId":"s","n":' + b"9" * 5000 + b"}\n",
    "a moment larger than any float": b'{"type":"assistant","timestamp":1%s,"sessionId":"s",'
    b'"message":{"id":"m","model":"m","usage":{"input_tokens":4}}}\n' % (b"0" * 400),
    "unseen": b'{"type":"assistant","sessionId":"a\\u0000\\ud800\\u202e/../b",'
    b'"requestId":"\\u001b[31m","message":{"id":"\\ud800","model":"m\\u0000\\n","usage":{"input_tokens":4}}}\n',
}


def test_a_line_of_values_alone_takes_no_memory_of_its_own() -> None:
    assert parse_object(HOSTILE["too many values"]) is None
    long = b'{"text":"' + b"x" * 3_000_000 + b'"}'
    assert parse_object(long) is not None


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "pi", "qwen"])
def test_a_hostile_line_harms_no_other(tmp_path: Path, agent: str, kind: str) -> None:
    import orjson

    home, receiver = make_home(tmp_path), Receiver()
    for path in tmp_path.rglob("*.jsonl"):
        path.write_bytes(HOSTILE[kind] + path.read_bytes())

    importer_of(home, receiver, agents=[agent]).run()

    wanted = {key for name, key, *_ in CALLS if name == agent}
    assert wanted <= set(receiver.stored)
    # Strictly read, as the API does.
    assert orjson.loads(orjson.dumps(list(receiver.stored.values())))


def test_links_pipes_and_what_may_not_be_read_are_left_alone(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside.jsonl"
    root = home / ".claude" / "projects" / "p"
    write_lines(outside, [claude_line("linked")])
    write_lines(root / "good.jsonl", [claude_line("good")])
    (root / "linked.jsonl").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.jsonl")
    (root / "folder.jsonl").mkdir()
    receiver = Receiver()

    importer = importer_of(home, receiver, agents=["claude"])
    importer.run()

    assert set(receiver.stored) == {"anthropic:req_good"}
    (reason,) = importer.summaries["claude"].unreadable
    assert "pipe.jsonl is no regular file" in reason


def test_a_large_file_says_how_far_it_is(tmp_path: Path) -> None:
    lines = [claude_line(f"{number}") for number in range(200)]
    write_lines(tmp_path / ".claude" / "projects" / "p" / "s.jsonl", lines)
    told: list[Progress] = []

    importer_of(tmp_path, Receiver(), progress=told.append).run()

    shares = [each.done_bytes / each.all_bytes for each in told]
    assert shares == sorted(shares)
    assert len([share for share in shares if 0.1 < share < 0.9]) > 100
    assert (shares[-1], told[-1].calls) == (1, 200)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_moves_now_and_then_and_a_log_is_told_more_rarely() -> None:
    for stream in (shown := Terminal(), log := io.StringIO()):
        bar = ProgressBar(stream, moment=count(0, 0.05).__next__)
        for step in range(1, 301):
            bar(Progress("claude", step, 300, step))
        bar.close()

    assert 140 < shown.getvalue().count("\r") < 160
    assert shown.getvalue().endswith("100%  300 calls\n")
    assert log.getvalue() == "claude: 67%  200 calls\n"


def test_what_a_database_holds_beside_its_file_is_read(tmp_path: Path) -> None:
    home, receiver = make_home(tmp_path / "home"), Receiver()
    memory, agents = tmp_path / "sent.json", ["opencode"]
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        importer_of(home, receiver, agents=agents, sent=SentFiles(memory)).run()
        under_way, data = (
            "m2",
            json.loads(database.execute("SELECT data FROM message WHERE id = 'm1'").fetchone()[0]),
        )
        with database:
            database.execute(
                "UPDATE message SET data = ? WHERE id = ?", (json.dumps(data), under_way)
            )
        again = importer_of(home, receiver, agents=agents, sent=SentFiles(memory))
        again.run()

    assert again.summaries["opencode"].new == 1
    assert "opencode:m2" in receiver.stored


def test_a_file_is_followed_as_it_grows(tmp_path: Path) -> None:
    receiver = Receiver()
    path = write_lines(
        tmp_path / ".claude" / "projects" / "p" / "s.jsonl", [claude_line("one")], end='{"type":"a'
    )
    looks: list[set[str]] = []
    rest = 'ssistant","sessionId":"%s","requestId":"req_late","message":%s}\n'
    message = '{"id":"late","model":"m","usage":{"input_tokens":4}}'

    def wait(_: float) -> None:
        looks.append(set(receiver.stored))
        if len(looks) == 1:
            with path.open("a") as stream:
                stream.write(rest % (SESSION, message))
            # Long ago: nobody writes there any more.
            os.utime(path, (1, 1))
        if len(looks) == 2:
            write_lines(path.with_name("new.jsonl"), [claude_line("two")])

    importer = importer_of(tmp_path, receiver, agents=["claude"])
    # New files are looked for by the clock: here at every look.
    importer.search_seconds = 0
    importer.watch(is_over=lambda: len(looks) >= 5, wait=wait)

    # The newest response of a file is held back, since more of it may come.
    assert looks[0] == set()
    assert {"anthropic:req_one"} <= looks[1]
    assert looks[4] >= {"anthropic:req_one", "anthropic:req_late"}
    assert importer.summaries["claude"].files == 2


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_sub_agents_response_is_given_when_its_last_block_is_there(
    tmp_path: Path, is_followed: bool
) -> None:
    """Its first lines have a placeholder for the tokens of the answer, and a block may take long:
    who is told of an id again takes nothing more."""
    growing = {"input_tokens": 10, "output_tokens": 3}
    whole: dict[str, Any] = {**growing, "output_tokens": 900}
    agents: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    first = {**claude_line("long", usage=growing), **agents}
    last = {**claude_line("long", second=30, usage=whole), **agents}
    result = {"type": "user", "sessionId": SESSION, "message": {"content": []}, **agents}
    if not is_followed:
        last["message"]["stop_reason"] = "end_turn"
    receiver, looks = Receiver(), count()
    path = write_lines(
        tmp_path / ".claude" / "projects" / "p" / SESSION / "subagents" / "agent-a1.jsonl", [first]
    )
    told: list[int] = []

    def write(*lines: object, ago: float) -> None:
        with path.open("a") as stream:
            stream.write("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(path, (time.time() - ago, time.time() - ago))

    write(ago=20)

    def wait(_: float) -> None:
        told.append(len(receiver.stored))
        if len(told) == 3:
            write(*([last, result] if is_followed else [last]), ago=10)

    importer_of(tmp_path, receiver, agents=["claude"]).watch(
        is_over=lambda: next(looks) >= 6, wait=wait
    )

    assert told[2] == 0
    (report,) = receiver.stored.values()
    assert report["usage"]["completion_tokens"] == 900


def test_a_sub_agents_response_without_an_end_is_given_after_a_minute(tmp_path: Path) -> None:
    """About a fifth never get one."""
    receiver, looks = Receiver(), count()
    path = write_lines(
        tmp_path / ".claude" / "projects" / "p" / SESSION / "subagents" / "agent-a1.jsonl",
        [{**claude_line("cut"), "isSidechain": True, "agentId": "a1"}],
    )
    os.utime(path, (time.time() - 61, time.time() - 61))

    importer_of(tmp_path, receiver, agents=["claude"]).watch(
        is_over=lambda: next(looks) >= 3, wait=lambda _: None
    )

    assert list(receiver.stored) == ["anthropic:req_cut"]


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ("01a2-b3", "01a2-b3"),
        ("my chat/1", "my=20chat=2F1"),
        ("ä", "=C3=A4"),
        ("=", "=3D"),
        ("..", "=2E."),
    ],
)
def test_a_session_has_the_name_that_the_gateway_gives_it(told: str, named: str) -> None:
    assert conversation_name(told) == named == foreign_name(told)


def test_long_names_stay_different() -> None:
    long = [conversation_name("x" * 400 + end) for end in "ab"]
    assert long == [foreign_name("x" * 400 + end) for end in "ab"]
    ids = [short_id("x" * 400 + end) for end in "ab"]

    assert len({*long, *ids}) == 4
    assert max(map(len, long)) == 255
    assert max(map(len, ids)) == 128


@pytest.mark.parametrize(
    ("told", "moment"),
    [
        ("2026-11-20T10:00:01.123Z", "2026-11-20T10:00:01.123000+00:00"),
        ("2026-11-20T10:00:01.123456789+02:00", "2026-11-20T08:00:01.123456+00:00"),
        (1_763_640_000_000, "2025-11-20T12:00:00+00:00"),
        (1_763_640_000, "2025-11-20T12:00:00+00:00"),
        ("yesterday", "None"),
        (True, "None"),
        (1e300, "None"),
        (10**400, "None"),
        (-(10**400), "None"),
    ],
)
def test_moments_are_read_however_they_are_written(told: object, moment: str) -> None:
    found = moment_of(told)
    assert (found.isoformat() if found else "None") == moment
