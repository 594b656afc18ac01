"""Where a request came in: set at the edge by the face, read where a change is noted down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class Way(StrEnum):
    """How somebody reaches HelmDash. server: nobody did, it acts by itself."""

    PAGES = "pages"
    ADMIN = "admin"
    API = "api"
    COMMAND = "command"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Origin:
    """The way, and the address of the client; None where there is none."""

    way: Way
    address: str | None = None


_NOBODY = Origin(Way.SERVER)
_origin: ContextVar[Origin] = ContextVar("origin", default=_NOBODY)


@contextmanager
def coming_by(origin: Origin) -> Iterator[None]:
    """What is done within comes from there."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


def origin() -> Origin:
    """Where what is done now comes from."""
    return _origin.get()
