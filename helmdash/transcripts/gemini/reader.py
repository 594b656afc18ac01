"""Gemini CLI's chats: lines since 0.5x, one document for each session before.

A message is written again under its id as it grows, and the last one counts. Sub-agents have files
of their own in a folder with their parent's id. Tried with 0.61.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import (
    Origin,
    Tokens,
    TranscriptCall,
    count_of,
    member,
    moment_of,
    sum_of,
    text_of,
)
from helmdash.transcripts.reading import Home, LinesFile, read_document, walk

CLIENT = "gemini-cli"


class GeminiReader:
    """Chats below `~/.gemini/tmp`."""

    name = "gemini"

    def files(self, home: Home) -> Iterator[Path]:
        """Every session, those of sub-agents after their parent's folder."""
        for path in walk(home.path / ".gemini" / "tmp", ".jsonl", ".json"):
            if "chats" in path.parts and path.name.startswith("session-"):
                yield path

    def open(self, path: Path) -> ChatFile:
        """A reader of one session."""
        return ChatFile(path, client=CLIENT, prefix=self.name)


class ChatFile(LinesFile):
    """A session as Gemini CLI and what came of it write it."""

    def __init__(self, path: Path, *, client: str, prefix: str) -> None:
        super().__init__(path)
        self._path, self._client, self._prefix = path, client, prefix
        self._session: dict[str, Any] = {}
        self._held: TranscriptCall | None = None

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        if self._path.suffix == ".json":
            yield from self._read_document()
            return
        for number, line in self._lines.read(is_final=is_final):
            if "sessionId" in line and "type" not in line:
                self._session.update(line)
                continue
            call = self._call(self._lines.origin(number), line)
            if call is None:
                continue
            if self._held is not None and self._held.id != call.id:
                yield self._held
            self._held = call
        self.left_out["unreadable lines"] = self._lines.unreadable
        if is_final and self._held is not None:
            yield self._held
            self._held = None

    def _read_document(self) -> Iterator[TranscriptCall]:
        document = read_document(self._path)
        if not isinstance(document, dict):
            self.left_out["unreadable files"] = 1
            return
        self._session = document
        messages = document.get("messages")
        newest: dict[str, TranscriptCall] = {}
        for number, message in enumerate(messages if isinstance(messages, list) else [], start=1):
            call = self._call(Origin(self._path, number), message)
            if call is not None:
                newest[call.id] = call
        yield from newest.values()

    def _call(self, origin: Origin, message: object) -> TranscriptCall | None:
        if not isinstance(message, dict) or message.get("type") != "gemini":
            return None
        name, model = text_of(message.get("id")), text_of(message.get("model"))
        told = message.get("tokens")
        if name is None or not isinstance(told, dict):
            self.left_out["messages without usage"] += 1
            return None
        session = text_of(self._session.get("sessionId")) or self._path.stem
        is_agents = self._session.get("kind") == "subagent"
        folder = self._path.parent.name
        return TranscriptCall(
            origin=origin,
            client=self._client,
            id=f"{self._prefix}:{session}:{name}",
            conversation=session,
            parent=folder if is_agents and folder != "chats" else None,
            model=model or "unknown",
            provider="google",
            started_at=moment_of(message.get("timestamp")),
            tokens=_tokens(told),
            content=text_of(message.get("content")),
            directory=text_of(self._session.get("directory")),
        )


def _tokens(told: dict[str, Any]) -> Tokens:
    """The cache is inside the input, but in some old files: the total says which. What tools took
    stands beside the prompt, thoughts are part of the completion."""
    prompt, cached = count_of(told.get("input")), count_of(told.get("cached"))
    output, thoughts = count_of(told.get("output")), count_of(told.get("thoughts"))
    total = count_of(told.get("total"))
    inside = sum_of(prompt, output, thoughts, count_of(told.get("tool")))
    if cached and total is not None and inside is not None and total == inside + cached:
        prompt = sum_of(prompt, cached)
    return Tokens(
        prompt=prompt, completion=sum_of(output, thoughts), cached=cached, reasoning=thoughts
    )


def vendor_tokens(told: object) -> Tokens:
    """The same by the names of Gemini's API (`usageMetadata`)."""
    thoughts = count_of(member(told, "thoughtsTokenCount"))
    return Tokens(
        prompt=count_of(member(told, "promptTokenCount")),
        completion=sum_of(count_of(member(told, "candidatesTokenCount")), thoughts),
        cached=count_of(member(told, "cachedContentTokenCount")),
        reasoning=thoughts,
    )
