"""Claude Code's transcripts: one file for each session, and for each of its sub-agents.

One response stands on several lines, one for each block of its content, with the usage on every
one; files of side questions and forks repeat lines of others. So a call is a message's id, wherever
it is met, and a later line of it completes an earlier one. Tried with 2.1.197.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
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
from helmdash.transcripts.reading import QUIET_SECONDS, Home, Lines, LinesFile, walk

CLIENT = "claude-code"
# The name that the client gives what it wrote itself.
_SYNTHETIC = "<synthetic>"
# How the client marks a window of a million tokens behind a model's id.
_MILLION = "[1m]"
# In a sub-agent's file each block of a response is written when it is there, the first ones with a
# placeholder for the tokens of the answer, and about a fifth never get their end: so long the next
# block is waited for.
_NEXT_BLOCK_SECONDS = 60.0


@dataclass
class _Known:
    """What all files of a run have in common: messages met outside of side files, and in them;
    where the sessions are, and which of them were read."""

    main: set[int] = field(default_factory=set)
    side: set[int] = field(default_factory=set)
    paths: dict[str, Path] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def has_said(self, session: str, digest: int) -> bool:
        """Whether a main thread has a message. That of a session which an earlier run has sent, and
        this one did not open, is looked through for its ids."""
        if digest not in self.main and session not in self.read:
            self.read.add(session)
            path = self.paths.get(session)
            if path is not None:
                with contextlib.suppress(OSError):
                    self.main.update(_ids_in(path))
        return digest in self.main


def _ids_in(path: Path) -> Iterator[int]:
    for _, line in Lines(path).read(is_final=True):
        name = text_of(member(line, "message", "id"))
        if name is not None and line.get("type") == "assistant" and not line.get("isSidechain"):
            yield hash(name)


class ClaudeReader:
    """Sessions below `~/.claude/projects`, or where CLAUDE_CONFIG_DIR says."""

    name = "claude"

    def __init__(self) -> None:
        self._known = _Known()

    def files(self, home: Home) -> Iterator[Path]:
        """Sessions first: what side files repeat of them is known then."""
        roots = [
            home.configured("CLAUDE_CONFIG_DIR", ".claude") / "projects",
            home.path / ".config" / "claude" / "projects",
        ]
        found = {path: None for root in roots for path in walk(root, ".jsonl")}
        for path in sorted(found, key=_is_agents):
            if not _is_agents(path):
                self._known.paths.setdefault(path.stem, path)
            yield path

    def open(self, path: Path) -> ClaudeFile:
        """A reader of one session, or of one sub-agent."""
        return ClaudeFile(path, self._known)


class ClaudeFile(LinesFile):
    """One file; the last message of a conversation is held back until it is complete."""

    def __init__(self, path: Path, known: _Known) -> None:
        super().__init__(path)
        self._known = known
        # agent-<id>.jsonl; older files have the id on each line only.
        self._agent = path.stem[len("agent-") :] if _is_agents(path) else None
        self._roots: dict[str, str] = {}  # line of a sub-agent without a name -> its first line
        self._models: dict[str, str] = {}  # conversation -> the model of its newest call
        self._contexts: Counter[str] = Counter()  # conversation -> how often it was compacted
        self._compacted: dict[str, Compaction] = {}
        # By conversation, for lines of a sub-agent stand between those of a message in old files.
        self._held: dict[str, tuple[str, TranscriptCall]] = {}
        self._followed = False  # what is held has lines after it, which are no blocks of it

    @property
    def quiet_seconds(self) -> float:
        """See FileReader."""
        may_grow = any(call.finish_reason is None for _, call in self._held.values())
        if self._agent is None or self._followed or not may_grow:
            return QUIET_SECONDS
        return _NEXT_BLOCK_SECONDS

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        if self._agent is None:
            self._known.read.add(self._lines.path.stem)
        for number, line in self._lines.read(is_final=is_final):
            yield from self._take(number, line)
        self.left_out["unreadable lines"] = self._lines.unreadable
        if is_final:
            for conversation in [*self._held]:
                yield from self._release(conversation)

    def _take(self, number: int, line: dict[str, Any]) -> Iterator[TranscriptCall]:
        kind = line.get("type")
        if kind == "system" and line.get("subtype") == "compact_boundary":
            conversation, _ = self._place(line)
            if conversation:
                yield from self._release(conversation)
                self._contexts[conversation] += 1
                self._compacted[conversation] = _compaction(line.get("compactMetadata"))
            return
        conversation, parent = self._place(line)
        message = line.get("message")
        self._followed = kind != "assistant"
        if kind != "assistant" or not isinstance(message, dict) or not conversation:
            return
        if line.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC:
            yield from self._release(conversation)
            yield from self._failure(number, line, conversation, parent)
            return
        call = self._call(number, line, message, conversation, parent)
        if call is None:
            self.left_out["lines without usage"] += 1
            return
        key = text_of(message.get("id")) or call.id
        held = self._held.get(conversation)
        if held is not None and key == held[0]:
            _complete(held[1], call)
            return
        yield from self._release(conversation)
        self._held[conversation] = key, call

    def _place(self, line: dict[str, Any]) -> tuple[str | None, str | None]:
        """The conversation of a line and its parent; a fork's copies are its source's."""
        session = text_of(member(line, "forkedFrom", "sessionId")) or text_of(line.get("sessionId"))
        if session is None:
            return None, None
        agent = text_of(line.get("agentId")) or self._agent
        if agent is None and line.get("isSidechain"):
            agent = self._root_of(line)
        return (f"{session}:{agent}", session) if agent else (session, None)

    def _root_of(self, line: dict[str, Any]) -> str:
        """The first line of a sub-agent that has no name, as older releases wrote them."""
        own, before = text_of(line.get("uuid")) or "", text_of(line.get("parentUuid")) or ""
        root = self._roots.get(before, own)
        self._roots[own] = root
        return root[:8]

    def _call(
        self,
        number: int,
        line: dict[str, Any],
        message: dict[str, Any],
        conversation: str,
        parent: str | None,
    ) -> TranscriptCall | None:
        usage, model = message.get("usage"), text_of(message.get("model"))
        if not isinstance(usage, dict) or model is None:
            return None
        self._models[conversation] = model
        name = text_of(line.get("requestId")) or text_of(message.get("id"))
        return TranscriptCall(
            origin=self._lines.origin(number),
            client=CLIENT,
            client_version=text_of(line.get("version")),
            client_window=1_000_000 if model.endswith(_MILLION) else None,
            id=f"anthropic:{name}" if name else f"claude:{conversation}:{line.get('uuid')}",
            conversation=conversation,
            parent=parent,
            model=_bare(model),
            provider="anthropic",
            started_at=moment_of(line.get("timestamp")),
            tokens=_tokens(usage),
            finish_reason=text_of(message.get("stop_reason")),
            content=_content(message.get("content")),
            directory=text_of(line.get("cwd")),
            context=str(self._contexts[conversation]),
        )

    def _failure(
        self, number: int, line: dict[str, Any], conversation: str, parent: str | None
    ) -> Iterator[TranscriptCall]:
        status = count_of(line.get("apiErrorStatus"))
        if not line.get("isApiErrorMessage"):
            self.left_out["lines the client made up"] += 1
            return
        if status is None and not text_of(line.get("errorDetails")):
            # It answered by itself, without asking anybody: no call.
            self.left_out["refusals by the client itself"] += 1
            return
        yield TranscriptCall(
            origin=self._lines.origin(number),
            client=CLIENT,
            client_version=text_of(line.get("version")),
            id=f"claude:{line.get('uuid') or f'{conversation}:{number}'}",
            conversation=conversation,
            parent=parent,
            model=_bare(self._models.get(conversation, "unknown")),
            provider="anthropic",
            started_at=moment_of(line.get("timestamp")),
            status="error",
            http_status=status,
            error_code=text_of(line.get("error")),
            error_message=text_of(line.get("errorDetails")),
            context=str(self._contexts[conversation]),
            directory=text_of(line.get("cwd")),
        )

    def _release(self, conversation: str) -> Iterator[TranscriptCall]:
        """Give the message of a conversation that was held back, unless another file has it."""
        if conversation not in self._held:
            return
        key, call = self._held.pop(conversation)
        digest = hash(key)
        is_side = call.parent is not None
        # A message id that a proxy gives to all would be one call in the main thread: there a
        # request's own id counts as well, where the line has one.
        own = digest if is_side else hash((key, call.id))
        if call.parent is not None and (
            own in self._known.side or self._known.has_said(call.parent, digest)
        ):
            self.left_out["copies"] += 1
            return
        if not is_side and own in self._known.side:
            self.left_out["copies"] += 1
            return
        if is_side:
            self._known.side.add(own)
        else:
            self._known.main.add(digest)
            self._known.side.add(own)
        call.compaction = self._compacted.pop(call.conversation, None)
        yield call


def _is_agents(path: Path) -> bool:
    return path.name.startswith("agent-") or "subagents" in path.parts


def _bare(model: str) -> str:
    return model[: -len(_MILLION)] if model.endswith(_MILLION) else model


def _tokens(usage: dict[str, Any]) -> Tokens:
    """The three counters exclude each other. With server tools or compaction they are sums; how
    full the context is, the last message's iteration says."""
    entries = usage.get("iterations")
    messages: list[Any] = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if member(entry, "type") == "message"
        and count_of(member(entry, "input_tokens")) is not None
    ]
    prompt = messages[-1] if messages else usage
    read = count_of(prompt.get("cache_read_input_tokens"))
    written = count_of(prompt.get("cache_creation_input_tokens"))
    # Releases before 2.1.152 wrote 0 there, and the truth only by the time it is kept.
    by_time = sum_of(
        count_of(member(prompt, "cache_creation", "ephemeral_5m_input_tokens")),
        count_of(member(prompt, "cache_creation", "ephemeral_1h_input_tokens")),
    )
    if by_time is not None:
        written = max(written or 0, by_time)
    return Tokens(
        prompt=sum_of(count_of(prompt.get("input_tokens")), read, written),
        completion=count_of(usage.get("output_tokens")),
        cached=read,
        cache_write=written,
    )


def _complete(held: TranscriptCall, later: TranscriptCall) -> None:
    """Take in a later line of the same message: the largest counts hold, and the last word on how
    it ended."""
    if (later.tokens.prompt or 0, later.tokens.completion or 0) >= (
        held.tokens.prompt or 0,
        held.tokens.completion or 0,
    ):
        held.tokens = later.tokens
    held.finish_reason = later.finish_reason or held.finish_reason
    held.content = "\n".join(filter(None, (held.content, later.content))) or None


def _compaction(told: object) -> Compaction:
    return Compaction(
        trigger=text_of(member(told, "trigger")),
        before_tokens=count_of(member(told, "preTokens")),
        after_tokens=count_of(member(told, "postTokens")),
    )


def _content(blocks: object) -> str | None:
    texts = [
        text_of(block.get("text"))
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    return "\n".join(filter(None, texts)) or None
