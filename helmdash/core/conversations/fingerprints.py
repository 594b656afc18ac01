"""Fingerprints: the hashes by which a request finds the conversation that it goes on with.

Each call leaves at most five of them and looks for some dozens (core.conversations.chains says
which rule reads what). What is kept of a text is its hash alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from helmdash.core.conversations.called_tools import call_fingerprint
from helmdash.core.text.reasoning import strip_reasoning
from helmdash.core.values import quick_value

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
# What clients ask when they compact: "summarize the conversation so far", "condense the above",
# "CONTEXT CHECKPOINT COMPACTION", "generate the <state_snapshot>". One word of each tuple.
_SUMMARY_WORDS = ("summar", "compaction", "compact the", "compact this", "condens", "snapshot")
_HISTORY_WORDS = (
    "conversation", "session", "context", "history", "so far", "dialog", "discussion", "chat",
    "above", "state_snapshot",
)  # fmt: skip
# How a fingerprint begins that holds the id of a tool call.
_BY_CALL = "c"
# Of so many replies a run may hold the tool call: as many as runs, and as many before the last.
MOST_CALLED = 2 * _MOST_RUNS
# The id of a tool call, and the tool's name.
ToolCalled = tuple[str, str]
NO_CALL: ToolCalled = ("", "")
_AROUND_SENTENCES = " \t-*•>#\"'`.!?"


class ChatTurn(NamedTuple):
    """One message as the rule sees it, whatever API it came by.

    `text` is all that the message says: its texts, names and arguments of tool calls, results of
    tools, digests of images; no cache markers, no ids that a client makes up anew.
    """

    role: str
    text: str


@quick_value(frozen=True, slots=True, kw_only=True)
class ChainLinks:
    """The traces of one request and its reply, made by `links_of`: all that is kept of them.

    The first six are what the call leaves, the others what it looks for. Plain strings, and not
    many: at most 16 prefixes and replies, 8 runs, some dozens of sentences, 12 calls.
    """

    head: str = ""  # all turns of the request; "" where it has none
    reply: str = ""  # the same and the reply
    run: str = ""  # the reply and the one before it, else those since the newest tool call
    summary: str = ""  # a sentence of the reply, where that is a summary
    kept: str = ""  # the id of the reply, where its provider keeps it
    called: str = ""  # the id of a tool call that the reply asks for
    is_retry: bool = False
    is_stream: bool = False  # the reply was asked for as a stream
    after: str = ""  # the id of the kept reply that the request goes on from
    # Beginnings, the longest first; "" for one that says too little by itself ...
    prefixes: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()  # ... and the same with the assistant's turn after it
    runs: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    # Ids of the tool calls whose results it brings, and short replies with the call before them.
    calls: tuple[str, ...] = ()

    @property
    def near(self) -> tuple[str, ...]:
        """The fingerprints of the longest beginnings: to look for first."""
        pairs = (*self.prefixes[:NEAR_PREFIXES], *self.replies[:NEAR_PREFIXES])
        return tuple(filter(None, (self.after, *pairs)))

    @property
    def is_opening(self) -> bool:
        """Whether the request goes on with nothing that a call could have left."""
        return not (self.near or self.itself)

    def may_go_on_from(self, before: ChainLinks, *, is_near: bool = False) -> bool:
        """Whether this request looks for anything that the call `before` leaves. False: where this
        one belongs does not hang on whether that one is stored.

        is_near: a call has left one of the near ones, so that the far ones are not looked for.
        """
        left = {before.head, before.reply, before.run, before.summary, before.kept, before.after}
        left.add(before.called)
        left.discard("")
        wanted = (*self.near, *self.itself) if is_near else (*self.near, *self.itself, *self.far)
        return not left.isdisjoint(wanted)

    @property
    def itself(self) -> tuple[str, ...]:
        """The fingerprint of this very request, where it could have been made before."""
        return (self.head,) if self.head and (self.is_retry or self.prefixes) else ()

    @property
    def far(self) -> tuple[str, ...]:
        """The fingerprints to look for when none of the near ones is known."""
        older = (*self.prefixes[NEAR_PREFIXES:], *self.replies[NEAR_PREFIXES:])
        return (*filter(None, older), *self.runs, *self.sentences, *self.calls)


class ChatTraces:
    """The turns of a request, read once: its traces are asked for before the call, and with what
    came back after it. Costs one hash over the whole request; never raises."""

    def __init__(
        self,
        turns: Sequence[ChatTurn],
        *,
        calls: tuple[str, ...] = (),
        called: Callable[[], Sequence[ToolCalled]] = tuple,
    ) -> None:
        """calls: fingerprints of the tool calls whose results it brings. called: finds the tool
        calls that the assistant's newest turns end with, the newest first; asked where replies are
        too short to tell."""
        self._turns = turns
        self._said = said = _all_said(turns)
        asked = len(said)
        while asked and said[asked - 1].is_assistant:
            asked -= 1  # the beginning of a reply, put into the model's mouth
        self._asked = asked
        self._chain = _Chain(said, asked)
        self._replies = [turn for turn in said[:asked] if turn.is_assistant][-MOST_CALLED - 1 :]
        self._called = _Called(called, last=len(self._replies) - 1 + len(said) - asked)
        runs = tuple(_runs(self._replies, self._called))
        by_call = tuple(run for run in runs if run.startswith(_BY_CALL))
        self._runs = tuple(run for run in runs if run not in by_call) if by_call else runs
        self._calls = calls + by_call
        self._sentences = tuple(_early_sentences(turns, len(said)))

    def links(
        self,
        *,
        reply: ChatTurn | None,
        is_retry: bool,
        is_stream: bool = False,
        kept: str = "",
        after: str = "",
        called: str = "",
    ) -> ChainLinks:
        """The traces with what came back; None: nothing did. `is_retry`: the client's library says
        that it tries again. The others are as ChainLinks has them."""
        said, asked, chain = self._said, self._asked, self._chain
        if not asked:
            return ChainLinks(is_stream=is_stream, kept=kept, after=after)
        answer = None if reply is None else _said(reply.text)
        is_complete = asked == len(said)
        begun = "" if is_complete else "".join([turn.text for turn in said[asked:]])
        return ChainLinks(
            head=chain.head,
            reply=chain.with_reply(begun, answer),
            run=_run([*self._replies, answer], len(self._replies), self._called)
            if answer and is_complete
            else "",
            summary=_summary_fingerprint(self._turns, said[asked - 1], answer)
            if answer and asked > 1
            else "",
            kept=kept,
            called=called,
            is_retry=is_retry,
            is_stream=is_stream,
            after=after,
            prefixes=tuple(chain.prefixes[::-1]),
            replies=tuple(chain.replies[::-1]),
            runs=self._runs,
            sentences=self._sentences,
            calls=self._calls,
        )


def links_of(turns: Sequence[ChatTurn], *, reply: ChatTurn | None, is_retry: bool) -> ChainLinks:
    """The traces of a request (`turns`, in order) and of what came back, as ChatTraces has them."""
    return ChatTraces(turns).links(reply=reply, is_retry=is_retry)


def fingerprints_of(links: ChainLinks, generation: int) -> tuple[str, ...]:
    """The fingerprints that the call leaves as that generation of its conversation; at most five.

    The reply tells apart chats that begin alike; later on a conversation's turns do. Only what has
    gone on can be summed up.
    """
    kept = links.kept or links.after
    if links.after:
        # Its turns are a fragment, and begin no other request.
        return (kept,)
    if generation == 1 or not links.prefixes:
        # Later on the turns tell more than the id of a call.
        called = links.called if generation == 1 else ""
        return tuple(filter(None, (links.head, links.reply, links.run, kept, called)))
    return tuple(filter(None, (links.head, links.run, links.summary, kept)))


class _Said(NamedTuple):
    """A turn, its text trimmed and without reasoning, which clients drop.

    `framed` is what is hashed of it: made once, for most turns are part of several hashes.
    """

    text: str
    framed: bytes
    is_assistant: bool


def _all_said(turns: Iterable[ChatTurn]) -> list[_Said]:
    """All turns but the system's. One loop, without a call for each: every message of every
    request comes through here."""
    found: list[_Said] = []
    for role, text in turns:
        who = _speaker(role)
        if who is None:
            continue
        name, is_assistant = who
        text = text.strip()
        # Reasoning comes first; where the template wrote its opening tag, only the closing one is
        # there to see.
        if is_assistant and (text[:1] in _MAY_REASON or "</think" in text):
            text = strip_reasoning(text).text
        body = text.encode("utf-8", "surrogatepass")
        framed = b"%b\0%d\0%b" % (name, len(body), body)
        # As `_Said(…)` makes it, at a third of the time.
        found.append(tuple.__new__(_Said, (text, framed, is_assistant)))
    return found


_MAY_REASON = ("<", "[", "◁")


# The words are few, but whose they are is for callers to say.
@lru_cache(maxsize=64)
def _speaker(role: str) -> tuple[bytes, bool] | None:
    """The name that a role is hashed by, and whether it is the assistant's; None: the system's."""
    low = role.lower()
    if low in _SYSTEM:
        return None
    is_assistant = low in _ASSISTANT
    return ("assistant" if is_assistant else low).encode("utf-8", "surrogatepass"), is_assistant


def _said(text: str) -> _Said:
    """A turn of the assistant's."""
    return _all_said([ChatTurn("assistant", text)])[0]


