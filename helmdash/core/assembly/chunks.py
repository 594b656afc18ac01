"""Chunks: retrieved pieces of text that compete for the room a prompt has left.

Source: "Context Manager" (docs/sources.md; its selection and strict provenance). Everything is
counted in the UTF-8 bytes of the text that is really sent: blank lines, wrapper and citations
included. Nothing here depends on the order in which the candidates came.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from helmdash.answers import OPTIONAL, answer
from helmdash.core.text.tokens import Estimator, utf8_bytes

OPENING: Final = "<context>\n"
CLOSING: Final = "\n</context>"
SEPARATOR: Final = "\n\n"  # between chunks, and between the parts of a prompt
WRAPPER_BYTES: Final = len(OPENING) + len(CLOSING)

# Characters that show nothing: controls, soft hyphen, zero-width ones, marks of direction, word
# joiners, variation selectors, the byte order mark. A tag written with them still reads as the tag.
_UNSEEN: Final = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069"
    "\ufe00-\ufe0f\ufeff"
)
_GAP: Final = f"[\\s{_UNSEEN}]*+"
# The start of an opening or closing tag of ours. Its ">" is not asked for: it may stand in the
# next chunk, as "context>" may after a chunk that ends in "</". `<contextual>` and
# `<context:scan>` are other tags. The gaps are possessive, so that no text takes quadratic time.
_TAG: Final = re.compile(
    f"<(?={_GAP}/?{_GAP}(?:" + f"[{_UNSEEN}]*+".join("context") + "(?![\\w:.-])|\\Z))",
    re.IGNORECASE,
)
# What would end a line or turn its direction.
_NO_LINE: Final = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


class SelectionMode(StrEnum):
    """Which chunks may be chosen at all."""

    DEFAULT = "default"
    STRICT_PROVENANCE = "strict_provenance"  # only those that say where they stand


class Reason(StrEnum):
    """Why a chunk was left out."""

    OVER_BUDGET = "over_budget"
    MISSING_PROVENANCE = "missing_provenance"
    EMPTY_TEXT = "empty_text"


class ChunkProblem(ValueError):
    """A candidate cannot be used: `field` names it (`chunks.3.score`), `message` says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class DuplicateChunk(ChunkProblem):
    """Two candidates have one id, so a manifest could not tell them apart."""


