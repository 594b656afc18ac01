"""Codex' rollouts: a file for each thread.

Since 0.169 there is a record for each call. Before, a running total is told again and again: for
each refresh of a rate limit, at a resume, and, in the file of a fork or a sub-agent, for all that
its parent had done. A call is what moves the total upwards. Tried with 0.169.0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import (
    Tokens,
    TranscriptCall,
    count_of,
    member,
    moment_of,
    sum_of,
    text_of,
)
from helmdash.transcripts.reading import Home, Lines, LinesFile, walk

CLIENT = "codex"
_THREAD = re.compile(r"rollout-.*?-([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$")
# A fork writes down its parent's totals at once.
_BURST = timedelta(seconds=1)
# Two totals: of the newest call, and of all. The same pair in a child's file is its parent's call.
_Pair = tuple[int, int]


class CodexReader:
    """Rollouts below `~/.codex`, or where CODEX_HOME says."""

    name = "codex"

    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}
        self._pairs: dict[str, set[_Pair]] = {}

    def files(self, home: Home) -> Iterator[Path]:
        """Oldest first, as their folders are named."""
        root = home.configured("CODEX_HOME", ".codex")
        for folder in ("archived_sessions", "sessions"):
            for path in walk(root / folder, ".jsonl"):
                named = _THREAD.fullmatch(path.stem)
                if named:
                    self._paths[named[1].lower()] = path
                yield path

    def open(self, path: Path) -> CodexFile:
        """A reader of one thread."""
        return CodexFile(path, self)

    def pairs_of(self, thread: str) -> set[_Pair]:
        """What totals a thread has told, its own parents' included."""
        if thread not in self._pairs:
            self._pairs[thread] = set()  # a file that names itself as its parent ends here
            path = self._paths.get(thread.lower())
            if path is not None:
                with contextlib.suppress(OSError):
                    self._pairs[thread] = {
                        pair
                        for _, line in Lines(path).read(is_final=True)
                        for pair in [_pair(member(line, "payload", "info"))]
                        if pair is not None
                    }
        return self._pairs[thread]