def _reply_of(text: str) -> _Said:
    """The same, of what is known to hold no reasoning. With role, length and text: no two lists of
    turns give the same bytes."""
    body = text.encode("utf-8", "surrogatepass")
    return _Said(text, b"assistant\0%d\0%b" % (len(body), body), True)


_NOTHING = _reply_of("")


class _Chain:
    """One pass over the turns, which leaves a hash wherever the assistant spoke next."""

    def __init__(self, said: Sequence[_Said], asked: int) -> None:
        self.prefixes: list[str] = []
        self.replies: list[str] = []
        speaks = [turn.is_assistant for turn in said]
        spoken = [n for n, is_own in enumerate(speaks[:-1]) if speaks[n + 1] and not is_own]
        newest = spoken[-_MOST_PREFIXES:]
        kept = set(newest)
        # What came before the oldest beginning that counts is hashed in one go.
        older = min(newest[0] if newest else 0, asked)
        chars, has_history, is_followed = 0, False, False
        digest = _digest()
        if older:
            chars = sum([len(turn.text) for turn in said[:older]])
            has_history = any(speaks[:older])
            _add(digest, b"".join([turn.framed for turn in said[:older]]))
        for number, (text, framed, is_assistant) in enumerate(said[older:asked], older):
            chars += len(text)
            if len(framed) < _HELD_BYTES:
                digest.update(framed)
            else:
                _add(digest, framed)
            if is_followed:
                self.replies.append("f" + digest.hexdigest())
            is_followed = number in kept
            if is_followed:
                # After the last turn of all stands a beginning that a client puts into the
                # model's mouth, often the same in every chat: it needs the very words of a reply.
                is_telling = number + 1 < asked and (has_history or chars >= _TELLING_CHARS)
                self.prefixes.append("h" + digest.hexdigest() if is_telling else "")
            has_history = has_history or is_assistant
        if is_followed:  # by words that the client has put there
            self.replies.append(_followed(digest, said[asked]))
        self._end = digest
        self.head = "h" + digest.hexdigest()

    def with_reply(self, begun: str, answer: _Said | None) -> str:
        if answer is None:
            return ""
        return _followed(self._end, _reply_of(begun + answer.text) if begun else answer)


