"""What of a client's history is sent after a fresh start: rule "restart-3".

A client that knows nothing of a clear goes on sending its whole history. So the gateway replaces
the beginning that a clear has dropped by the re-entry package and the user's pending messages, and
sends all that follows as it is.

- A user's message is pending until a final answer follows it: an assistant's message with text and
  without tool calls. In a tool loop that is the message that started it, and any later one.
- Agents that only ever call tools never give a final answer. So of what is pending the newest
  message is carried always, the older ones as far as there is room; the draft tells of the others.
  What a client alone has written in the user's name (core.care.wrappers) takes what room is left.
- The draft tells the task in the user's own words, and what was done for it: the latest calls of
  tools with what came of them, so that work goes on where it stopped.
- A call of a tool is never parted from its result.
- The system turns at the beginning stay, before the package, and the newest of the later ones,
  behind what is carried: agents that say one with every turn mean the last one, and Anthropic takes
  one among messages behind a user's turn alone.
- Within a round nothing of the beginning changes from call to call, so that caches of prefixes
  hold; only guidance that is meant for one request comes and goes.

Works on entries: what one member of the client's own list of messages says, in its own order.
Pure; knows no wire format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from helmdash.core.care.wrappers import own_words
from helmdash.core.values import quick_value

RESTART_VERSION = "restart-3"

_DIGEST_BYTES = 16
# What is hashed, and how, is that of restart-2: a clear that was made then still holds.
_DIGEST_PERSON = b"restart-2"
# Of the draft: a goal is a page at most (its message may be one that is not carried), the words of
# an assistant a paragraph. The package bounds the whole.
_GOAL_CHARS = 1_500
_PROGRESS_CHARS = 600
# Of the latest calls what they brought, of older ones that they were made.
_ARGUMENT_CHARS = 160
_OUTCOME_CHARS = 200
_LATEST_CALLS = 12
_OLDER_ARGUMENT_CHARS = 80
# Where nobody says how much room there is.
_DONE_CHARS = 2_000
# Of user messages that are not carried: the newest ones, a sentence or two of each.
_EARLIER_CHARS = 160
_MOST_EARLIER = 8


class Speaker(StrEnum):
    """Who an entry is from; OTHER is a role that only some clients know."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One member of the client's list. `calls` are the tools asked for, as name and arguments.

    `results`: how many results of tools it holds. `is_own`: it holds something a user says, and
    not (only) results; in some formats both stand in one entry. `parts`: the texts that it is made
    of, where there are several; `has_more`: it holds something of the user's besides texts.
    `call_ids`: of the calls, "" where a format has none. `outcomes`: of the results, each by the
    id of its call, with the beginning of what it says. `wants_results_alone`: a program of the
    server's made the calls and waits for their results, beside which nothing may be said.
    """

    speaker: Speaker
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    results: int = 0
    is_own: bool = False
    parts: tuple[str, ...] = ()
    has_more: bool = False
    call_ids: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, str], ...] = ()
    wants_results_alone: bool = False

    @property
    def words(self) -> str:
        """What the user says in it, without what a client has put around that."""
        return own_words(self.parts or (self.text,)) if self.is_own else ""

    @property
    def is_wrapper(self) -> bool:
        """Whether all that it says was written by a client in the user's name."""
        return self.is_own and bool(self.text.strip()) and not (self.has_more or self.words)


class PartKind(StrEnum):
    """What stands at one place of the request that is sent."""

    KEPT = "kept"  # an entry of the client's, untouched
    OWN = "own"  # what the user says in an entry, without results of tools
    SAID = "said"  # a text of ours, as a user's message


