"""What Anthropic left out of a prompt by itself: applied edits, and compactions of its own.

https://platform.claude.com/docs/en/build-with-claude/context-editing and …/compaction. An edit that
cleared nothing is none. A block of a compaction in a reply, or an entry of it in `iterations`, is
one; in a later request the server ignores all that stands before such a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helmdash.providers.shared.collecting import MOST_EDITS
from helmdash.providers.wire import Json, Object

COMPACTION = "compaction"
_MOST_CHARS = 64


def applied_edits(management: Json) -> tuple[Object, ...]:
    """The edits of `context_management` in a reply or in the last delta of a stream."""
    told = management.get("applied_edits") if isinstance(management, dict) else None
    if not isinstance(told, list):
        return ()
    return tuple(edit for each in told[:MOST_EDITS] if (edit := _edit(each)) is not None)


def edits_of_reply(parsed: Object, content: Sequence[Json]) -> tuple[Object, ...]:
    """The edits that a whole reply tells of."""
    return (*applied_edits(parsed.get("context_management")), *compactions_in(content))


def compactions_in(blocks: Sequence[Json]) -> Iterator[Object]:
    """An entry for each compaction among the blocks of a reply."""
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == COMPACTION:
            yield {"type": COMPACTION}


def _edit(told: Json) -> Object | None:
    """Its kind and what it counts; None for one that cleared nothing."""
    if not isinstance(told, dict) or not isinstance(told.get("type"), str):
        return None
    counts = {
        name[:_MOST_CHARS]: value
        for name, value in list(told.items())[:MOST_EDITS]
        if type(value) is int and value > 0
    }
    return {"type": told["type"][:_MOST_CHARS], **counts} if counts else None
