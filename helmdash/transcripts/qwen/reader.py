"""Qwen Code's sessions: lines with the usage as Gemini's API reports it; before, Gemini CLI's
chats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import TranscriptCall, member, moment_of, text_of
from helmdash.transcripts.gemini.reader import ChatFile, vendor_tokens
from helmdash.transcripts.reading import FileReader, Home, LinesFile, walk

CLIENT = "qwen-code"


class QwenReader:
    """Sessions below `~/.qwen`."""

    name = "qwen"

    def files(self, home: Home) -> Iterator[Path]:
        """Those of projects, and the older ones."""
        root = home.path / ".qwen"
        yield from walk(root / "projects", ".jsonl")
        for path in walk(root / "tmp", ".jsonl", ".json"):
            if "chats" in path.parts and path.name.startswith("session-"):
                yield path

    def open(self, path: Path) -> FileReader:
        """A reader of one session."""
        if "chats" in path.parts and path.name.startswith("session-"):
            return ChatFile(path, client=CLIENT, prefix=self.name)
        return QwenFile(path)


class QwenFile(LinesFile):
    """One session; each line of an assistant's is a call."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        for number, line in self._lines.read(is_final=is_final):
            call = self._call(number, line)
            if call is not None:
                yield call
        self.left_out["unreadable lines"] = self._lines.unreadable

    def _call(self, number: int, line: dict[str, Any]) -> TranscriptCall | None:
        if line.get("type") != "assistant":
            return None
        session = text_of(line.get("sessionId")) or self._lines.path.stem
        tokens = vendor_tokens(line.get("usageMetadata"))
        if not tokens:
            self.left_out["lines without usage"] += 1
            return None
        return TranscriptCall(
            origin=self._lines.origin(number),
            client=CLIENT,
            client_version=text_of(line.get("version")),
            id=f"qwen:{line.get('uuid') or f'{session}:{number}'}",
            conversation=session,
            model=text_of(line.get("model"))
            or text_of(member(line, "message", "model"))
            or "unknown",
            started_at=moment_of(line.get("timestamp")),
            tokens=tokens,
            directory=text_of(line.get("cwd")),
        )