@quick_value(frozen=True, slots=True, kw_only=True)
class RequestPart:
    """One place: an entry by its index, or a text."""

    piece: PartKind
    index: int = -1
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The beginning that a package stands for: so many entries, and which of them are carried.

    `inserts`: recorded prompts of the round, each after so many entries of the client's.
    """

    entries: int = 0
    carried: tuple[int, ...] = ()
    package: str = ""
    inserts: tuple[tuple[int, str], ...] = ()


def end_of(history: Sequence[HistoryEntry]) -> int:
    """How many of the client's entries stand before the place where our texts may follow.

    That is before the beginning of a reply which the client puts into the model's mouth, and before
    calls that still miss results.
    """
    end = len(history)
    while end and history[end - 1].speaker is Speaker.ASSISTANT:
        end -= 1
    return _gap_before(history, end)


def is_gap(history: Sequence[HistoryEntry], position: int) -> bool:
    """Whether something may stand after so many entries without parting a call from its result."""
    if not 0 <= position <= len(history):
        return False
    if position < len(history) and history[position].results:
        return False
    results = 0
    for at in reversed(range(position)):
        entry = history[at]
        results += entry.results
        if entry.speaker is Speaker.ASSISTANT:
            return results >= len(entry.calls) and not entry.wants_results_alone
    return True


def pending_of(history: Sequence[HistoryEntry], end: int) -> tuple[int, ...]:
    """The entries before `end` in which a user says something that no final answer follows.

    What a client adds to the results of tools is not the user's, and goes with them.
    """
    pending: list[int] = []
    for index, entry in enumerate(history[:end]):
        if entry.is_own:
            pending.append(index)
        elif _is_final(entry):
            pending.clear()
    return tuple(at for at in pending if not (history[at].results and history[at].is_wrapper))


def carried_of(
    history: Sequence[HistoryEntry], pending: Sequence[int], sizes: Sequence[int], *, room: int
) -> tuple[int, ...]:
    """Which of the pending entries are carried, in their order (`room`: in the unit of `sizes`).

    Of the user's own the newest whatever its size, and the ones before it as long as all together
    fit in; then, of those that a client wrote, the first ones, which tell where it works.
    """
    size_of = dict(zip(pending, sizes, strict=True))
    wrappers = [at for at in pending if history[at].is_wrapper]
    own = [at for at in pending if at not in wrappers]
    if not own:
        return within_room(pending, sizes, room=room)
    kept = list(within_room(own, [size_of[at] for at in own], room=room))
    room -= sum(size_of[at] for at in kept)
    for at in wrappers:
        room -= size_of[at]
        if room < 0:
            break
        kept.append(at)
    return tuple(sorted(kept))


def within_room(pending: Sequence[int], sizes: Sequence[int], *, room: int) -> tuple[int, ...]:
    """The newest whatever its size, and the ones before it as long as all together take at most
    `room` (in the unit of `sizes`)."""
    taken, kept = 0, len(pending)
    for at in reversed(range(len(pending))):
        taken += sizes[at]
        if taken > room and at != len(pending) - 1:
            break
        kept = at
    return tuple(pending[kept:])


def earlier_of(history: Sequence[HistoryEntry], left: Sequence[int]) -> str:
    """What the user said in entries that are not carried, newest last, each clipped to a line;
    empty where nothing is left out."""
    said = [history[index].text for index in left if history[index].text.strip()]
    if not said:
        return ""
    lines = [f"- {clipped(text, _EARLIER_CHARS)}" for text in said[-_MOST_EARLIER:]]
    more = len(said) - len(lines)
    older = f" ({more} older ones are not listed)" if more else ""
    return "\n".join([f"Earlier user messages{older}:", *lines])


def prompt_of(history: Sequence[HistoryEntry]) -> int | None:
    """The index of the entry, where the request ends with a user's own message; None: with
    something else."""
    end = end_of(history)
    while end and history[end - 1].speaker is Speaker.SYSTEM:
        end -= 1
    if not end or not history[end - 1].is_own or history[end - 1].results:
        return None
    return end - 1


def is_standstill(history: Sequence[HistoryEntry], *, since: int, start: int, end: int) -> bool:
    """Whether two rounds of a history have brought nothing new.

    They are the entries from `since` on, the later one from `start` to `end`. New is an answer for
    the user, another text of the user's, or, in the later round, a call of a tool that was not made
    before in the same words.
    """
    if not since <= start <= end <= len(history):
        return False
    if any(map(_is_final, history[since:end])):
        return False
    # The first round began with what was said before the model spoke.
    spoken = (at for at in range(since, end) if history[at].speaker is Speaker.ASSISTANT)
    began = next(spoken, end) if since == 0 else since
    if _said(history, began) != _said(history, end):
        return False
    before = {call for entry in history[:start] for call in entry.calls}
    return all(call in before for entry in history[start:end] for call in entry.calls)


def _said(history: Sequence[HistoryEntry], end: int) -> set[str]:
    """What the user says that waits for an answer; an agent may say the same again and again."""
    waiting = (history[at] for at in pending_of(history, end))
    return {entry.words or entry.text for entry in waiting if not entry.is_wrapper}


def arrange(
    history: Sequence[HistoryEntry],
    beginning: Beginning,
    *,
    guide: str | None = None,
) -> tuple[RequestPart, ...]:
    """The entries that are sent, in order.

    `guide` is for this request only: before the user's own message when the request ends in one,
    else at the end, after the results of tools; None: there is none.
    """
    said: dict[int, list[str]] = {}
    for position, text in beginning.inserts:
        if position >= beginning.entries and is_gap(history, position):
            said.setdefault(position, []).append(text)
    if guide is not None:
        prompt = prompt_of(history)
        place = end_of(history) if prompt is None else _gap_before(history, prompt)
        said.setdefault(max(place, beginning.entries), []).append(guide)
    return tuple(_steps(history, beginning, said))


def fingerprint(history: Sequence[HistoryEntry]) -> str:
    """What tells one beginning from another: who spoke, what user and assistant said, which tools
    were called.

    The same when the client moves a cache marker, makes up ids anew, drops the model's thoughts,
    or prunes old results of tools, as agents do to save room. System turns count as such only:
    agents put the date in them.
    """
    digest = _digest()
    for entry in history:
        _take(digest, entry)
    return digest.hexdigest()


def fingerprints(history: Sequence[HistoryEntry]) -> Iterator[str]:
    """The fingerprint of each beginning: of one entry, of two, and so on."""
    digest = _digest()
    for entry in history:
        _take(digest, entry)
        yield digest.hexdigest()


def facts_of(history: Sequence[HistoryEntry], *, room: int = _DONE_CHARS) -> tuple[str, str]:
    """Goal and progress as the history tells them by itself: no model is asked.

    The task: what the user says first that no answer has followed, and before it what the whole
    conversation began with. The assistant's latest words, and the calls of tools with what came of
    them, newest first: so whoever shortens the text keeps them. `room`: characters for the calls.
    """
    words = next(
        (
            entry.text
            for entry in reversed(history)
            if entry.speaker is Speaker.ASSISTANT and entry.text.strip()
        ),
        "",
    )
    progress = [clipped(words, _PROGRESS_CHARS)] if words else []
    progress += _done(history, room)
    return _goal(history), "\n".join(progress)


def _goal(history: Sequence[HistoryEntry]) -> str:
    own = [entry for entry in history if entry.is_own and entry.text.strip()]
    said = [words for entry in own if (words := entry.words)]
    waiting = [history[at] for at in pending_of(history, len(history))]
    task = next((words for entry in waiting if (words := entry.words)), said[-1] if said else "")
    # Rather a client's words than none: the table may be wrong about them.
    first = said[0] if said else next((entry.text for entry in own), "")
    told = dict.fromkeys(clipped(text, _GOAL_CHARS) for text in (first, task) if text)
    return "\nNow: ".join(told)


def _done(history: Sequence[HistoryEntry], room: int) -> list[str]:
    """Lines that tell which calls of tools were made, newest first, within so many characters."""
    calls = _calls_with_outcomes(history)
    if not calls:
        return []
    lines = [f"Calls of tools so far: {len(calls)}, the newest first:"]
    told = 0
    for name, arguments, outcome in reversed(calls[-_LATEST_CALLS:]):
        line = f"- {name}({clipped(arguments, _ARGUMENT_CHARS)})"
        line += f" -> {clipped(outcome, _OUTCOME_CHARS)}" if outcome.strip() else ""
        room -= len(line) + 1
        if room < 0 and told:
            break
        lines.append(line)
        told += 1
    older = _older(calls[: len(calls) - told], room)
    return [*lines, *older]


def _older(calls: Sequence[tuple[str, str, str]], room: int) -> list[str]:
    """One line of the calls before, without what they brought; the same one once."""
    made = dict.fromkeys(
        f"{name}({clipped(arguments, _OLDER_ARGUMENT_CHARS)})"
        for name, arguments, _ in reversed(calls)
    )
    listed: list[str] = []
    for call in made:
        room -= len(call) + 2
        if room < 0:
            break
        listed.append(call)
    if not made:
        return []
    left = len(made) - len(listed)
    rest = f" ({left} other ones are not listed)" if left else ""
    return [f"Before that: {', '.join(listed) or 'others'}{rest}."]


def _calls_with_outcomes(history: Sequence[HistoryEntry]) -> list[tuple[str, str, str]]:
    """Each call as name, arguments and the beginning of its result ("": none came).

    By ids; where a format or a client has none, results answer the calls before them in order.
    """
    found: list[list[str]] = []
    waiting: list[tuple[str, list[str]]] = []
    for entry in history:
        if entry.speaker is Speaker.ASSISTANT and entry.calls:
            ids = entry.call_ids or ("",) * len(entry.calls)
            waiting = [(name, [*call, ""]) for name, call in zip(ids, entry.calls, strict=False)]
            found += [call for _, call in waiting]
        for call_id, outcome in entry.outcomes:
            at = next((n for n, (name, _) in enumerate(waiting) if name == call_id), 0)
            if waiting:
                waiting.pop(at)[1][2] = outcome
    return [(name, arguments, outcome) for name, arguments, outcome in found]


def clipped(text: str, chars: int) -> str:
    """The text on one line, at most so long; an ellipsis says that some is missing."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def _steps(
    history: Sequence[HistoryEntry], beginning: Beginning, said: Mapping[int, Sequence[str]]
) -> Iterator[RequestPart]:
    if beginning.entries:
        leading, later = _systems(history, beginning.entries)
        for index in leading:
            yield RequestPart(piece=PartKind.KEPT, index=index)
        if beginning.package:
            yield RequestPart(piece=PartKind.SAID, text=beginning.package)
        for index in beginning.carried:
            if index < beginning.entries:
                yield RequestPart(piece=PartKind.OWN, index=index)
        for index in later:
            yield RequestPart(piece=PartKind.KEPT, index=index)
    for position in range(beginning.entries, len(history) + 1):
        for text in said.get(position, ()):
            yield RequestPart(piece=PartKind.SAID, text=text)
        if position < len(history):
            yield RequestPart(piece=PartKind.KEPT, index=position)


