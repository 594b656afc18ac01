"""From files to reports: all of them once, or on and on as they grow.

Whoever stores the reports is passed in: over HTTP from another machine, or the server's own
recorder. Ids are stable, so what was stored before is told apart by the receiver; a file that has
not changed since it was sent is not even opened.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from helmdash.transcripts.calls import TranscriptCall
from helmdash.transcripts.reading import AgentReader, FileReader, Home
from helmdash.transcripts.sent_files import SentFiles, Stamp, stamp_of

# What one request holds: half of what the API takes, for calls may have long texts.
MAX_BATCH = 500
_MAX_BATCH_CHARS = 2_000_000
# How often growing files are looked at, and how often new ones are looked for. A newest response
# is read at one look and given at the first after its file was quiet: within 2 s. Seconds.
_LOOK_SECONDS = 0.4
_SEARCH_SECONDS = 4.0
# As the others that are left out are named, behind how many.
_TOO_OLD = "calls older than the project keeps"


@dataclass
class Stored:
    """What became of a batch: how many are new, how many were known, how many are older than the
    project keeps its calls, and by its place in the batch why one was not taken."""

    new: int = 0
    known: int = 0
    too_old: int = 0
    rejected: dict[int, str] = field(default_factory=dict)


Send = Callable[[Sequence[dict[str, Any]]], Stored]


class CannotSend(Exception):
    """Nothing more can be stored; the message says why, and what mends it."""


@dataclass
class Progress:
    """How far a run is: bytes of files, and what they held so far."""

    agent: str
    done_bytes: int
    all_bytes: int
    calls: int


@dataclass
class AgentSummary:
    """What was found of one agent."""

    files: int = 0
    unchanged: int = 0
    calls: int = 0
    failed: int = 0
    new: int = 0
    known: int = 0
    conversations: int = 0
    unreadable: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass
class _Open:
    """A file that is read on and on."""

    agent: str
    path: Path
    reader: FileReader
    stamp: Stamp | None = None
    is_quiet: bool = True
    told: Counter[str] = field(default_factory=Counter)


class Importer:
    """One run over the transcripts of a home."""

    def __init__(
        self,
        readers: Sequence[AgentReader],
        home: Home,
        *,
        send: Send,
        texts: bool,
        sent: SentFiles,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.search_seconds = _SEARCH_SECONDS
        self.summaries = {reader.name: AgentSummary() for reader in readers}
        self._readers, self._home = readers, home
        self._send, self._texts, self._sent = send, texts, sent
        self._progress = progress
        self._batch: list[tuple[str, TranscriptCall, dict[str, Any]]] = []
        self._batch_chars = 0
        self._conversations: dict[str, set[int]] = {reader.name: set() for reader in readers}
        # Read to their end; noted once the calls of all before have been stored.
        self._finished: list[tuple[Path, Stamp]] = []
        self._done_bytes = self._all_bytes = 0

    def run(self) -> None:
        """Read every file that changed since it was last sent, once.

        Raises CannotSend; what was sent before is stored.
        """
        found = [
            (reader, path, stamp_of(path))
            for reader in self._readers
            for path in self._find(reader)
        ]
        self._all_bytes = sum(stamp.size for _, _, stamp in found if stamp is not None)
        try:
            for reader, path, stamp in found:
                summary = self.summaries[reader.name]
                summary.files += 1
                if stamp is not None and self._sent.knows(path, stamp):
                    summary.unchanged += 1
                else:
                    opened = _Open(reader.name, path, reader.open(path))
                    if self._read(opened, is_final=True) and stamp is not None:
                        self._finished.append((path, stamp))
                self._done_bytes += stamp.size if stamp is not None else 0
                self._tell(reader.name)
            self._flush()
        finally:
            # Also where somebody ends it: the next run need not read what is stored.
            self._sent.save()

    def watch(
        self,
        *,
        is_over: Callable[[], bool] = lambda: False,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Read what is there, and then what comes: lines within two seconds, new files within five.

        Raises CannotSend.
        """
        opened: dict[Path, _Open] = {}
        searched: float | None = None
        while not is_over():
            moment = time.monotonic()
            if searched is None or moment - searched >= self.search_seconds:
                self._open_new(opened)
                searched = time.monotonic()
            for each in opened.values():
                self._look(each)
            self._flush()
            self._sent.save()
            wait(_LOOK_SECONDS)

    def _find(self, reader: AgentReader) -> Iterator[Path]:
        try:
            yield from reader.files(self._home)
        except OSError as error:
            self._note_unreadable(reader.name, str(error))

    def _note_unreadable(self, agent: str, reason: str) -> None:
        """Once: a watch meets the same again and again."""
        known = self.summaries[agent].unreadable
        if reason not in known:
            known.append(reason)

    def _open_new(self, opened: dict[Path, _Open]) -> None:
        for reader in self._readers:
            for path in self._find(reader):
                if path in opened:
                    continue
                self.summaries[reader.name].files += 1
                stamp = stamp_of(path)
                self._all_bytes += stamp.size if stamp is not None else 0
                opened[path] = _Open(reader.name, path, reader.open(path))

    def _look(self, each: _Open) -> None:
        """Read a file that grew; what was held back of it once it has been quiet."""
        stamp = stamp_of(each.path)
        if stamp is None:
            return
        if each.stamp is None and self._sent.knows(each.path, stamp):
            # Sent by an earlier run: what comes is read with all before it, and told apart by ids.
            each.stamp = stamp
            self._done_bytes += stamp.size
            return
        if stamp != each.stamp:
            is_first = each.stamp is None
            if self._read(each, is_final=False):
                each.stamp, each.is_quiet = stamp, False
                self._done_bytes += stamp.size if is_first else 0
                self._tell(each.agent)
        elif (
            not each.is_quiet and time.time() - stamp.changed_ns / 1e9 >= each.reader.quiet_seconds
        ):
            each.is_quiet = self._read(each, is_final=True)
            if each.is_quiet:
                self._finished.append((each.path, stamp))

    def _read(self, each: _Open, *, is_final: bool) -> bool:
        """Take in a file's new calls; whether it could be read."""
        summary = self.summaries[each.agent]
        try:
            for call in each.reader.read(is_final=is_final):
                self._take(each.agent, call)
                self._tell(each.agent, each.reader.done_bytes)
        except OSError as error:
            reason = str(error) if str(each.path) in str(error) else f"{each.path}: {error}"
            self._note_unreadable(each.agent, reason)
            return False
        finally:
            summary.left_out.update(each.reader.left_out - each.told)
            each.told = Counter(each.reader.left_out)
        return True

    def _take(self, agent: str, call: TranscriptCall) -> None:
        summary, report = self.summaries[agent], call.to_report(texts=self._texts)
        summary.calls += 1
        summary.failed += call.status is not None
        self._conversations[agent].add(hash(report["conversation"]))
        summary.conversations = len(self._conversations[agent])
        self._batch.append((agent, call, report))
        self._batch_chars += len(report.get("content", ""))
        if len(self._batch) >= MAX_BATCH or self._batch_chars >= _MAX_BATCH_CHARS:
            self._flush()

    def _tell(self, agent: str, more_bytes: int = 0) -> None:
        """Say how far it is. more_bytes: of the file that is being read."""
        done = min(self._done_bytes + more_bytes, self._all_bytes)
        self._progress(Progress(agent, done, self._all_bytes, self.summaries[agent].calls))

    def _flush(self) -> None:
        """Send what was read. Raises CannotSend."""
        if self._batch:
            self._send_batch()
        for path, stamp in self._finished:
            self._sent.note(path, stamp)
        self._finished.clear()

    def _send_batch(self) -> None:
        batch, self._batch, self._batch_chars = self._batch, [], 0
        for agent in self.summaries:
            own = [(call, report) for name, call, report in batch if name == agent]
            if not own:
                continue
            stored = self._send([report for _, report in own])
            summary = self.summaries[agent]
            summary.new += stored.new
            summary.known += stored.known
            summary.left_out[_TOO_OLD] += stored.too_old
            for index, reason in sorted(stored.rejected.items()):
                summary.rejected.append(f"{own[index][0].origin}: {reason}")
