"""Which conversation a request belongs to when nobody says: rule "chain-1".

A client that keeps a conversation sends the whole of it with every call. So each call leaves a few
fingerprints (hashes), and each request looks for the fingerprints of earlier ones. System turns are
left out: agents put the date in them. In this order, the longest known beginning first:

- RETRY: the client's library says that it tries again, and this very request is known.
- CONTINUE: a beginning of the request is all that a conversation's newest call asked, and the
  reply to that call (or a reply that the client has changed) comes after it.
- RETRY: this very request, history and all, is a conversation's newest call: another sample of it,
  or the client asks anew. Calls of one turn in parallel are therefore one conversation.
- BRANCH: a known beginning, but its conversation has gone on in another way since: a new
  conversation that remembers which it came from. Of several different next turns sent at once, the
  first to be recorded continues and each other one branches off.
- COMPACTION: no beginning is known, yet the two newest replies of one conversation were kept, one
  after the other; or what it wrote when it was asked to sum itself up is quoted in the system
  prompt or the first turns. Where replies were kept and the request did not shrink (in messages,
  bytes or tokens), the client only let a window slide, or changed something far back: CONTINUE.
- CONTINUE, COMPACTION: nothing of this is known, but a tool call whose result the request brings
  was asked for by the only call of a conversation, or short replies were kept with the tool call
  before them (core.conversations.called_tools).
- NEW: everything else.

To join two chats that have nothing to do with each other is worse than to miss that one goes on:
- A first turn that looks the same starts a new chat. Its reply tells such chats apart later on.
- A short first turn whose reply the client has changed is not looked for by its words.
- Turns that every chat of an agent begins with (examples written by hand) were never the end of a
  call, so they leave no fingerprint.
- A conversation is compacted only by what its newest call left, and only when no other one left
  the same. Two replies of a few words ("ok", "done") are no sign.
- A reply leaves a fingerprint as a summary only if the last turn asked for one, and by a sentence
  that its own request does not hold. A plan that one agent hands to the next is no summary.

Fingerprints count within one project and one caller; the recorder sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from helmdash.core.conversations.fingerprints import CHAIN_VERSION, NEAR_PREFIXES, ChainLinks
from helmdash.core.values import quick_value

# A window that slides gives up a turn or two with every call; a compaction gives up more.
_FRESH_START_SHARE = 0.8


class Placing(StrEnum):
    """How a call came to its conversation."""

    NEW = "new"
    CONTINUE = "continue"
    BRANCH = "branch"
    COMPACTION = "compaction"
    RETRY = "retry"


# How a call's row says that its conversation was compacted before it.
COMPACTED = f"{CHAIN_VERSION} {Placing.COMPACTION}"


@quick_value(frozen=True, slots=True, kw_only=True)
class Seen:
    """A known fingerprint: which conversation left it, at which call, and its newest call."""

    conversation: int
    generation: int
    newest: int

    @property
    def is_tip(self) -> bool:
        """Whether the conversation's newest call left it."""
        return self.generation == self.newest


@quick_value(frozen=True, slots=True, kw_only=True)
class ChainPlace:
    """Where a call belongs. A branch names the call it came off; `by_run` is a kept run of turns,
    `by_call` the id of a tool call (core.conversations.called_tools).

    NEW has neither conversation nor generation: both are None.
    """

    placing: Placing
    conversation: int | None = None
    generation: int | None = None
    by_run: bool = False
    by_call: bool = False


