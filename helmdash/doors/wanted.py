"""What a client reads, by its Accept header, where an address does not say it."""

from __future__ import annotations

from enum import StrEnum


class Wanted(StrEnum):
    """A page for people, JSON for programs, or whatever comes."""

    PAGE = "page"
    JSON = "json"
    ANYTHING = "anything"


def wanted_of(accept: bytes) -> Wanted:
    """By the header's value; b"" is none. Browsers name HTML; libraries name JSON, or nothing."""
    told = accept.lower()
    if b"text/html" in told:
        return Wanted.PAGE
    return Wanted.JSON if b"json" in told else Wanted.ANYTHING
