"""A stream that its client asks for again: another attempt at the same generation.

A stream that broke off, or that its client gave up before it had its answer, is often asked for
once more in the same words. That is no further turn: the conversation stands where it stood before,
so the later attempt takes the generation, and the earlier one keeps that number beside it. What all
of it must hold: the newest call of the conversation asked the same (same caller, model and turns),
for a stream or for another attempt at one, nothing cleared the context between them, and the later
one, which may be asked for whole (as Claude Code does), began once the earlier was over, ten
minutes after it at most. One that was answered is asked for again only where the client's library
says that it tries again; a reply without a byte is no answer. One that was too long never is: care
shortens what is sent next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from helmdash.core.budgets.levels import Level
from helmdash.core.care.stored import whole_of
from helmdash.core.conversations.fingerprints import ChainLinks
from helmdash.core.values import quick_value

# The longest waits of SDKs and agents between two tries are a few minutes.
_LONGEST_WAIT = timedelta(minutes=10)
# Clocks and milliseconds are rounded.
_ROUNDING = timedelta(milliseconds=5)
# A server sees that its client has left when it next writes, the client may ask anew at once.
_NOTICED_WITHIN = timedelta(seconds=1)
# As in core.conversations.fingerprints: no two requests meet by accident.
_DIGEST_BYTES = 16
_LEVELS = {level.value: level for level in Level}


@quick_value(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a conversation stood before a call: its level, the newest known one (None: none is), and
    the newest call that was probably cut (None: none was)."""

    level: Level = Level.UNKNOWN
    known_level: Level | None = None
    cut_generation: int | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class NewestStream:
    """The newest call of a conversation, where it asked for a stream, or once more for one.

    mark: what its request is known by (`mark_of`). over: when it ended. attempts: how many tries
    it took so far. before: how the conversation stood before the first of them.
    """

    generation: int
    mark: str
    started_at: datetime
    over: datetime
    attempts: int
    is_broken: bool
    is_cancelled: bool
    before: Standing

    def to_json(self) -> dict[str, object]:
        """As a conversation stores it, under short keys."""
        level, known = self.before.level, self.before.known_level
        return {
            "g": self.generation,
            "m": self.mark,
            "s": self.started_at.isoformat(),
            "o": self.over.isoformat(),
            "a": self.attempts,
            "b": self.is_broken,
            "c": self.is_cancelled,
            "l": level.value,
            "k": known.value if known is not None else "",
            "cut": self.before.cut_generation,
        }

    @classmethod
    def from_json(cls, stored: object) -> NewestStream | None:
        """Read what was stored; None for what is missing or makes no sense: never raises."""
        if not isinstance(stored, Mapping):
            return None
        generation, mark = whole_of(stored.get("g"), least=1), stored.get("m")
        began, over = _moment(stored.get("s")), _moment(stored.get("o"))
        if not (generation and mark and began and over):
            return None
        return cls(
            generation=generation,
            mark=str(mark),
            started_at=began,
            over=over,
            attempts=whole_of(stored.get("a"), least=1) or 1,
            is_broken=stored.get("b") is True,
            is_cancelled=stored.get("c") is True,
            before=Standing(
                level=_LEVELS.get(str(stored.get("l")), Level.UNKNOWN),
                known_level=_LEVELS.get(str(stored.get("k"))),
                cut_generation=whole_of(stored.get("cut"), least=1),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """A request that may be for a stream once more. mark: gives what it is known by; asked only
    where that may decide, for it is a hash over the whole request. is_retry: its client's library
    says that it tries again."""

    mark: Callable[[], str]
    started_at: datetime
    is_retry: bool


def mark_of(links: ChainLinks, *, model: str, caller: str) -> str:
    """What a request is known by when it comes again; "" for one that says nothing."""
    if not (links.head or links.after):
        return ""
    told = "\x1f".join((caller, model, links.head, links.after))
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def is_again(newest: NewestStream | None, request: StreamRequest, *, generation: int) -> bool:
    """Whether a request is another attempt at a conversation's newest call, which is that
    generation. newest None: that call was no stream, or was cleared away."""
    if newest is None or newest.generation != generation:
        return False
    if not (newest.is_broken or request.is_retry):
        return False
    first = newest.over - (_NOTICED_WITHIN if newest.is_cancelled else _ROUNDING)
    if request.is_retry:
        first = newest.started_at  # the library says so, whenever we learned of the end
    if not first <= request.started_at <= newest.over + _LONGEST_WAIT:
        return False
    return request.mark() == newest.mark


def is_before(
    newest: NewestStream | None,
    request: StreamRequest,
    *,
    over: datetime,
    is_cancelled: bool,
    generation: int,
) -> bool:
    """Whether a stream that broke off is an attempt before a conversation's newest call, recorded
    after it: two processes tell of them in no order. over: when the broken one ended."""
    if newest is None or newest.generation != generation:
        return False
    first = over - (_NOTICED_WITHIN if is_cancelled else _ROUNDING)
    is_in_order = request.started_at < newest.started_at
    if not (is_in_order and first <= newest.started_at <= over + _LONGEST_WAIT):
        return False
    return request.mark() == newest.mark


def _moment(told: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
