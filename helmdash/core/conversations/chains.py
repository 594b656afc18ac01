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
- NEW: everything else.

To join two chats that have nothing to do with each other is worse than to miss that one goes on:
- A first turn that looks the same starts a new chat. Its reply tells such chats apart later on.
- A short first turn whose reply the client has changed is not looked for.
- Turns that every chat of an agent begins with (examples written by hand) were never the end of a
  call, so they leave no fingerprint.
- A conversation is compacted only by what its newest call left, and only when no other one left
  the same. Two replies of a few words ("ok", "done") are no sign.
- A reply leaves a fingerprint as a summary only if the last turn asked for one, and by a sentence
  that its own request does not hold. A plan that one agent hands to the next is no summary.

Fingerprints count within one project and one caller; the recorder sees to that.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from helmdash.core.text.reasoning import strip_reasoning

CHAIN_VERSION = "chain-1"

_ASSISTANT = frozenset({"assistant", "model"})
_SYSTEM = frozenset({"system", "developer"})

# 16 bytes: accidental collisions stay out of reach for any number of calls one database holds.
_DIGEST_BYTES = 16
# A client goes on from the newest reply, or drops a few turns to write an older one anew.
_MOST_PREFIXES = 16
# These are looked for first; the others only when none of them is known.
NEAR_PREFIXES = 2
# What clients keep when they compact: seldom more than the newest dozen of turns.
_MOST_RUNS = 8
# By itself, a first turn shorter than this is no sign of one conversation ("hi", "continue").
_TELLING_CHARS = 120
_TELLING_RUN_CHARS = 200
# A shorter reply is no summary of anything.
_SUMMARY_CHARS = 200
_SENTENCE_CHARS = 60
# Where a summary is handed in: the system turns and so many of the others.
_EARLY_TURNS = 3
_SENTENCES_PER_TURN = 8
# A request with more turns than this was not compacted just now, and would cost much to read.
_MOST_TURNS_AFTER_SUMMARY = 32
_READ_CHARS = 64_000
_ASKED_CHARS = 4_000
# A window that slides gives up a turn or two with every call; a compaction gives up more.
_FRESH_START_SHARE = 0.8

# What clients ask when they compact: "summarize the conversation so far", "condense the above",
# "CONTEXT CHECKPOINT COMPACTION", "generate the <state_snapshot>". One word of each tuple.
_SUMMARY_WORDS = ("summar", "compaction", "compact the", "compact this", "condens", "snapshot")
_HISTORY_WORDS = (
    "conversation", "session", "context", "history", "so far", "dialog", "discussion", "chat",
    "above", "state_snapshot",
)  # fmt: skip
_AROUND_SENTENCES = " \t-*•>#\"'`.!?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message as the rule sees it, whatever API it came by.

    `text` is all that the message says: its texts, names and arguments of tool calls, results of
    tools, digests of images; no cache markers, no ids that a client makes up anew.
    """

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLinks:
    """The traces of one request and its reply, made by `links_of`: all that is kept of them.

    The first four are what the call leaves, the others what it looks for. Plain strings, and not
    many: at most 16 prefixes and replies, 8 runs, some dozens of sentences.
    """

    head: str = ""  # all turns of the request; "" where it has none
    reply: str = ""  # the same and the reply
    run: str = ""  # the reply and the one before it
    summary: str = ""  # a sentence of the reply, where that is a summary
    is_retry: bool = False
    # Beginnings, the longest first; "" for one that says too little by itself ...
    prefixes: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()  # ... and the same with the assistant's turn after it
    runs: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    @property
    def near(self) -> tuple[str, ...]:
        """The fingerprints of the longest beginnings: to look for first."""
        pairs = (*self.prefixes[:NEAR_PREFIXES], *self.replies[:NEAR_PREFIXES])
        return tuple(filter(None, pairs))

    @property
    def itself(self) -> tuple[str, ...]:
        """The fingerprint of this very request, where it could have been made before."""
        return (self.head,) if self.head and (self.is_retry or self.prefixes) else ()

    @property
    def far(self) -> tuple[str, ...]:
        """The fingerprints to look for when none of the near ones is known."""
        older = (*self.prefixes[NEAR_PREFIXES:], *self.replies[NEAR_PREFIXES:])
        return (*filter(None, older), *self.runs, *self.sentences)


class Placing(StrEnum):
    """How a call came to its conversation."""

    NEW = "new"
    CONTINUE = "continue"
    BRANCH = "branch"
    COMPACTION = "compaction"
    RETRY = "retry"


# How a call's row says that its conversation was compacted before it.
COMPACTED = f"{CHAIN_VERSION} {Placing.COMPACTION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A known fingerprint: which conversation left it, at which call, and its newest call."""

    conversation: int
    generation: int
    newest: int

    @property
    def is_tip(self) -> bool:
        """Whether the conversation's newest call left it."""
        return self.generation == self.newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call belongs. A branch names the call it came off; `by_run` is a kept run of turns.

    NEW has neither conversation nor generation.
    """

    placing: Placing
    conversation: int | None = None
    generation: int | None = None
    by_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a request was: its messages, its bytes, its prompt tokens as reported."""

    messages: int | None = None
    bytes: int | None = None
    tokens: int | None = None


