"""A home folder of transcripts, imported by the zipapp that a served dashboard gives away.

What may go wrong with a gigabyte: memory that grows with it (of the reader, of the server), a bar
that stands still, a second run that adds something, a watched file whose line comes late. Sizes of
lines and kinds of content are those of real sessions: most bytes are results of tools and images
that no call is made of. `--mib` says how many MiB (1024); each agent has its share.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

from bench.databases import Place, places, serving
from bench.table import Row
from tests.support.server import Served

MIB = 1024 * 1024
_SIZE_MIB = 1024
# The reader keeps ids of what it met and one line at a time. The server is two processes, for a
# batch of 500 reports goes to its worker: 320 MiB with 50 MiB of transcripts, 350 with 1 GiB.
READER_MIB, SERVER_MIB = 150, 450
FOLLOWED_S = 2.0
_START_S = 1_780_000_000
Line = dict[str, object]
_WORDS = "the prompt was read and some file of the project changed in three places again ".split()


@dataclass
class Home:
    """A home that is being written. calls: how many there are, by the agent that made them."""

    path: Path
    seed: random.Random = field(default_factory=lambda: random.Random(14))
    calls: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def id(self) -> str:
        """A word of its own for each call, session, line."""
        self.number += 1
        return f"{self.number:08x}-{self.seed.getrandbits(64):016x}"

    def text(self, most: int) -> str:
        """Words; most are few, some are many."""
        size = int(most ** self.seed.random())
        return " ".join(self.seed.choices(_WORDS, k=max(size // 5, 1)))

    def at(self) -> str:
        """A time in ISO 8601, later with each id."""
        moment = time.gmtime(_START_S + self.number)
        return time.strftime("%Y-%m-%dT%H:%M:%S.120Z", moment)

    def count(self, agent: str) -> None:
        """One more call."""
        self.calls[agent] = self.calls.get(agent, 0) + 1


def make_home(path: Path, size: int) -> Home:
    """Transcripts of all agents, about `size` bytes in all."""
    home = Home(path)
    for share, write in _SHARES:
        write(home, int(size * share))
    return home


def _written(path: Path, most: int, lines: Callable[[], Iterator[object]]) -> int:
    """Write JSON lines until there are so many bytes; how many there are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with path.open("w", encoding="utf-8") as stream:
        while done < most:
            for line in lines():
                done += stream.write(json.dumps(line) + "\n")
    return done


def _claude(home: Home, size: int) -> None:
    """Sessions of some 30 MiB, and beside each some sub-agents; every message on several lines."""
    root = home.path / ".claude" / "projects" / "-home-somebody-project"
    while size > 0:
        session = home.id()
        turn = partial(_claude_turn, home, session)
        size -= _written(root / f"{session}.jsonl", min(size, 30 * MIB), turn)
        for _ in range(3):
            agent = home.id()
            path = root / session / "subagents" / f"agent-{agent}.jsonl"
            turn = partial(_claude_turn, home, session, agent=agent)
            size -= _written(path, min(size, MIB), turn)


def _claude_turn(home: Home, session: str, *, agent: str | None = None) -> Iterator[object]:
    common: Line = {
        "sessionId": session,
        "version": "2.1.197",
        "cwd": "/srv/somebody/project",
    }
    if agent:
        common |= {"isSidechain": True, "agentId": agent}
    name = home.id()
    usage: Line = {
        "input_tokens": 4,
        "cache_read_input_tokens": home.seed.randrange(10_000, 180_000),
        "cache_creation_input_tokens": home.seed.randrange(4_000),
        "output_tokens": 1,
    }
    blocks: list[Line] = [
        {"type": "thinking", "thinking": home.text(4_000), "signature": "s" * 400},
        {"type": "text", "text": home.text(2_000)},
        {"type": "tool_use", "id": f"toolu_{name}", "name": "Read", "input": {"path": "/a"}},
    ]
    for number, block in enumerate(blocks, start=1):
        yield {
            **common,
            "type": "assistant",
            "uuid": home.id(),
            "timestamp": home.at(),
            "requestId": f"req_{name}",
            "message": {
                "id": f"msg_{name}",
                "model": "claude-opus-4-8",
                "role": "assistant",
                "content": [block],
                "usage": usage | {"output_tokens": number * 40},
            },
        }
    home.count("claude")
    result = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": home.text(60_000)}
    yield {
        **common,
        "type": "user",
        "uuid": home.id(),
        "timestamp": home.at(),
        "message": {"role": "user", "content": [result]},
        "toolUseResult": {"stdout": result["content"]},
    }
    if home.number % 500 < 4:  # a picture
        source = {"type": "base64", "data": "iVBORw0KGgo" * 300_000}
        yield {**common, "type": "user", "message": {"content": [{"source": source}]}}