def _systems(history: Sequence[HistoryEntry], end: int) -> tuple[Sequence[int], Sequence[int]]:
    """The system turns that stay of a dropped beginning: the leading ones, and the newest other."""
    found = [at for at, entry in enumerate(history[:end]) if entry.speaker is Speaker.SYSTEM]
    leading = sum(1 for number, at in enumerate(found) if number == at)
    return found[:leading], found[leading:][-1:]


def _gap_before(history: Sequence[HistoryEntry], position: int) -> int:
    while position and not is_gap(history, position):
        position -= 1
    return position


def _is_final(entry: HistoryEntry) -> bool:
    return entry.speaker is Speaker.ASSISTANT and not entry.calls and bool(entry.text.strip())


def _digest() -> blake2b:
    return blake2b(digest_size=_DIGEST_BYTES, person=_DIGEST_PERSON)


def _take(digest: blake2b, entry: HistoryEntry) -> None:
    words = [entry.speaker.value]
    if entry.speaker is not Speaker.SYSTEM:
        # The text of an entry that holds nothing but results is theirs.
        text = entry.text if entry.is_own or not entry.results else ""
        words += [f"{entry.results}", text.strip(), *(name for name, _ in entry.calls)]
    digest.update(b"\x01")
    for word in words:
        body = word.encode("utf-8", "surrogatepass")
        digest.update(b"%d\0%b" % (len(body), body))
