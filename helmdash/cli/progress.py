"""Progress of a long command: one line that changes on a terminal, nothing in a log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from helmdash.cli.running import STOPPED


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A block with a function that shows what is being done; the line is gone when the block
    ends. Only warnings are logged over it."""
    is_seen = sys.stderr.isatty()
    log = logging.getLogger("helmdash")
    level = log.level

    def show(words: str) -> None:
        if is_seen:
            sys.stderr.write(f"\r\x1b[K{words[:100]}")
            sys.stderr.flush()

    if is_seen:
        log.setLevel(max(level, logging.WARNING))
    try:
        yield show
    finally:
        log.setLevel(level)
        show("")


@contextmanager
def told_when_ended(words: str) -> Iterator[None]:
    """A block that Ctrl-C or a fault of the place (a full disk, a database that is away) may end:
    what became of its work is told last. Raises what the block raises, with `words` as a note
    (helmdash.cli.running shows it), and CommandError for Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(f"stopped; {words}", returncode=STOPPED) from None
    except Exception as error:
        error.add_note(words)
        raise
