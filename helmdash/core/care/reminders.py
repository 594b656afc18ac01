"""Reminders and the re-entry package: what an agent finds at the start of a new round.

Source: the six headings of "Context Health Monitor" (docs/sources.md). The package is plain text of
a bounded size, the same for the same notes. What an agent wrote under the headings, in whatever
spelling, is merged under them; nothing of a note is left out but for want of room, and then it
says so. Finding the headings is `note_headings`' work, sharing the room is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.care.headings import (
    HEADINGS,
    NO_ROOM,
    NOTHING_NOTED,
    UNTITLED,
    begins_with_heading,
    find_heading,
    sections,
)

__all__ = [
    "HEADINGS",
    "PACKAGE_FLOOR_BYTES",
    "Note",
    "Package",
    "build_package",
    "package_bytes",
    "template",
]

# Stored with every clear. Another package out of the same notes is a new version.
PACKAGE_VERSION = "package-1"

# The headings alone: below this many bytes not even they fit, and the text is simply cut.
PACKAGE_FLOOR_BYTES = sum(len(heading) + len("## ") + 1 for heading in HEADINGS) - 1

# With its headings empty a package takes some 300 bytes; 600 leave as much again to be told.
_MIN_PACKAGE_BYTES = 600
# A fifth of the window for what is carried: enough for a handover, and far below caution.
_SHARE_OF_INPUT = 5
# Shorter than this a piece of a note says less than that it was left out.
_MIN_PIECE_BYTES = 80
# Room for the last line's own words and two six-digit numbers.
_TAIL_BYTES = 64

_DRAFTED = "Drafted by HelmDash: "
_REMINDERS = "Reminders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One reminder: `kind` is "note", or "re_entry" for a draft of the package."""

    id: str
    kind: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The text a round starts with, and the ids of the notes that are not in it whole."""

    text: str
    left_out: tuple[str, ...]


def template() -> str:
    """Give the six headings, empty, in the form `build_package` reads and writes."""
    return "\n".join(f"## {heading}" for heading in HEADINGS)


def package_bytes(budget: EffectiveBudget) -> int:
    """Give the most bytes a package may take with this budget: a fifth of the longest prompt, by
    the row's own estimator, and at least 600 bytes, so that a tiny window still gets a handover."""
    share = budget.estimator.bytes_within(budget.most_prompt_tokens // _SHARE_OF_INPUT)
    return max(share, _MIN_PACKAGE_BYTES)


def build_package(
    notes: Iterable[Note],
    *,
    max_bytes: int,
    round_number: int,
    draft: Mapping[str, str] | None = None,
) -> Package:
    """Write the package of the round that starts, at most `max_bytes` of UTF-8.

    `notes` come in their order of position. `draft` gives facts per heading that HelmDash found
    itself; they follow what the notes say. When room is short, re-entry notes are served first,
    then the other notes from the newest (last) back, then the draft, and within a kind what is
    long is shortened before what is short. All six headings stay in, down to
    PACKAGE_FLOOR_BYTES; below that the text is cut. Never raises.
    """
    kept = [Note(id=note.id, kind=note.kind, content=_clean(note.content)) for note in notes]
    pieces = _pieces(kept, draft or {})
    title = f"# Round {round_number}: the context was cleared; this is the re-entry package"
    granted, tail = _share(pieces, title=title, max_bytes=max_bytes)
    text = _layout(title, pieces, granted=granted, tail=tail)
    if len(text.encode()) > max_bytes:
        return Package(text=_bare(title, max_bytes), left_out=_with_content(kept))
    cut = {p.note_id for p, bytes_ in zip(pieces, granted, strict=True) if bytes_ < p.need}
    text = _name_re_entry(text, kept, cut=cut, max_bytes=max_bytes)
    return Package(text=text, left_out=tuple(note.id for note in kept if note.id in cut))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What one note (or the draft) has to say under one heading; "" heads the plain notes."""

    heading: str
    text: str
    note_id: str | None  # None: the draft's
    rank: int  # who is served first: 0 re-entry, 1 notes, 2 draft
    need: int  # bytes, with the line break before it


def _pieces(notes: Sequence[Note], draft: Mapping[str, str]) -> list[_Piece]:
    found = []
    for note in notes:
        if _is_package(note):
            parts = sections(note.content)
            found += [_piece(heading, text, note.id, rank=0) for heading, text in parts.items()]
        elif note.content.strip():
            listed = f"- [{note.id}] " + note.content.strip().replace("\n", "\n  ")
            found.append(_piece("", listed, note.id, rank=1))
    for title, text in draft.items():
        if words := _clean(text).strip():
            heading = find_heading(title) or UNTITLED
            found.append(_piece(heading, _DRAFTED + words, None, rank=2))
    return found


def _is_package(note: Note) -> bool:
    """An agent that writes under the headings means the package, whatever it calls its note."""
    return note.kind == "re_entry" or begins_with_heading(note.content)


def _piece(heading: str, text: str, note_id: str | None, *, rank: int) -> _Piece:
    # A "#" at the start of a line would read as a heading of the package itself.
    text = "\n".join(f"  {line}" if line.startswith("#") else line for line in text.split("\n"))
    need = len(text.encode()) + 1
    return _Piece(heading=heading, text=text, note_id=note_id, rank=rank, need=need)


def _share(pieces: Sequence[_Piece], *, title: str, max_bytes: int) -> tuple[list[int], bool]:
    """Give each piece its bytes, and whether a last line must tell of pieces left out."""
    needs = [piece.need for piece in pieces]
    if _fixed_bytes(title, pieces, needs) + sum(needs) <= max_bytes:
        return needs, False
    order = sorted(range(len(pieces)), key=lambda at: _turn(pieces, at))
    admitted = _admit(pieces, order, room=max_bytes - _worst_bytes(title) - _TAIL_BYTES)
    granted = [0] * len(pieces)
    for at in admitted:
        granted[at] = min(pieces[at].need, _MIN_PIECE_BYTES)
    room = max_bytes - _TAIL_BYTES - _fixed_bytes(title, pieces, granted) - sum(granted)
    for rank in (0, 1, 2):
        level = [at for at in admitted if pieces[at].rank == rank]
        room -= _fill(pieces, level, granted, room=room)
    return granted, True


def _turn(pieces: Sequence[_Piece], at: int) -> tuple[int, int]:
    """Order for room: re-entry and the draft as written, plain notes from the newest back."""
    rank = pieces[at].rank
    return rank, -at if rank == 1 else at


def _admit(pieces: Sequence[_Piece], order: Sequence[int], *, room: int) -> list[int]:
    """Choose in turn who gets at least a useful piece; a short one may still fit after a long."""
    admitted = []
    for at in order:
        least = min(pieces[at].need, _MIN_PIECE_BYTES)
        if least <= room:
            room -= least
            admitted.append(at)
    return admitted


def _fill(pieces: Sequence[_Piece], level: Sequence[int], granted: list[int], *, room: int) -> int:
    """Raise the grants of one kind evenly until they are whole or the room is used up."""
    used = 0
    waiting = sorted(level, key=lambda at: (pieces[at].need, at))
    pool = room + sum(granted[at] for at in waiting)
    for served, at in enumerate(waiting):
        share = max(pool // (len(waiting) - served), granted[at])
        grant = min(pieces[at].need, share)
        used += grant - granted[at]
        pool -= grant
        granted[at] = grant
    return used


def _worst_bytes(title: str) -> int:
    """Count the frame with every heading empty and the plain notes' heading in it."""
    longest = max(len(NOTHING_NOTED), len(NO_ROOM)) + 1
    return (
        len(title.encode())
        + sum(len(h) + len("\n\n## ") for h in (*HEADINGS, _REMINDERS))
        + (longest * len(HEADINGS))
    )


def _fixed_bytes(title: str, pieces: Sequence[_Piece], granted: Sequence[int]) -> int:
    """Count what stands around the pieces that are granted something."""
    nothing = [0] * len(pieces)
    frame = len(_layout(title, pieces, granted=nothing, tail=False).encode())
    served = {p.heading for p, bytes_ in zip(pieces, granted, strict=True) if bytes_}
    asked = {p.heading for p in pieces}
    saved = sum(len(NO_ROOM if h in asked else NOTHING_NOTED) + 1 for h in HEADINGS if h in served)
    return frame - saved


def _layout(title: str, pieces: Sequence[_Piece], *, granted: Sequence[int], tail: bool) -> str:
    parts = [title]
    headings = [*HEADINGS, ""] if any(p.heading == "" for p in pieces) else list(HEADINGS)
    for heading in headings:
        mine = [
            (p, bytes_) for p, bytes_ in zip(pieces, granted, strict=True) if p.heading == heading
        ]
        said = [_shortened(p.text, bytes_ - 1) for p, bytes_ in mine if bytes_]
        if heading and not said:
            said = [NO_ROOM if mine else NOTHING_NOTED]
        parts.append("\n".join([f"\n## {heading or _REMINDERS}", *said]))
    missing = sum(p.need - 1 for p, bytes_ in zip(pieces, granted, strict=True) if not bytes_)
    if tail and missing:
        count = sum(1 for bytes_ in granted if not bytes_)
        parts.append(f"\n({count} left out: {missing} bytes, no room.)")
    return "\n".join(parts)


def _shortened(text: str, limit: int) -> str:
    """Cut a text to `limit` bytes between characters; the cut says how many bytes it took."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    # The number of bytes left out never has more digits than the whole.
    room = max(limit - len(_cut_mark(len(raw))), 0)
    head = raw[:room].decode("utf-8", "ignore")
    return (head + _cut_mark(len(raw) - len(head.encode())))[: max(limit, 0)]


def _cut_mark(left_out: int) -> str:
    return f" [... {left_out} bytes left out]"


def _bare(title: str, max_bytes: int) -> str:
    """Give what fits of a package that has no room for notes: title and headings, headings, cut."""
    for text in (f"{title}\n{template()}", template()):
        if len(text.encode()) <= max_bytes:
            return text
    return template()[: max(max_bytes, 0)]


def _name_re_entry(
    text: str, notes: Sequence[Note], *, cut: set[str | None], max_bytes: int
) -> str:
    """Say last which reminders were taken apart, so that update_reminder can name them, if the line
    fits."""
    ids = [note.id for note in notes if _is_package(note)]
    line = f"\n\n(From reminders: {', '.join(ids)})"
    if not ids or cut or len(text.encode()) + len(line.encode()) > max_bytes:
        return text
    return text + line


def _with_content(notes: Sequence[Note]) -> tuple[str, ...]:
    return tuple(note.id for note in notes if note.content.strip())


def _clean(text: str) -> str:
    """Make a text that UTF-8 can hold (a JSON string may carry half a character), with one kind of
    line break."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