def _codex(home: Home, size: int) -> None:
    """Rollouts of some 10 MiB, of new and old releases by turns."""
    root = home.path / ".codex" / "sessions" / "2026" / "05" / "28"
    while size > 0:
        thread = f"{home.number:08x}-0000-4000-8000-{home.seed.getrandbits(48):012x}"
        is_new, total, is_begun = home.number % 2 == 0, 0, False

        def turn(thread: str = thread, is_new: bool = is_new) -> Iterator[object]:
            nonlocal total, is_begun
            if not is_begun:
                is_begun = True
                meta = {"id": thread, "cli_version": "0.169.0" if is_new else "0.150.0"}
                yield {"timestamp": home.at(), "type": "session_meta", "payload": meta}
                yield {"type": "turn_context", "payload": {"model": "gpt-5.1"}}
            name = home.id()
            item = {"type": "function_call_output", "output": home.text(80_000)}
            yield {"timestamp": home.at(), "type": "response_item", "payload": item}
            prompt = home.seed.randrange(9_000, 200_000)
            usage = {
                "input_tokens": prompt,
                "cached_input_tokens": prompt // 2,
                "output_tokens": 90,
                "total_tokens": prompt + 90,
            }
            total += prompt + 90
            told = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
            for _ in range(2):  # and once more for a limit of rate
                payload = {"type": "token_count", "info": told, "rate_limits": {"limit_id": "c"}}
                yield {"timestamp": home.at(), "type": "event_msg", "payload": payload}
            if is_new:
                payload = {"response_id": f"resp_{name}", "usage": usage}
                yield {"timestamp": home.at(), "type": "token_usage_record", "payload": payload}
            home.count("codex")

        size -= _written(root / f"rollout-2026-05-28T20-00-00-{thread}.jsonl", 10 * MIB, turn)


def _gemini(home: Home, size: int) -> None:
    root = home.path / ".gemini" / "tmp" / "abc" / "chats"
    while size > 0:
        session, is_begun = home.id(), False

        def turn(session: str = session) -> Iterator[object]:
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                yield {"sessionId": session, "kind": "main"}
            yield {"type": "user", "id": home.id(), "content": home.text(50_000)}
            message = {"type": "gemini", "id": home.id(), "model": "gemini-3-pro"}
            for output in (1, 60):
                tokens = {"input": 30_000, "output": output, "cached": 9_000, "thoughts": 7}
                yield {**message, "timestamp": home.at(), "tokens": tokens}
            home.count("gemini")

        size -= _written(root / f"session-{session}.jsonl", 8 * MIB, turn)


def _opencode(home: Home, size: int) -> None:
    """One database for all, as its releases of today have."""
    root = home.path / ".local" / "share" / "opencode"
    root.mkdir(parents=True)
    with closing(sqlite3.connect(root / "opencode.db")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT)")
        database.execute("CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT)")
        session = ""
        while size > 0:
            if home.number % 200 < 2 or not session:
                session = home.id()
                database.execute("INSERT INTO session VALUES (?, NULL)", (session,))
            tokens = {"input": 9, "output": 50, "reasoning": 0, "cache": {"read": 40_000}}
            times = {"created": (_START_S + home.number) * 1000, "completed": _START_S * 1000}
            answer: Line = {
                "role": "assistant",
                "modelID": "m",
                "tokens": tokens,
                "time": times,
            }
            asked: Line = {"role": "user", "text": home.text(50_000)}
            for data in (asked, answer):
                text = json.dumps(data)
                size -= len(text) + 100
                database.execute("INSERT INTO message VALUES (?, ?, ?)", (home.id(), session, text))
            home.count("opencode")