# A hash of nothing yet; each begins as a copy of it.
_digest = blake2b(digest_size=_DIGEST_BYTES, person=CHAIN_VERSION.encode()).copy


def _followed(digest: blake2b, turn: _Said) -> str:
    longer = digest.copy()
    _add(longer, turn.framed)
    return "f" + longer.hexdigest()


def _add(digest: blake2b, data: bytes) -> None:
    """Add bytes without letting go of the interpreter, which hashlib does for 2 KiB: whoever asks
    here is an event loop, and a thread that takes its place keeps it for longer than a hash."""
    if len(data) < _HELD_BYTES:
        digest.update(data)
        return
    view = memoryview(data)
    for at in range(0, len(data), _HELD_BYTES - 1):
        digest.update(view[at : at + _HELD_BYTES - 1])


_HELD_BYTES = 2_048


class _Called:
    """The tool calls that replies end with, found when the first one is asked for."""

    __slots__ = ("_find", "_found", "_last")

    def __init__(self, find: Callable[[], Sequence[ToolCalled]], *, last: int) -> None:
        """find: gives those of the newest replies, the newest first. last: the number of that."""
        self._find, self._last = find, last
        self._found: Sequence[ToolCalled] | None = None

    def of(self, number: int) -> ToolCalled:
        """The tool call of one of the replies, which are numbered from 0, in order."""
        if self._found is None:
            self._found = self._find()
        at = self._last - number
        return self._found[at] if at < len(self._found) else NO_CALL


