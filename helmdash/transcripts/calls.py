"""A call as a transcript tells of it, and the report that is made of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

# What the API takes (docs: POST /api/v1/calls): characters.
_ID_CHARS = 128
_NAME_CHARS = 255
_MESSAGE_CHARS = 2000
_CONTENT_CHARS = 200_000
# Counts beyond are no counts of tokens, but a broken line.
_LARGEST_COUNT = 2**31 - 1

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._:@+-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Longer than any name.
_READ_CHARS = 4096


@dataclass
class Origin:
    """Where a call stands: its file, and the line or entry in it, counted from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass
class Tokens:
    """What a call took. `prompt` is the true total, tokens of the cache included; `completion`
    has the reasoning inside. None: not told."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def __bool__(self) -> bool:
        return bool(self.prompt or self.completion)

    def to_usage(self) -> dict[str, int] | None:
        """In the API's own names; None where nothing is told."""
        named = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "cached_tokens": self.cached,
            "cache_write_tokens": self.cache_write,
            "reasoning_tokens": self.reasoning,
        }
        return {name: count for name, count in named.items() if count is not None} if self else None


@dataclass
class Compaction:
    """The client's own compaction, before the call that it is told with. Tokens; None: not
    told."""

    trigger: str | None = None
    before_tokens: int | None = None
    after_tokens: int | None = None

    def to_report(self) -> dict[str, Any]:
        """As it stands in the metadata of the call."""
        told = {
            "trigger": self.trigger,
            "before_tokens": self.before_tokens,
            "after_tokens": self.after_tokens,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass
class TranscriptCall:
    """One call of a model. None and "": not told.

    `content`, `directory` and `error_message` are texts: they leave the machine only where the
    user says so.
    """

    origin: Origin
    client: str
    id: str
    conversation: str
    model: str
    started_at: datetime | None = None
    tokens: Tokens = field(default_factory=Tokens)
    parent: str | None = None
    is_side: bool = False
    purpose: str | None = None
    client_version: str | None = None
    client_window: int | None = None
    provider: str | None = None
    finish_reason: str | None = None
    status: str | None = None  # error or cancelled
    http_status: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    # Which context of its conversation it was made in: how often the client had compacted before.
    context: str | None = None
    compaction: Compaction | None = None
    content: str | None = None
    directory: str | None = None

    def to_report(self, *, texts: bool) -> dict[str, Any]:
        """As `POST /api/v1/calls/batch` takes it. texts: whether the user's own words go along."""
        client = {"name": self.client, "version": _short(self.client_version, 32)}
        told: dict[str, Any] = {
            "id": short_id(self.id),
            "conversation": conversation_name(self.conversation),
            "parent": conversation_name(self.parent) if self.parent else None,
            "lane": "side" if self.is_side else None,
            "purpose": _short(self.purpose, 32),
            "model": _short(self.model, _NAME_CHARS) or "unknown",
            "provider": _short(self.provider, 64),
            "client": {name: value for name, value in client.items() if value},
            "client_window": self.client_window,
            "usage": self.tokens.to_usage(),
            "finish_reason": _short(self.finish_reason, 64),
            "status": self.status,
            "http_status": _http_status(self.http_status),
            "error_code": _short(self.error_code, 128),
            "error_message": self._error_message(texts=texts),
            "context": self.context,
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "metadata": self._metadata(texts=texts),
            "content": _whole(self.content)[:_CONTENT_CHARS] if texts and self.content else None,
            "route": "transcript",
        }
        if told["parent"] == told["conversation"]:
            told["parent"] = None
        return {name: value for name, value in told.items() if value is not None}

    def _error_message(self, *, texts: bool) -> str | None:
        if not self.error_message:
            return None
        if texts:
            return _whole(self.error_message)[:_MESSAGE_CHARS]
        # A provider's sentence may quote the prompt; sizes in it are what health is judged by.
        found = _OVERFLOW.search(self.error_message)
        return found[0] if found else None

    def _metadata(self, *, texts: bool) -> dict[str, Any] | None:
        told: dict[str, Any] = {}
        if self.compaction is not None:
            told["compaction"] = self.compaction.to_report()
        if self.directory and texts:
            told["directory"] = _whole(self.directory)[:1000]
        elif self.directory:
            digest = hashlib.sha256(self.directory.encode("utf-8", "surrogatepass")).hexdigest()
            told["directory_hash"] = digest[:16]
        return told or None


# How providers say that a prompt was too long, with the two figures.
_OVERFLOW = re.compile(
    r"prompt is too long: \d+ tokens > \d+ maximum"
    r"|maximum context length is \d+ tokens[^\"{}\n]{0,80}?\d+ tokens"
    r"|input token count \(?\d+\)? exceeds the maximum number of tokens allowed \(?\d+\)?"
)


def conversation_name(name: str) -> str:
    """A foreign id as HelmDash can name a conversation by; different ids have different names.

    What the gateway makes of the same id (core.agents.names), so that both come to one
    conversation; blanks at the ends do not count.

    >>> conversation_name("agents/a b")
    'agents=2Fa=20b'
    """
    text = name.strip()[:_READ_CHARS]
    written = _UNNAMEABLE.sub(_as_hex, text)
    if not written.strip("."):
        written = f"=2E{written[1:]}"
    if len(written) <= _NAME_CHARS:
        return written
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{written[: _NAME_CHARS - len(digest) - 2]}=_{digest}"


def short_id(name: str) -> str:
    """An id of a call, cut to what the API takes; different ids stay different."""
    plain = _short(name, len(name)) or ""
    if plain == name and len(name) <= _ID_CHARS:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{plain[: _ID_CHARS - 33].rstrip()}={digest}"


def count_of(value: object) -> int | None:
    """A count of tokens, written as a number or as text; None where it is none."""
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) <= 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_COUNT else None


def sum_of(*counts: int | None) -> int | None:
    """The sum of those that are told; None where none is."""
    told = [count for count in counts if count is not None]
    return sum(told) if told else None


def text_of(value: object) -> str | None:
    """A word or a text; None where it is empty or something else."""
    return value if isinstance(value, str) and value else None


def member(value: object, *names: str) -> Any:
    """What lies below these names; None where there is nothing.

    >>> member({"message": {"usage": {"input": 3}}}, "message", "usage", "input")
    3
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def moment_of(value: object) -> datetime | None:
    """A moment, written in ISO 8601 or as seconds or milliseconds since 1970; None: it is none."""
    if isinstance(value, str):
        written = value.strip().replace("Z", "+00:00").replace("z", "+00:00")
        # Python 3.9 and 3.10 take three or six digits of a second only.
        written = re.sub(
            r"\.(\d+)", lambda found: "." + (found[1] + "000000")[:6], written, count=1
        )
        try:
            moment = datetime.fromisoformat(written)
            return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(
                timezone.utc
            )
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        # The year 2286 in seconds; 1970-04-26 in milliseconds. JSON's whole numbers may be larger
        # than any float.
        seconds = value / 1000 if value > 10_000_000_000 else value
        return datetime.fromtimestamp(seconds, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _http_status(value: int | None) -> int | None:
    return value if value is not None and 100 <= value <= 599 else None


def _short(text: str | None, most: int) -> str | None:
    """One line of what a member of a report may hold; None where nothing is left."""
    return _CONTROL.sub(" ", _whole(text or "")).strip()[:most] or None


def _whole(text: str) -> str:
    """The text without what cannot be sent: halves of characters, and U+0000."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "")


def _as_hex(found: re.Match[str]) -> str:
    return "".join(f"={byte:02X}" for byte in found[0].encode("utf-8", "replace"))
