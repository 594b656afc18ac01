"""What a run says in the terminal: a bar while it goes, a table at its end."""

from __future__ import annotations

import time
from typing import Callable, TextIO

from helmdash.transcripts.importing import AgentSummary, Progress

_BAR_CHARS = 30
# How often the bar moves, and how often a log is told.
_SHOWN_SECONDS, _LOG_SECONDS = 0.1, 10.0
# So many files or lines are named; the others are counted.
_MOST_NAMED = 10


class ProgressBar:
    """One line that is written anew; where no terminal is, a line now and then."""

    def __init__(self, stream: TextIO, *, moment: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._moment = stream, moment
        self._is_shown = stream.isatty()
        self._width = 0
        self._newest: Progress | None = None
        # A run that is over at once needs no lines in a log.
        self._next = moment() + (0 if self._is_shown else _LOG_SECONDS)

    def __call__(self, progress: Progress) -> None:
        """Show how far it is, unless that was done just now."""
        self._newest, now = progress, self._moment()
        if now >= self._next and progress.all_bytes:
            self._show(progress, now)

    def _show(self, progress: Progress, now: float) -> None:
        self._next = now + (_SHOWN_SECONDS if self._is_shown else _LOG_SECONDS)
        share = progress.done_bytes / progress.all_bytes
        told = f"{share:4.0%}  {progress.calls:,} calls"
        if not self._is_shown:
            self._stream.write(f"{progress.agent}: {told.strip()}\n")
        else:
            bar = "#" * round(share * _BAR_CHARS)
            line = f"{progress.agent:9}[{bar:.<{_BAR_CHARS}}] {told}"
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        self._stream.flush()

    def say(self, sentence: str) -> None:
        """A line of its own, above the bar."""
        self._stream.write("\r" * bool(self._width) + sentence.ljust(self._width) + "\n")
        if self._width and self._newest is not None:
            self._show(self._newest, self._moment())
        self._stream.flush()

    def close(self) -> None:
        """Leave the line, as it was at the end."""
        if self._width and self._newest is not None:
            self._show(self._newest, self._moment())
            self._stream.write("\n")


def summary_lines(summaries: dict[str, AgentSummary]) -> list[str]:
    """The table of a run, and below it what was not taken, with the reason."""
    seen = {name: each for name, each in summaries.items() if each.files or each.unreadable}
    if not seen:
        return ["No transcripts were found. Those of another home folder: --home FOLDER."]
    head = ("agent", "files", "conversations", "calls", "failed", "new", "known")
    rows: list[tuple[str, ...]] = [head]
    for name, each in seen.items():
        figures = (each.files, each.conversations, each.calls, each.failed, each.new, each.known)
        rows.append((name, *(f"{figure:,}" for figure in figures)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    for name, each in seen.items():
        if each.unchanged:
            lines.append(f"{name}: {each.unchanged:,} of the files had not changed since last time")
        lines += [
            f"{name}: {count:,} {reason} left out"
            for reason, count in sorted(each.left_out.items())
            if count
        ]
        lines += _named(f"{name}: cannot be read", each.unreadable)
        lines += _named(f"{name}: not taken", each.rejected)
    return lines


def _named(what: str, reasons: list[str]) -> list[str]:
    lines = [f"{what}: {_visible(reason)}" for reason in reasons[:_MOST_NAMED]]
    if len(reasons) > _MOST_NAMED:
        lines.append(f"{what}: {len(reasons) - _MOST_NAMED:,} more")
    return lines


def _visible(text: str) -> str:
    """Names of files come from anywhere: what steers a terminal is shown as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
