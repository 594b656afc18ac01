"""Progress of a long command: one line that changes on a terminal, nothing in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A block with a function that shows what is being done; the line is gone when the block
    ends."""
    is_seen = sys.stderr.isatty()

    def show(words: str) -> None:
        if is_seen:
            sys.stderr.write(f"\r\x1b[K{words[:100]}")
            sys.stderr.flush()

    try:
        yield show
    finally:
        show("")