class CodexFile(LinesFile):
    """One thread. A call by total is held back until it is sure that no record tells of it."""

    def __init__(self, path: Path, reader: CodexReader) -> None:
        super().__init__(path)
        self._reader = reader
        self._meta: dict[str, Any] = {}
        self._started: datetime | None = None
        self._thread = ""
        self._parent: str | None = None
        self._model = "unknown"
        self._window: int | None = None
        self._turn: str | None = None
        self._highest: dict[str | None, int] = {}  # by lane of rate limits
        self._has_records = False
        self._contexts = 0  # how often it was compacted
        self._summing: set[str] = set()  # responses that summed a thread up
        self._held: TranscriptCall | None = None
        self._held_response: str | None = None

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        for number, line in self._lines.read(is_final=is_final):
            payload = line.get("payload")
            if isinstance(payload, dict):
                yield from self._take(number, line, payload)
        self.left_out["unreadable lines"] = self._lines.unreadable
        if is_final:
            yield from self._release()

    def _take(
        self, number: int, line: dict[str, Any], payload: dict[str, Any]
    ) -> Iterator[TranscriptCall]:
        kind = line.get("type")
        if kind == "session_meta":
            self._name(line, payload)
            return
        if self._is_parents(line):
            return
        if kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
            self._turn = text_of(payload.get("turn_id")) or self._turn
        elif kind == "token_usage_record":
            yield from self._record(number, line, payload)
        elif kind == "compacted":
            yield from self._note_compaction(payload)
        elif kind == "event_msg":
            yield from self._event(number, line, payload)

    def _name(self, line: dict[str, Any], payload: dict[str, Any]) -> None:
        """The first one names the file; a forked sub-agent's has its parent's after it."""
        if self._meta:
            return
        self._meta = payload
        self._thread = text_of(payload.get("id")) or self._lines.path.stem
        self._started = moment_of(line.get("timestamp")) or moment_of(payload.get("timestamp"))
        spawned = member(payload, "source", "subagent", "thread_spawn", "parent_thread_id")
        self._parent = text_of(payload.get("parent_thread_id")) or text_of(spawned)

    def _is_parents(self, line: dict[str, Any]) -> bool:
        """Whether the line is the parent's, by the place where this thread's own begin."""
        begins = count_of(self._meta.get("subagent_history_start_ordinal"))
        ordinal = count_of(line.get("ordinal"))
        return begins is not None and ordinal is not None and ordinal < begins

    def _event(
        self, number: int, line: dict[str, Any], payload: dict[str, Any]
    ) -> Iterator[TranscriptCall]:
        kind = payload.get("type")
        window = count_of(payload.get("model_context_window"))
        self._window = window or self._window
        if kind == "token_count":
            yield from self._total(number, line, payload)
        elif kind in ("task_started", "turn_started"):
            self._turn = text_of(payload.get("turn_id")) or self._turn
        elif kind == "task_complete" and isinstance(payload.get("error"), dict):
            yield from self._failure(number, line, payload["error"])
        elif kind == "turn_aborted":
            self.left_out["turns that somebody stopped"] += 1

    def _record(
        self, number: int, line: dict[str, Any], payload: dict[str, Any]
    ) -> Iterator[TranscriptCall]:
        tokens = _tokens(payload.get("usage"))
        if not self._has_records:
            self._has_records = True
            if self._held is not None and _is_same(self._held.tokens, tokens):
                self._held = None  # the total that was told for the same call
        yield from self._release()
        response = text_of(payload.get("response_id"))
        if not tokens or response is None:
            self.left_out["records without usage"] += 1
            return
        self._held = self._call(number, line, f"codex:{response}", tokens)
        self._held_response = response

    def _total(
        self, number: int, line: dict[str, Any], payload: dict[str, Any]
    ) -> Iterator[TranscriptCall]:
        info = payload.get("info")
        self._window = count_of(member(info, "model_context_window")) or self._window
        pair = _pair(info)
        if self._has_records or pair is None:
            return
        lane = text_of(member(payload, "rate_limits", "limit_id"))
        highest = self._highest.get(lane, 0)
        self._highest[lane] = max(highest, pair[1])
        tokens = _tokens(member(info, "last_token_usage"))
        if not tokens:
            # What is left after a compaction, or the window after an overflow: no call. After an
            # overflow the total goes on from the window, below what it was.
            self.left_out["totals without a call"] += 1
            self._highest = {each: min(total, pair[1]) for each, total in self._highest.items()}
        elif pair[1] <= highest or self._is_inherited(line, pair):
            self.left_out["totals told again"] += 1
        else:
            yield from self._release()
            self._held = self._call(number, line, f"codex:{self._thread}:{pair[1]}", tokens)
            self._held_response = None

    def _is_inherited(self, line: dict[str, Any], pair: _Pair) -> bool:
        source = text_of(self._meta.get("forked_from_id")) or self._parent
        if source is None:
            return False
        at = moment_of(line.get("timestamp"))
        is_in_burst = at is not None and self._started is not None and at - self._started <= _BURST
        return is_in_burst or pair in self._reader.pairs_of(source)

    def _note_compaction(self, payload: dict[str, Any]) -> Iterator[TranscriptCall]:
        summing = text_of(payload.get("compaction_response_id"))
        if summing is not None:
            self._summing.add(summing)
        yield from self._release()
        self._contexts += 1

    def _failure(
        self, number: int, line: dict[str, Any], error: dict[str, Any]
    ) -> Iterator[TranscriptCall]:
        yield from self._release()
        info = error.get("codex_error_info")
        code, status = text_of(info), None
        if isinstance(info, dict) and info:
            code = text_of(next(iter(info)))
            status = count_of(member(info, code or "", "http_status_code"))
        call = self._call(
            number, line, f"codex:{self._thread}:{self._turn or number}:error", Tokens()
        )
        call.status, call.http_status, call.error_code = "error", status, code
        call.error_message = text_of(error.get("message"))
        yield call

    def _call(self, number: int, line: dict[str, Any], name: str, tokens: Tokens) -> TranscriptCall:
        return TranscriptCall(
            origin=self._lines.origin(number),
            client=CLIENT,
            client_version=text_of(self._meta.get("cli_version")),
            client_window=self._window,
            id=name,
            conversation=self._thread or self._lines.path.stem,
            parent=self._parent,
            model=self._model,
            provider=text_of(self._meta.get("model_provider")),
            started_at=moment_of(line.get("timestamp")),
            tokens=tokens,
            context=str(self._contexts),
            directory=text_of(self._meta.get("cwd")),
        )

    def _release(self) -> Iterator[TranscriptCall]:
        call, response = self._held, self._held_response
        self._held, self._held_response = None, None
        if call is None:
            return
        if response is not None and response in self._summing:
            call.is_side, call.purpose = True, "compaction"
        yield call


def _pair(info: object) -> _Pair | None:
    last = count_of(member(info, "last_token_usage", "total_tokens"))
    total = count_of(member(info, "total_token_usage", "total_tokens"))
    return (last or 0, total) if total is not None else None


def _is_same(one: Tokens, other: Tokens) -> bool:
    """Whether both may be of one call: a thread that a newer release goes on with has an older
    call's total before its first record."""
    return sum_of(one.prompt, one.completion) == sum_of(other.prompt, other.completion)


def _tokens(usage: object) -> Tokens:
    """Cached tokens are inside the input, reasoning inside the output."""
    return Tokens(
        prompt=count_of(member(usage, "input_tokens")),
        completion=count_of(member(usage, "output_tokens")),
        cached=count_of(member(usage, "cached_input_tokens")),
        cache_write=count_of(member(usage, "cache_write_input_tokens")),
        reasoning=count_of(member(usage, "reasoning_output_tokens")),
    )
