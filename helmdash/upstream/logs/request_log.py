"""The request log: one line of JSON for each call to an Ollama server, in files of a day each.

Format, names and rotation follow "Context Manager" (docs/sources.md). Prompts and replies are never
in it, and secrets in what servers and callers wrote are masked. `add` only puts an entry into
a queue; a thread writes. Whatever goes wrong with the disk, no call notices.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from weakref import WeakMethod

from helmdash.core.text.redaction import redact, redact_text
from helmdash.upstream.logs.log_files import DayFiles

log = logging.getLogger(__name__)

# The figures of "Context Manager".
MAX_BYTES = 10 * 1024 * 1024
KEEP_DAYS = 14

# A line is in its file this long after its call at most (0.1 s), unless the disk is slow.
_GATHER_SECONDS = 0.05
# After a failed write. Longer waits would only make the loss larger when the process is killed.
_RETRY_SECONDS = 0.5
# What waits while the disk is full: some ten megabytes of lines.
_MOST_WAITING = 10_000
# Written at once: so many lines that nobody waits, so few that a file is not much too long.
_BATCH = 200
_MOST_MESSAGE_CHARS = 300
_EXIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedReply:
    """What is kept of a reply; None is what was not reported."""

    done: bool | None
    done_reason: str | None
    eval_count: int | None
    prompt_eval_count: int | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedError:
    """What went wrong: a word, and a message, of which only a masked line is written."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One call. Tokens; None is unknown. `chunk_manifest` has no texts (Manifest.to_json)."""

    at: datetime
    request_id: str
    model: str
    token_estimate: int | None = None
    actual_prompt_tokens: int | None = None
    prompt_hash: str = ""
    chunk_manifest: tuple[Mapping[str, object], ...] = ()
    reply: LoggedReply | None = None
    error: LoggedError | None = None
    conversation: str = ""
    call_id: str = ""
    upstream: str = ""
    num_ctx: int | None = None

    def to_json(self) -> dict[str, object]:
        """The entry as its line has it, with masks for secrets."""
        line: dict[str, object] = {
            "timestamp": _timestamp(self.at),
            "requestId": self.request_id,
            "callId": self.call_id or None,
            "conversationId": self.conversation or None,
            "upstream": self.upstream or None,
            "model": redact_text(self.model),
            "numCtx": self.num_ctx,
            "tokenEstimate": self.token_estimate,
            "actualPromptTokens": self.actual_prompt_tokens,
            "promptHash": self.prompt_hash or None,
            "chunkManifest": redact(list(self.chunk_manifest)),
        }
        if self.reply is not None:
            line["responseMetadata"] = _reply(self.reply)
        if self.error is not None:
            line["error"] = _error(self.error)
        return line


class RequestLog:
    """Appends entries to files in `directory`, from any thread, beside other processes.

    Its thread begins with the first entry. `close` writes what is left, and is called at exit.
    """

    def __init__(
        self, directory: Path, *, keep_days: int = KEEP_DAYS, max_bytes: int = MAX_BYTES
    ) -> None:
        """Files of `max_bytes` are followed by numbered ones; those of days longer ago than
        `keep_days` are deleted. The directory is made, for its owner only, at the first entry."""
        self._files = DayFiles(directory, keep_days=keep_days, max_bytes=max_bytes)
        self._waiting: deque[LogEntry] = deque()
        self._lost = 0
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._closes_at_exit = False
        self._fails = False

    def add(self, entry: LogEntry) -> None:
        """Take an entry. Never raises, and never waits for the disk."""
        if len(self._waiting) >= _MOST_WAITING:
            self._lost += 1
            return
        self._waiting.append(entry)
        if self._thread is None:
            self._begin()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> bool:
        """Write all that waits, now; whether it could be written. Never raises."""
        with self._writing:
            return self._write()

    def close(self, seconds: float = _EXIT_SECONDS) -> None:
        """Write what is left, for so long at most, and end the thread. Entries may still come:
        they are written by a new one."""
        until = monotonic() + seconds
        with self._lock:
            thread, self._thread = self._thread, None
        self._closing.set()
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, until - monotonic()))
        if self._writing.acquire(timeout=max(0.0, until - monotonic())):
            try:
                self._write()
                self._files.close()
            finally:
                self._writing.release()

    def _begin(self) -> None:
        try:
            with self._lock:
                if self._thread is not None:
                    return
                self._closing.clear()
                thread = threading.Thread(target=self._run, name="request-log", daemon=True)
                thread.start()
                self._thread = thread
                if not self._closes_at_exit:
                    self._closes_at_exit = True
                    _close_at_exit(self)
        except RuntimeError:  # the interpreter is ending: `close` at exit writes it
            log.debug("no thread for the request log", exc_info=True)

    def _run(self) -> None:
        # Asked before each wait, too: a `close` during the pause below would go unheard.
        while not self._closing.is_set():
            self._wake.wait()
            if self._closing.is_set():
                return
            # The pause gathers the entries of one moment into one write.
            sleep(_GATHER_SECONDS)
            self._wake.clear()
            if not self.flush():
                sleep(_RETRY_SECONDS)
                self._wake.set()

    def _write(self) -> bool:
        """Entries leave the queue when they are in a file, not before."""
        try:
            while self._waiting:
                batch = [self._waiting[place] for place in range(min(_BATCH, len(self._waiting)))]
                for written in self._files.append([(each.at, _line(each)) for each in batch]):
                    for _ in range(written):
                        self._waiting.popleft()
        except Exception as error:
            if not self._fails:  # said once, not for every try
                log.warning("the request log cannot be written just now: %s", type(error).__name__)
            self._fails = True
            return False
        if self._lost:
            log.warning("%d lines of the request log were lost: its queue was full", self._lost)
            self._lost = 0
        self._fails = False
        return True


def _line(entry: LogEntry) -> bytes:
    """An entry as a line; one that no JSON can hold is told as such, and stands in no one's way."""
    try:
        text = json.dumps(entry.to_json(), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace") + b"\n"
    except Exception:
        broken = {"timestamp": _timestamp(entry.at), "requestId": str(entry.request_id)}
        return json.dumps({**broken, "error": {"code": "unwritable"}}).encode() + b"\n"


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reply(reply: LoggedReply) -> dict[str, object]:
    return {
        "done": reply.done,
        "doneReason": reply.done_reason,
        "evalCount": reply.eval_count,
        "promptEvalCount": reply.prompt_eval_count,
        "durationMs": reply.duration_ms,
    }


def _error(error: LoggedError) -> dict[str, object]:
    message = " ".join(error.message[: 4 * _MOST_MESSAGE_CHARS].split())
    return {
        "code": redact_text(error.code),
        "message": redact_text(message)[:_MOST_MESSAGE_CHARS],
    }


def _close_at_exit(log_: RequestLog) -> None:
    """Weakly: a log that is gone has nothing left to write."""
    close = WeakMethod(log_.close)

    def at_exit() -> None:
        method = close()
        if method is not None:
            method()

    atexit.register(at_exit)