Look = Callable[[str], Sequence[Seen]]

_NEW = Place(placing=Placing.NEW)


def links_of(turns: Sequence[Turn], *, reply: Turn | None, is_retry: bool) -> ChainLinks:
    """The traces of a request (`turns`, in order) and of what came back.

    `reply` None: nothing came back. `is_retry`: the client's library says that it tries again.
    Costs one hash over the whole request; never raises.
    """
    said = [_Said.of(turn) for turn in turns if turn.role.lower() not in _SYSTEM]
    asked = len(said)
    while asked and said[asked - 1].is_assistant:
        asked -= 1  # the beginning of a reply, put into the model's mouth
    if not asked:
        return ChainLinks()
    answer = None if reply is None else _Said.of(reply, is_assistant=True)
    chain = _Chain(said, asked)
    return ChainLinks(
        head=chain.head,
        reply=chain.with_reply("".join(turn.text for turn in said[asked:]), answer),
        run=_newest_run(said, answer) if answer and len(said) == asked else "",
        summary=_summary_fingerprint(turns, said[asked - 1], answer)
        if answer and asked > 1
        else "",
        is_retry=is_retry,
        prefixes=tuple(reversed(chain.prefixes)),
        replies=tuple(reversed(chain.replies)),
        runs=tuple(_runs(said[:asked])),
        sentences=tuple(_early_sentences(turns, len(said))),
    )


def place(links: ChainLinks, look: Look) -> Place:
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
        known = _longest_known(pairs[NEAR_PREFIXES:], look) or _compacted(links, look)
    if known is None:
        return _NEW
    again = next((one for one in itself if one.is_tip), None)
    if known.placing is Placing.BRANCH and again is not None:
        return _at(Placing.RETRY, again)
    return known


def fingerprints_of(links: ChainLinks, generation: int) -> tuple[str, ...]:
    """The fingerprints that the call leaves as that generation of its conversation; at most three.

    The reply tells apart chats that begin alike; later on a conversation's turns do. Only what has
    gone on can be summed up.
    """
    if generation == 1 or not links.prefixes:
        return tuple(filter(None, (links.head, links.reply, links.run)))
    return tuple(filter(None, (links.head, links.run, links.summary)))


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


# --- finding the place


def _longest_known(pairs: Sequence[tuple[str, str]], look: Look) -> Place | None:
    for prefix, reply in pairs:
        found = _known_at(look(prefix) if prefix else (), look(reply) if reply else ())
        if found is not None:
            return found
    return None


def _known_at(heads: Sequence[Seen], answered: Sequence[Seen]) -> Place | None:
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


def _compacted(links: ChainLinks, look: Look) -> Place | None:
    for run in links.runs:
        found = _only_tip(look(run))
        if found is not None:
            # Nothing can be cut from a conversation of one call.
            is_grown = found.newest > 1
            return _at(Placing.COMPACTION if is_grown else Placing.CONTINUE, found, by_run=True)
    quoted = [one for sentence in links.sentences for one in look(sentence)]
    found = _only_tip(quoted)
    return None if found is None else _at(Placing.COMPACTION, found)


def _only_tip(seen: Sequence[Seen]) -> Seen | None:
    if len({one.conversation for one in seen}) != 1:
        return None
    return next((one for one in seen if one.is_tip), None)


def _at(placing: Placing, seen: Seen, *, by_run: bool = False) -> Place:
    return Place(
        placing=placing,
        conversation=seen.conversation,
        generation=seen.generation,
        by_run=by_run,
    )


# --- making the fingerprints


class _Said(NamedTuple):
    """A turn, its text trimmed and without reasoning, which clients drop."""

    role: str
    text: str
    is_assistant: bool

    @classmethod
    def of(cls, turn: Turn, *, is_assistant: bool = False) -> _Said:
        role = turn.role.lower()
        text = turn.text.strip()
        if not is_assistant and role not in _ASSISTANT:
            return cls(role, text, is_assistant=False)
        # Reasoning comes first; where the template wrote its opening tag, only the closing one is
        # there to see.
        if text[:1] in ("<", "[", "◁") or "</think" in text:
            text = strip_reasoning(text).text
        return cls("assistant", text, is_assistant=True)


_NOTHING = _Said("assistant", "", is_assistant=True)