def _pi(home: Home, size: int) -> None:
    root = home.path / ".pi" / "agent" / "sessions" / "project"
    while size > 0:
        session, is_begun = home.id(), False

        def turn(session: str = session) -> Iterator[object]:
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                yield {"type": "session", "id": session, "cwd": "/srv/somebody"}
            said: Line = {"role": "user", "content": home.text(50_000)}
            yield {"type": "message", "id": home.id(), "timestamp": home.at(), "message": said}
            usage = {"input": 9, "output": 30, "cacheRead": 20_000, "cacheWrite": 50}
            said = {"role": "assistant", "model": "kimi", "usage": usage, "stopReason": "stop"}
            yield {"type": "message", "id": home.id(), "timestamp": home.at(), "message": said}
            home.count("pi")

        size -= _written(root / f"{session}.jsonl", 8 * MIB, turn)


def _cline(home: Home, size: int) -> None:
    """Tasks that are one document each, of some 3 MiB."""
    root = home.path / ".config" / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    while size > 0:
        home.number += 1
        task, messages, written = root / "tasks" / f"{home.number}", [], 0
        while written < 3 * MIB:
            home.number += 1
            told = json.dumps({"request": home.text(40_000), "tokensIn": 9, "cacheReads": 30_000})
            stamp = (_START_S + home.number) * 1000
            messages.append({"ts": stamp, "say": "api_req_started", "text": told})
            written += len(told)
            home.count("cline")
        task.mkdir(parents=True)
        (task / "ui_messages.json").write_text(json.dumps(messages), encoding="utf-8")
        size -= written


def _qwen(home: Home, size: int) -> None:
    root = home.path / ".qwen" / "projects" / "p" / "chats"
    while size > 0:
        session = home.id()

        def turn(session: str = session) -> Iterator[object]:
            common = {"sessionId": session, "timestamp": home.at(), "uuid": home.id()}
            yield {**common, "type": "user", "message": {"parts": [{"text": home.text(50_000)}]}}
            usage = {"promptTokenCount": 20_000, "candidatesTokenCount": 70}
            yield {**common, "type": "assistant", "model": "qwen3", "usageMetadata": usage}
            home.count("qwen")

        size -= _written(root / f"{session}.jsonl", 8 * MIB, turn)


_SHARES: tuple[tuple[float, Callable[[Home, int], None]], ...] = (
    (0.45, _claude),
    (0.25, _codex),
    (0.06, _gemini),
    (0.1, _opencode),
    (0.04, _pi),
    (0.06, _cline),
    (0.04, _qwen),
)


def rows() -> list[Row]:
    """One import, a second one, and a file that grows; on SQLite."""
    size = int(os.environ.get("TRANSCRIPTS_MIB", _SIZE_MIB))
    with tempfile.TemporaryDirectory(prefix="helmdash-home-") as folder, places() as found:
        home = make_home(Path(folder) / "home", size * MIB)
        return list(_measure(found[0], home, Path(folder)))


