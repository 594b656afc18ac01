"""Gemini CLI's chats: lines since 0.5x, one document for each session before.

A message is written again under its id as it grows, and the last one counts; a history that
changed is written again as a whole. Sub-agents have files of their own, called by their id, in a
folder with their parent's. Tried with 0.61.0.
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
_OF_A_SESSION = ("sessionId", "kind", "directory")


class GeminiReader:
    """Chats below `~/.gemini/tmp`, or in the home that GEMINI_CLI_HOME names."""

    name = "gemini"

    def files(self, home: Home) -> Iterator[Path]:
        """Every session, those of sub-agents after their parent's folder."""
        root = home.configured("GEMINI_CLI_HOME") / ".gemini" / "tmp"
        for path in walk(root, ".jsonl", ".json"):
            if _is_chat(path.relative_to(root)):
                yield path

    def open(self, path: Path) -> ChatFile:
        """A reader of one session."""
        return ChatFile(path, client=CLIENT, prefix=self.name)


def _is_chat(path: Path) -> bool:
    """Whether it is `<project>/chats/session-….jsonl`, or a sub-agent's in a folder below."""
    folders = path.parts[:-1]
    return "chats" in folders and (folders[-1] != "chats" or path.name.startswith("session-"))


class ChatFile(LinesFile):
    """A session as Gemini CLI and what came of it write it."""

    def __init__(self, path: Path, *, client: str, prefix: str) -> None:
        super().__init__(path)
        self._path, self._client, self._prefix = path, client, prefix
        self._session: dict[str, Any] = {}
        self._held: TranscriptCall | None = None
        self._given: set[int] = set()
        self._without_usage: set[str] = set()

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        if self._path.suffix == ".json":
            yield from self._read_document()
            return
        for number, line in self._lines.read(is_final=is_final):
            for message in self._messages(line):
                call = self._call(self._lines.origin(number), message)
                if call is None or hash(call.id) in self._given:
                    continue
                if self._held is not None and self._held.id != call.id:
                    yield from self._release()
                self._held = call
        self.left_out["unreadable lines"] = self._lines.unreadable
        self.left_out["messages without usage"] = len(self._without_usage)
        if is_final:
            yield from self._release()

    def _messages(self, line: dict[str, Any]) -> list[Any]:
        """The messages of a line: itself, or those that it says the history consists of now."""
        if "type" in line:
            return [line]
        told = line["$set"] if isinstance(line.get("$set"), dict) else line
        self._session.update((name, told[name]) for name in _OF_A_SESSION if name in told)
        messages = told.get("messages")
        return messages if isinstance(messages, list) else []

    def _release(self) -> Iterator[TranscriptCall]:
        call, self._held = self._held, None
        if call is not None:
            self._given.add(hash(call.id))
            yield call

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
        self.left_out["messages without usage"] = len(self._without_usage)
        yield from newest.values()

    def _call(self, origin: Origin, message: object) -> TranscriptCall | None:
        if not isinstance(message, dict) or message.get("type") != "gemini":
            return None
        name, model = text_of(message.get("id")), text_of(message.get("model"))
        told = message.get("tokens")
        if name is None or not isinstance(told, dict):
            self._without_usage.add(name or str(origin))
            return None
        self._without_usage.discard(name)
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
    prompt = count_of(member(told, "promptTokenCount"))
    output = count_of(member(told, "candidatesTokenCount"))
    thoughts = count_of(member(told, "thoughtsTokenCount"))
    # Of a server that speaks another format, Qwen Code has the thoughts inside the output.
    is_inside = count_of(member(told, "totalTokenCount")) == sum_of(prompt, output)
    return Tokens(
        prompt=prompt,
        completion=output if is_inside else sum_of(output, thoughts),
        cached=count_of(member(told, "cachedContentTokenCount")),
        reasoning=thoughts,
    )
