"""Counts in words, the same in the terminal, on pages, in mails and in the log of jobs."""

from __future__ import annotations


def count_of(count: int, noun: str) -> str:
    """A count with what it counts, which is said in the singular.

    >>> count_of(1, "call"), count_of(2000, "call")
    ('1 call', '2,000 calls')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