def _measure(place: Place, home: Home, folder: Path) -> Iterator[Row]:
    with serving(place) as server:
        archive = folder / "helmdash.pyz"
        archive.write_bytes(httpx.get(f"{server.base_url}/connect/helmdash.pyz").content)
        size = sum(path.stat().st_size for path in home.path.rglob("*") if path.is_file())
        calls = sum(home.calls.values())

        with _Peak(server.process.pid) as peak:
            first = _run(archive, server, home.path, folder)
        yield Row(
            f"{size / MIB:,.0f} MiB, {calls:,} calls imported",
            f"{first.seconds:,.0f} s",
            f"{size / MIB / first.seconds:,.0f} MiB/s",
            None,
            "",
            None,
        )
        new = sum(int(row[4]) for row in first.table.values())
        yield _row("calls that are new", new, calls, new == calls)
        yield _row("memory of the reader", first.peak_mib, READER_MIB, unit=" MiB")
        yield _row("memory of the server", peak.mib, SERVER_MIB, unit=" MiB")
        yield _row("lines that tell how far it is", len(first.told), 1, len(first.told) > 0)
        # Without the list of files that were sent: everything is read, and known.
        again = _run(archive, server, home.path, folder / "elsewhere")
        added = sum(int(row[4]) for row in again.table.values())
        yield _row(f"added by a second run of {again.seconds:,.0f} s", added, 0, added == 0)
        late = max(_followed(archive, server, home, folder))
        yield _row("until a watched line is stored", late, FOLLOWED_S, unit=" s")


def _row(what: str, figure: float, goal: float, ok: bool | None = None, unit: str = "") -> Row:
    told = f"{figure:,.0f}{unit}" if float(figure).is_integer() else f"{figure:,.2f}{unit}"
    return Row(what, told, "", None, f"{goal:,g}{unit}", figure <= goal if ok is None else ok)


@dataclass
class _Run:
    """One run of the command. table: each agent's row of figures; told: what it said meanwhile."""

    seconds: float
    peak_mib: float
    table: dict[str, list[str]]
    told: list[str]


def _command(archive: Path, server: Served, home: Path, *more: str) -> list[str]:
    url = ("--url", server.base_url, "--key", server.api_key)
    return [sys.executable, str(archive), "import", "--home", str(home), *url, *more]


def _environment(state: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(state / "state")}


def _run(archive: Path, server: Served, home: Path, state: Path) -> _Run:
    begun = time.perf_counter()
    process = subprocess.Popen(
        _command(archive, server, home),
        env=_environment(state),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with _Peak(process.pid) as peak:
        out, err = process.communicate()
    seconds = time.perf_counter() - begun
    if process.returncode:
        raise RuntimeError(f"the import ended with {process.returncode}: {err[-500:]}")
    lines = [line.replace(",", "").split() for line in out.splitlines()[1:]]
    table = {row[0]: row[1:] for row in lines if len(row) == 7 and "".join(row[1:]).isdigit()}
    return _Run(seconds, peak.mib, table, re.findall(r"\d+%", err))


def _followed(archive: Path, server: Served, home: Home, folder: Path) -> Iterator[float]:
    """Seconds from a line's end until its call can be read, while the whole home is watched."""
    path = next((home.path / ".claude" / "projects").rglob("*.jsonl"))
    process = subprocess.Popen(
        _command(archive, server, home.path, "--watch"),
        env=_environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(base_url=server.base_url, headers=server.headers) as http:
            # The first has the whole file read again, as it was sent before.
            for number in range(6):
                name = home.id()
                lines = [
                    line for line in _claude_turn(home, "followed") if "requestId" in str(line)
                ]
                with path.open("a", encoding="utf-8") as stream:
                    for line in lines:
                        told = json.dumps(line)
                        stream.write(re.sub(r"req_[0-9a-f-]+", f"req_{name}", told) + "\n")
                begun = time.monotonic()
                while http.get(f"/api/v1/calls/anthropic:req_{name}").status_code != 200:
                    if time.monotonic() - begun > 120:
                        raise RuntimeError("a line that was written is not followed")
                    time.sleep(0.02)
                if number:
                    yield time.monotonic() - begun
                time.sleep(home.seed.random())
    finally:
        process.terminate()
        process.wait()


class _Peak:
    """The most memory that a process and what it has started held, looked at while a block runs."""

    def __init__(self, pid: int) -> None:
        self.mib = 0.0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.mib = max(self.mib, _resident(self._pid) / MIB)


def _resident(pid: int) -> int:
    """Bytes that a process and its children have in memory; 0 once it is gone. Linux only."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return pages * os.sysconf("SC_PAGE_SIZE") + sum(_resident(int(each)) for each in children)
    return 0