def _runs(replies: Sequence[_Said], called: _Called) -> Iterator[str]:
    """Of each of the newest replies its run, newest first."""
    newest = len(replies) - 1
    for at in range(newest, max(newest - _MOST_RUNS, -1), -1):
        run = _run(replies, at, called)
        if run:
            yield run


def _run(replies: Sequence[_Said], at: int, called: _Called) -> str:
    """A reply and the one before it; nothing stands before the first one. Where both say too
    little: all replies since the newest tool call whose id tells. "": where none of that is."""
    before = replies[at - 1] if at else _NOTHING
    reply = replies[at]
    if len(before.text) + len(reply.text) >= _TELLING_RUN_CHARS:
        digest = _digest()
        _add(digest, before.framed + reply.framed)
        return "r" + digest.hexdigest()
    for since in range(at - 1, max(at - 1 - _MOST_RUNS, -1), -1):
        fingerprint = call_fingerprint(*called.of(since))
        if fingerprint:
            digest = _digest()
            digest.update(fingerprint.encode())
            _add(digest, b"".join([each.framed for each in replies[since + 1 : at + 1]]))
            return _BY_CALL + digest.hexdigest()
    return ""


def _summary_fingerprint(turns: Sequence[ChatTurn], asking: _Said, answer: _Said) -> str:
    if len(answer.text) < _SUMMARY_CHARS or not _asks_for_summary(asking.text):
        return ""
    for sentence in _longest(_sentences(answer.text), _EARLY_TURNS):
        if not any(sentence in turn.text for turn in turns):
            return _sentence_fingerprint(sentence)
    return ""


def _asks_for_summary(text: str) -> bool:
    if len(text) > 2 * _ASKED_CHARS:
        text = text[:_ASKED_CHARS] + text[-_ASKED_CHARS:]
    words = text.lower()
    # One by one: a pattern of them takes four times as long.
    is_sum = bool([word for word in _SUMMARY_WORDS if word in words])
    return is_sum and any(word in words for word in _HISTORY_WORDS)


def _early_sentences(turns: Sequence[ChatTurn], count: int) -> Iterable[str]:
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
    return tuple(map(_sentence_fingerprint, _longest(found, _SENTENCES_PER_TURN)))


def _longest(sentences: Iterable[str], count: int) -> list[str]:
    """Of some dozens: there a heap costs five times as much as sorting them."""
    return sorted(sentences, key=len, reverse=True)[:count]


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
