"""pi's sessions: a tree of entries, one on each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import (
    Compaction,
    Tokens,
    TranscriptCall,
    count_of,
    member,
    moment_of,
    sum_of,
    text_of,
)
from helmdash.transcripts.reading import Home, LinesFile, walk

CLIENT = "pi"
_STATUS = {"aborted": "cancelled", "error": "error"}


class PiReader:
    """Sessions below `~/.pi/agent`, or where PI_CODING_AGENT_DIR says."""

    name = "pi"

    def __init__(self) -> None:
        self._given: set[int] = set()

    def files(self, home: Home) -> Iterator[Path]:
        """Every session, by folder and name."""
        root = home.configured("PI_CODING_AGENT_DIR", ".pi", "agent")
        yield from walk(root / "sessions", ".jsonl")

    def open(self, path: Path) -> PiFile:
        """A reader of one session."""
        return PiFile(path, self._given)


class PiFile(LinesFile):
    """One session; each message of the assistant's is a call."""

    def __init__(self, path: Path, given: set[int]) -> None:
        super().__init__(path)
        self._given = given  # calls of all files
        self._session = path.stem
        self._directory: str | None = None
        self._contexts = 0  # how often it was compacted
        self._compaction: Compaction | None = None

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        for number, line in self._lines.read(is_final=is_final):
            kind = line.get("type")
            if kind == "session":
                self._session = text_of(line.get("id")) or self._session
                self._directory = text_of(line.get("cwd"))
            elif kind == "compaction":
                self._contexts += 1
                self._compaction = Compaction(before_tokens=count_of(line.get("tokensBefore")))
            elif kind == "message" and member(line, "message", "role") == "assistant":
                call = self._call(number, line, line["message"])
                if call is not None and hash(call.id) in self._given:
                    self.left_out["copies"] += 1
                elif call is not None:
                    self._given.add(hash(call.id))
                    yield call
        self.left_out["unreadable lines"] = self._lines.unreadable

    def _call(
        self, number: int, line: dict[str, Any], message: dict[str, Any]
    ) -> TranscriptCall | None:
        usage, reason = message.get("usage"), text_of(message.get("stopReason"))
        tokens = _tokens(usage)
        if not tokens and reason not in _STATUS:
            self.left_out["messages without usage"] += 1
            return None
        compaction, self._compaction = self._compaction, None
        return TranscriptCall(
            origin=self._lines.origin(number),
            client=CLIENT,
            id=self._id(number, line),
            conversation=self._session,
            model=text_of(message.get("model")) or "unknown",
            provider=text_of(message.get("provider")),
            started_at=moment_of(line.get("timestamp")) or moment_of(message.get("timestamp")),
            tokens=tokens,
            finish_reason=None if reason in _STATUS else reason,
            status=_STATUS.get(reason or ""),
            error_message=text_of(message.get("errorMessage")),
            context=str(self._contexts),
            compaction=compaction,
            directory=self._directory,
        )

    def _id(self, number: int, line: dict[str, Any]) -> str:
        """A fork's file begins with its source's entries as they are: by id and time they are the
        same calls."""
        name, at = text_of(line.get("id")), text_of(line.get("timestamp"))
        return f"pi:{name}:{at}" if name and at else f"pi:{self._session}:{name or number}"


def _tokens(usage: object) -> Tokens:
    """What was read from the cache and written to it stands beside the input."""
    read, written = count_of(member(usage, "cacheRead")), count_of(member(usage, "cacheWrite"))
    return Tokens(
        prompt=sum_of(count_of(member(usage, "input")), read, written),
        completion=count_of(member(usage, "output")),
        cached=read,
        cache_write=written,
    )
