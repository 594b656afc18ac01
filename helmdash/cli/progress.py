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
def told_when_stopped(words: str) -> Iterator[None]:
    """A block that Ctrl-C may end: the command's last line is what became of its work."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(f"stopped; {words}", returncode=STOPPED) from None