@quick_value(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a request was: its messages, its bytes, its prompt tokens as reported. None: not
    told."""

    messages: int | None = None
    bytes: int | None = None
    tokens: int | None = None


Look = Callable[[str], Sequence[Seen]]

_NEW = ChainPlace(placing=Placing.NEW)


def place(links: ChainLinks, look: Look) -> ChainPlace:
    """Say where a call belongs. `look` gives who left a fingerprint, newest conversation first.

    Pure: the same fingerprints give the same place. `look` is asked for those of `itself` and
    `near`, and for those of `far` only where nobody left one of `near`.
    """
    itself = [one for fingerprint in links.itself for one in look(fingerprint)]
    if links.is_retry and itself:
        return _at(Placing.RETRY, next((one for one in itself if one.is_tip), itself[0]))
    # Links come back from a spool, where nothing promises that they are whole.
    pairs = list(zip(links.prefixes, links.replies, strict=False))
    if any(look(fingerprint) for fingerprint in links.near):
        known = _longest_known(pairs[:NEAR_PREFIXES], look)
    else:
        known = (
            _longest_known(pairs[NEAR_PREFIXES:], look)
            or _compacted(links, look)
            or _called(links, look)
        )
    if known is None:
        return _NEW
    again = next((one for one in itself if one.is_tip), None)
    if known.placing is Placing.BRANCH and again is not None:
        return _at(Placing.RETRY, again)
    return known


def is_fresh_start(before: Size, after: Size) -> bool:
    """Whether a prompt that lost its beginning is a new start, not a window that slides on.

    Takes the sizes of the newest call and of this one. One measure that shrank is enough: a
    provider may report any tokens, and a long summary may weigh as much as what it sums up.
    Where nothing can be compared it counts as new.
    """
    pairs = (
        (before.messages, after.messages),
        (before.bytes, after.bytes),
        (before.tokens, after.tokens),
    )
    known = [(was, now) for was, now in pairs if was is not None and now is not None]
    return not known or any(now < was * _FRESH_START_SHARE for was, now in known)


def _longest_known(pairs: Sequence[tuple[str, str]], look: Look) -> ChainPlace | None:
    for prefix, reply in pairs:
        found = _known_at(look(prefix) if prefix else (), look(reply) if reply else ())
        if found is not None:
            return found
    return None


def _known_at(heads: Sequence[Seen], answered: Sequence[Seen]) -> ChainPlace | None:
    """What one beginning tells: by the reply that follows it, else by its own length."""
    tips = {one.conversation for one in heads if one.is_tip}
    for one in answered:
        if one.is_tip or one.conversation in tips:
            return _at(Placing.CONTINUE, one)
    grown = [one for one in heads if one.newest > 1]
    for one in grown:
        if one.is_tip:
            return _at(Placing.CONTINUE, one)
    # Chats that have begun alike cannot be told apart without the reply.
    if len(heads) == 1 and heads[0].is_tip:
        return _at(Placing.CONTINUE, heads[0])
    for one in (*answered, *grown):
        return _at(Placing.BRANCH, one)
    return None


def _compacted(links: ChainLinks, look: Look) -> ChainPlace | None:
    for run in links.runs:
        found = _only_tip(look(run))
        if found is not None:
            return _kept(found)
    quoted = [one for sentence in links.sentences for one in look(sentence)]
    found = _only_tip(quoted)
    return None if found is None else _at(Placing.COMPACTION, found)


def _called(links: ChainLinks, look: Look) -> ChainPlace | None:
    found = _only_tip([one for call in links.calls for one in look(call)])
    return None if found is None else _kept(found, by_call=True)


def _kept(seen: Seen, *, by_call: bool = False) -> ChainPlace:
    """The place of a request that kept what a conversation's newest call left."""
    # Nothing can be cut from a conversation of one call.
    placing = Placing.COMPACTION if seen.newest > 1 else Placing.CONTINUE
    return _at(placing, seen, by_run=True, by_call=by_call)


def _only_tip(seen: Sequence[Seen]) -> Seen | None:
    if len({one.conversation for one in seen}) != 1:
        return None
    return next((one for one in seen if one.is_tip), None)


def _at(placing: Placing, seen: Seen, *, by_run: bool = False, by_call: bool = False) -> ChainPlace:
    return ChainPlace(
        placing=placing,
        conversation=seen.conversation,
        generation=seen.generation,
        by_run=by_run,
        by_call=by_call,
    )