@answer("ProvenanceOut")
@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What is known of where a chunk stands.

    Offsets count characters of its source; page 0 is a page. None: not told.
    """

    page: Annotated[int | None, OPTIONAL] = None
    offset_start: Annotated[int | None, OPTIONAL] = None
    offset_end: Annotated[int | None, OPTIONAL] = None
    block_name: Annotated[str | None, OPTIONAL] = None

    @property
    def is_enough(self) -> bool:
        """Whether somebody could look it up: a page, or both offsets, or a block's name."""
        has_offsets = self.offset_start is not None and self.offset_end is not None
        return self.page is not None or has_offsets or bool((self.block_name or "").strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A candidate. A higher score is more relevant; None counts as 0."""

    id: str
    text: str
    source: str
    score: float | None = 0.0
    provenance: Provenance | None = None

    @property
    def weight(self) -> float:
        """The score as it is sorted by: None counts as 0, and -0.0 as 0.0."""
        return float(self.score or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A chunk as it stands in the prompt: escaped, with its citation line in strict mode."""

    chunk: Chunk
    text: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A chunk that was not chosen. `over_by`: tokens over the budget, had it been, at its turn;
    None where it was not its size that left it out."""

    block: Block
    reason: Reason
    over_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSelection:
    """The chosen and the others, each by score (highest first), then id by code point."""

    included: tuple[Block, ...]
    excluded: tuple[LeftOut, ...]
    total_tokens: int  # of `text` by itself

    @property
    def text(self) -> str:
        """The wrapper with the chosen chunks; empty when none was."""
        return context_text(self.included)


def select_chunks(
    chunks: Sequence[Chunk],
    budget_tokens: int,
    estimator: Estimator,
    mode: SelectionMode = SelectionMode.DEFAULT,
    *,
    outside_bytes: int = 0,
) -> ChunkSelection:
    """Choose chunks, best first, as long as the text with them stays within the budget.

    outside_bytes: everything else that is sent, with the separators the wrapper brings. One that
    does not fit is skipped; smaller ones after it may still fit. A chunk without text is left
    out. Raises ChunkProblem for an empty id or a score that is no finite number, DuplicateChunk.
    """
    check_chunks(chunks)
    room = estimator.bytes_within(budget_tokens)
    used = outside_bytes + WRAPPER_BYTES
    included: list[Block] = []
    excluded: list[LeftOut] = []
    for chunk in sorted(chunks, key=lambda chunk: (-chunk.weight, chunk.id)):
        block = to_block(chunk, mode)
        with_it = used + block.n_bytes + (len(SEPARATOR) if included else 0)
        reason = _reason_against(chunk, mode)
        if reason is not None:
            excluded.append(LeftOut(block=block, reason=reason))
        elif with_it > room:
            over_by = estimator.tokens_of_bytes(with_it) - budget_tokens
            excluded.append(LeftOut(block=block, reason=Reason.OVER_BUDGET, over_by=over_by))
        else:
            included.append(block)
            used = with_it
    return ChunkSelection(
        included=tuple(included),
        excluded=tuple(excluded),
        total_tokens=estimator.tokens_of_bytes(used - outside_bytes) if included else 0,
    )


def check_chunks(chunks: Sequence[Chunk]) -> None:
    """Raise ChunkProblem for the first candidate that cannot be used; its number is its place."""
    first: dict[str, int] = {}
    for number, chunk in enumerate(chunks):
        if not chunk.id:
            raise ChunkProblem(f"chunks.{number}.id", "must not be empty")
        if not _is_finite(chunk.score):
            raise ChunkProblem(f"chunks.{number}.score", "must be a finite number")
        earlier = first.setdefault(chunk.id, number)
        if earlier != number:
            raise DuplicateChunk(
                f"chunks.{number}.id",
                f"is the id of chunks.{earlier}, too ({_shown(chunk.id)}); give each its own",
            )


def to_block(chunk: Chunk, mode: SelectionMode) -> Block:
    """A chunk as it is sent: in strict mode under a line that cites it, else its text alone."""
    text = escape(clean(chunk.text))
    if mode is SelectionMode.STRICT_PROVENANCE:
        text = f"{citation(chunk)}\n{text}"
    return Block(chunk=chunk, text=text, n_bytes=utf8_bytes(text))


def context_text(blocks: Sequence[Block]) -> str:
    """The blocks in their wrapper, a blank line between them; empty for none."""
    if not blocks:
        return ""
    return f"{OPENING}{SEPARATOR.join(block.text for block in blocks)}{CLOSING}"


def citation(chunk: Chunk) -> str:
    """One line that says what a chunk is: `[id | source p. 3, chars 10 to 90, block Intro]`.

    Control characters and runs of white space in a name become one space each.
    """
    place = ", ".join(_places(chunk.provenance)) if chunk.provenance else ""
    told = " ".join(part for part in (_one_line(chunk.source), place) if part)
    name = _one_line(chunk.id)
    return escape(f"[{name} | {told}]" if told else f"[{name}]")


def escape(text: str) -> str:
    """Write `&lt;` for the `<` of every `<context` and `</context` tag, so none ends the wrapper.

    In any case, with blanks or invisible characters inside, with or without its `>`; also of a
    `<` or `</` at the very end, which the next chunk could make a tag. Nothing else is changed:
    texts of code and markup stay as they are.

    >>> escape("a < b </Context > <context:scan/>")
    'a < b &lt;/Context > <context:scan/>'
    """
    return _TAG.sub("&lt;", text) if "<" in text else text


def clean(text: str) -> str:
    """The text with U+FFFD for lone halves of surrogate pairs, which no wire takes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _reason_against(chunk: Chunk, mode: SelectionMode) -> Reason | None:
    """What speaks against a chunk, whatever the room."""
    if not chunk.text.strip():
        return Reason.EMPTY_TEXT
    known = chunk.provenance is not None and chunk.provenance.is_enough
    if mode is SelectionMode.STRICT_PROVENANCE and not known:
        return Reason.MISSING_PROVENANCE
    return None


def _places(provenance: Provenance) -> Iterator[str]:
    if provenance.page is not None:
        yield f"p. {provenance.page}"
    if provenance.offset_start is not None and provenance.offset_end is not None:
        yield f"chars {provenance.offset_start} to {provenance.offset_end}"
    block = _one_line(provenance.block_name or "")
    if block:
        yield f"block {block}"


def _one_line(text: str) -> str:
    return _NO_LINE.sub(" ", clean(text)).strip()


def _is_finite(score: float | None) -> bool:
    try:
        return score is None or math.isfinite(score)
    except OverflowError:  # a whole number beyond every float
        return False


def _shown(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:80]}…"
