"""When a client has compacted its history by itself: rule "context-2".

A client that says how its context is called (core.agents) says it exactly: another
name, another context. A number only rises; back to the first one means that a person went back to
before the compaction, which is no new round. Of a client that names none, or by another door in
other words, a compaction is taken to have happened when it asked for one beside the conversation,
and its next prompt has lost a part of its size: asking alone does not show that the client used
what it got.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from helmdash.core.agents.values import FIRST_CONTEXT
from helmdash.core.conversations.chains import Placing, Size, is_fresh_start

CONTEXT_VERSION = "context-2"
# How a call's row says that its client compacted the history before it.
COMPACTED = f"{CONTEXT_VERSION} {Placing.COMPACTION}"


def context_of(first_user: tuple[str, ...], begins: str) -> str:
    """How the context is called that a history begins: by the summary that it begins with.

    first_user: the texts of its first message from the user. begins: how the agent hands a summary
    in.
    """
    for text in first_user:
        if text.lstrip()[: len(begins)] == begins:
            digest = blake2b(text.strip().encode("utf-8", "replace"), digest_size=8)
            return f"s{digest.hexdigest()}"  # a letter first: no number
    return FIRST_CONTEXT


def is_compacted(
    *,
    known: str | None,
    told: str | None,
    before: int | None,
    now: int | None,
    has_asked: Callable[[], bool],
) -> bool:
    """Whether a call is the first after a compaction of the client's own.

    known, told: the context of the calls before, and of this one; None: not told. before, now:
    tokens of the newest prompt and of this one; None: not reported. has_asked: whether the client
    has asked for a compaction since its newest call, and got it; asked only where it decides.
    """
    if known is not None and told is not None and are_alike(known, told):
        return is_later(known, told)
    if before is None or now is None or not is_fresh_start(Size(tokens=before), Size(tokens=now)):
        return False
    return has_asked()


def is_later(known: str, told: str) -> bool:
    """Whether a context came after another one, by their names.

    A number says nothing of a mark.
    """
    if told in (known, FIRST_CONTEXT) or not are_alike(known, told):
        return False
    return known == FIRST_CONTEXT or not told.isdecimal() or int(told) > int(known)


def are_alike(known: str, told: str) -> bool:
    """Whether one door may have named both contexts: by numbers, or by marks.

    A gateway names a context of Claude Code by its summary, its transcript by counting, and one
    compaction is one round by however many doors it is told.
    """
    return FIRST_CONTEXT in (known, told) or known.isdecimal() == told.isdecimal()