class _Chain:
    """One pass over the turns, which leaves a hash wherever the assistant spoke next."""

    def __init__(self, said: Sequence[_Said], asked: int) -> None:
        self.prefixes: list[str] = []
        self.replies: list[str] = []
        spoken = [n for n in range(len(said) - 1) if _is_answered(said, n)]
        kept = set(spoken[-_MOST_PREFIXES:])
        chars, has_history = 0, False
        digest = _digest()
        for number, turn in enumerate(said[:asked]):
            chars += len(turn.text)
            digest.update(_framed(turn))
            if number in kept:
                # After the last turn of all stands a beginning that a client puts into the
                # model's mouth, often the same in every chat: it needs the very words of a reply.
                is_telling = number + 1 < asked and (has_history or chars >= _TELLING_CHARS)
                self.prefixes.append("h" + digest.hexdigest() if is_telling else "")
                self.replies.append(_followed(digest, said[number + 1]))
            has_history = has_history or turn.is_assistant
        self._end = digest
        self.head = "h" + digest.hexdigest()

    def with_reply(self, begun: str, answer: _Said | None) -> str:
        if answer is None:
            return ""
        return _followed(self._end, _Said("assistant", begun + answer.text, is_assistant=True))


def _is_answered(said: Sequence[_Said], number: int) -> bool:
    return said[number + 1].is_assistant and not said[number].is_assistant


def _digest() -> blake2b:
    return blake2b(digest_size=_DIGEST_BYTES, person=CHAIN_VERSION.encode())


def _framed(turn: _Said) -> bytes:
    """Role, length and text: no two lists of turns give the same bytes."""
    body = turn.text.encode("utf-8", "surrogatepass")
    return b"%b\0%d\0%b" % (turn.role.encode("utf-8", "surrogatepass"), len(body), body)


def _followed(digest: blake2b, turn: _Said) -> str:
    longer = digest.copy()
    longer.update(_framed(turn))
    return "f" + longer.hexdigest()


def _runs(said: Sequence[_Said]) -> Iterator[str]:
    """Of each two replies in a row, newest first; nothing stands before the first reply."""
    replies = [_NOTHING, *(turn for turn in said if turn.is_assistant)]
    for number in range(len(replies) - 1, max(len(replies) - 1 - _MOST_RUNS, 0), -1):
        fingerprint = _run_fingerprint(replies[number - 1], replies[number])
        if fingerprint:
            yield fingerprint


def _run_fingerprint(before: _Said, reply: _Said) -> str:
    if len(before.text) + len(reply.text) < _TELLING_RUN_CHARS:
        return ""
    digest = _digest()
    digest.update(_framed(before))
    digest.update(_framed(reply))
    return "r" + digest.hexdigest()


def _newest_run(said: Sequence[_Said], answer: _Said) -> str:
    before = next((turn for turn in reversed(said) if turn.is_assistant), _NOTHING)
    return _run_fingerprint(before, answer)


def _summary_fingerprint(turns: Sequence[Turn], asking: _Said, answer: _Said) -> str:
    if len(answer.text) < _SUMMARY_CHARS or not _asks_for_summary(asking.text):
        return ""
    longest = heapq.nlargest(_EARLY_TURNS, _sentences(answer.text), key=len)
    for sentence in longest:
        if not any(sentence in turn.text for turn in turns):
            return _sentence_fingerprint(sentence)
    return ""


def _asks_for_summary(text: str) -> bool:
    if len(text) > 2 * _ASKED_CHARS:
        text = text[:_ASKED_CHARS] + text[-_ASKED_CHARS:]
    words = text.lower()
    is_sum = any(word in words for word in _SUMMARY_WORDS)
    return is_sum and any(word in words for word in _HISTORY_WORDS)


def _early_sentences(turns: Sequence[Turn], count: int) -> Iterable[str]:
    """Fingerprints of the longest sentences where a summary could have been handed in."""
    if count > _MOST_TURNS_AFTER_SUMMARY:
        return
    others = 0
    for turn in turns:
        role, text = turn.role.lower(), turn.text
        if role not in _SYSTEM:
            others += 1
            if others > _EARLY_TURNS or role in _ASSISTANT:
                continue
        if len(text) >= _SUMMARY_CHARS:
            yield from _longest_sentences(text[-_READ_CHARS:])


# An agent sends the same system prompt with every call.
@lru_cache(maxsize=32)
def _longest_sentences(text: str) -> tuple[str, ...]:
    found = sorted(set(_sentences(text)))
    return tuple(map(_sentence_fingerprint, heapq.nlargest(_SENTENCES_PER_TURN, found, key=len)))


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(line) < _SENTENCE_CHARS:
            continue
        # Plain splits: a pattern with look-behind costs ten times as much.
        pieces = line.replace("! ", ". ").replace("? ", ". ").replace("。", ". ").split(". ")
        for piece in [piece for piece in pieces if len(piece) >= _SENTENCE_CHARS]:
            sentence = piece.strip(_AROUND_SENTENCES)
            if len(sentence) >= _SENTENCE_CHARS:
                yield sentence


def _sentence_fingerprint(sentence: str) -> str:
    digest = _digest()
    digest.update(sentence.encode("utf-8", "surrogatepass"))
    return "s" + digest.hexdigest()
