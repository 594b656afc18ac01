"""Histories that clients resend: what one call has sent is hashed once for the calls after it.

A client sends its whole history with every call, so that in a batch most messages are the very ones
of the call before, and to compare them takes a tenth of what it takes to write and hash them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helmdash.core.text.messages import canonical_hashes
from helmdash.operations.recording.judged.canonical import canonical

Message = Mapping[str, object]
_WORDS = frozenset({str})


@dataclass(slots=True)
class History:
    """The messages of one call: the hash of each with all before it, and its canonical bytes."""

    messages: Sequence[Message]
    hashes: list[str]
    sizes: list[int]


_NOTHING = History((), [], [])


class Histories:
    """The newest history of each conversation among calls that are judged together."""

    def __init__(self) -> None:
        self._newest: dict[str, History] = {}

    def take(self, conversation: str | None, messages: Sequence[Message]) -> History:
        """The history of the next call; conversation None: nothing is known of what came before."""
        before = self._newest.get(conversation, _NOTHING) if conversation else _NOTHING
        same = _shared(before.messages, messages)
        texts = [canonical(message) for message in messages[same:]]
        known = before.hashes[:same]
        history = History(
            messages,
            [*known, *canonical_hashes(texts, known[-1] if known else "")],
            [*before.sizes[:same], *map(len, texts)],
        )
        if conversation:
            self._newest[conversation] = history
        return history


def _shared(before: Sequence[Message], messages: Sequence[Message]) -> int:
    """How many messages both begin with, as far as these are words under names: 1, 1.0 and true are
    equal, and are written otherwise."""
    for place, (one, other) in enumerate(zip(before, messages, strict=False)):
        if one != other or not _WORDS.issuperset(map(type, one.values())):
            return place
    return min(len(before), len(messages))
