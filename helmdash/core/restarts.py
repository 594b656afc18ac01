"""What of a client's history is sent after a fresh start: rule "restart-1".

A client that knows nothing of a clear goes on sending its whole history. So the gateway replaces
the beginning that a clear has dropped by the re-entry package and the user's pending messages, and
sends all that follows as it is (product.md 5; spec/dominds-and-ollama.md part 3, rule 4).

- A user's message is pending until a final answer follows it: an assistant's message with text and
  without tool calls. In a tool loop that is the message that started it, and any later one.
- A call of a tool is never parted from its result.
- System turns stay, in their order, before the package.
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

RESTART_VERSION = "restart-1"

_DIGEST_BYTES = 16
# Members that a client may change or leave out when it sends an entry again, and that say nothing
# of what was said: where a cache begins, ids made up anew, the model's thoughts. `type` goes with
# them, for a plain text and a list of one text part are the same.
_UNSAID = frozenset(
    {
        "type", "cache_control", "id", "tool_call_id", "tool_use_id", "call_id", "index", "thought",
        "thinking", "reasoning", "reasoning_content", "reasoning_details", "signature",
        "thoughtSignature", "thought_signature",
    }
)  # fmt: skip
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})

# Of the draft: a goal is a few sentences, progress a paragraph. The package bounds the whole.
_GOAL_CHARS = 600
_PROGRESS_CHARS = 600
_ARGUMENT_CHARS = 80
_LATEST_CALLS = 5


class Speaker(StrEnum):
    """Who an entry is from."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One member of the client's list. `calls` are the tools asked for, as name and arguments.

    `results`: how many results of tools it holds. `is_own`: it holds something a user says, and
    not (only) results; in some formats both stand in one entry.
    """

    speaker: Speaker
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    results: int = 0
    is_own: bool = False


class Piece(StrEnum):
    """What stands at one place of the request that is sent."""

    KEPT = "kept"  # an entry of the client's, untouched
    OWN = "own"  # what the user says in an entry, without results of tools
    SAID = "said"  # a text of ours, as a user's message


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One place: an entry by its index, or a text."""

    piece: Piece
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


def end_of(history: Sequence[Entry]) -> int:
    """Where the client's history ends and our texts may follow: as many entries as stand before.

    That is before the beginning of a reply which the client puts into the model's mouth, and
    before calls that still miss results.
    """
    end = len(history)
    while end and history[end - 1].speaker is Speaker.ASSISTANT:
        end -= 1
    return _gap_before(history, end)


def is_gap(history: Sequence[Entry], position: int) -> bool:
    """Whether something may stand after so many entries without parting a call from its result."""
    if not 0 <= position <= len(history):
        return False
    if position < len(history) and history[position].results:
        return False
    results = 0
    for entry in reversed(history[:position]):
        results += entry.results
        if entry.speaker is Speaker.ASSISTANT:
            return results >= len(entry.calls)
    return True


def pending_of(history: Sequence[Entry], end: int) -> tuple[int, ...]:
    """The entries before `end` in which a user says something that no final answer follows."""
    pending: list[int] = []
    for index, entry in enumerate(history[:end]):
        if entry.is_own:
            pending.append(index)
        elif _is_final(entry):
            pending.clear()
    return tuple(pending)


def prompt_of(history: Sequence[Entry]) -> int | None:
    """The entry in which the request ends with a user's own message; None: with something else."""
    end = end_of(history)
    while end and history[end - 1].speaker is Speaker.SYSTEM:
        end -= 1
    if not end or not history[end - 1].is_own or history[end - 1].results:
        return None
    return end - 1


def arrange(
    history: Sequence[Entry],
    beginning: Beginning,
    *,
    guide: str | None = None,
) -> tuple[Step, ...]:
    """The entries that are sent, in order.

    `guide` is for this request only: before the user's own message when the request ends in one,
    else at the end, after the results of tools.
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


def fingerprint(entries: Sequence[object]) -> str:
    """What tells one beginning from another, of the client's JSON entries.

    The same when the client moves a cache marker, makes up ids anew, or drops the model's
    thoughts. System turns count as such only: agents put the date in them.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES, person=RESTART_VERSION.encode())
    for entry in entries:
        digest.update(b"\x01")
        if isinstance(entry, Mapping) and entry.get("role") in ("system", "developer"):
            continue
        for leaf in _leaves(entry):
            body = leaf.encode("utf-8", "surrogatepass")
            digest.update(b"%d\0%b" % (len(body), body))
    return digest.hexdigest()


def facts_of(history: Sequence[Entry]) -> tuple[str, str]:
    """Goal and progress as the history tells them by itself: no model is asked.

    The first thing the user said; the assistant's latest words and the tools it called last.
    """
    goal = next((entry.text for entry in history if entry.is_own and entry.text.strip()), "")
    words = next(
        (
            entry.text
            for entry in reversed(history)
            if entry.speaker is Speaker.ASSISTANT and entry.text.strip()
        ),
        "",
    )
    progress = [clipped(words, _PROGRESS_CHARS)] if words else []
    calls = [call for entry in history for call in entry.calls][-_LATEST_CALLS:]
    if calls:
        told = ", ".join(f"{name}({clipped(told, _ARGUMENT_CHARS)})" for name, told in calls)
        progress.append(f"Tools called last: {told}.")
    return clipped(goal, _GOAL_CHARS), "\n".join(progress)


def clipped(text: str, chars: int) -> str:
    """The text on one line, at most so long; an ellipsis says that some is missing."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def _steps(
    history: Sequence[Entry], beginning: Beginning, said: Mapping[int, Sequence[str]]
) -> Iterator[Step]:
    if beginning.entries:
        for index, entry in enumerate(history[: beginning.entries]):
            if entry.speaker is Speaker.SYSTEM:
                yield Step(piece=Piece.KEPT, index=index)
        if beginning.package:
            yield Step(piece=Piece.SAID, text=beginning.package)
        for index in beginning.carried:
            if index < beginning.entries:
                yield Step(piece=Piece.OWN, index=index)
    for position in range(beginning.entries, len(history) + 1):
        for text in said.get(position, ()):
            yield Step(piece=Piece.SAID, text=text)
        if position < len(history):
            yield Step(piece=Piece.KEPT, index=position)


def _gap_before(history: Sequence[Entry], position: int) -> int:
    while position and not is_gap(history, position):
        position -= 1
    return position


def _is_final(entry: Entry) -> bool:
    return entry.speaker is Speaker.ASSISTANT and not entry.calls and bool(entry.text.strip())


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value.get("type") in _THOUGHTS or value.get("thought") is True:
            return
        for name in sorted(name for name in value if isinstance(name, str)):
            if name not in _UNSAID:
                yield from _leaves(value[name])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if value:
            yield value
    elif value is not None:
        yield repr(value)
