"""Assembling a prompt from fixed parts and chunks."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape
from helmdash.core.assembly import chunks as core
from helmdash.core.assembly.chunks import SelectionMode
from helmdash.doors.bodies.fields import STRICT, Count, Positive, TriedConversation, Word255

# A retriever gives dozens, rarely hundreds; ten thousand are assembled in well under a second.
MOST_CHUNKS = 10_000
# Paths and addresses serve as ids and sources; longer ones are texts.
_LONGEST_ID = 512
_LONGEST_SOURCE = 2048


class Provenance(TypedDict, total=False):
    """Where in its source a chunk stands. Strict mode wants a page, both offsets, or a name."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    page: Count | None
    offset_start: Count | None
    offset_end: Count | None
    block_name: Annotated[str, StringConstraints(max_length=_LONGEST_ID)] | None


class ChunkIn(TypedDict, total=False):
    """A candidate for the context."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    id: Required[Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_ID)]]
    text: Required[str]
    source: Required[Annotated[str, StringConstraints(max_length=_LONGEST_SOURCE)]]
    score: Annotated[
        Annotated[float, Field(allow_inf_nan=False)] | None,
        Field(description="Higher is more relevant. Left out: 0."),
    ]
    provenance: Provenance | None


class AssembleIn(TypedDict, total=False):
    """The parts of a prompt. Only chunks may be left out; the others are never cut."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    model: Annotated[
        Word255 | None,
        Field(description="Whose budget counts. Left out: the fallback's."),
    ]
    system: Required[str]
    instructions: str | None
    user_query: Required[str]
    chunks: Required[
        Annotated[
            list[ChunkIn],
            Field(max_length=MOST_CHUNKS, description="In any order; ids are unique."),
        ]
    ]
    mode: Annotated[
        Literal["default", "strict_provenance"] | None,
        Field(
            description="strict_provenance: only chunks that say where they stand, each cited in "
            "a line of its own."
        ),
    ]
    budget_tokens: Annotated[
        Positive | None,
        Field(
            description="Tokens the whole prompt may have; it wins over the model's budget. Left "
            "out: the model's limit less its reserve_tokens."
        ),
    ]
    conversation: TriedConversation


ASSEMBLE = Shape(AssembleIn, also_known=(*ChunkIn.__annotations__, *Provenance.__annotations__))


def to_chunks(given: AssembleIn) -> tuple[core.Chunk, ...]:
    """The candidates as core takes them."""
    return tuple(
        core.Chunk(
            id=chunk["id"],
            text=chunk["text"],
            source=chunk["source"],
            score=chunk.get("score"),
            provenance=_to_provenance(chunk.get("provenance")),
        )
        for chunk in given["chunks"]
    )


def to_mode(given: AssembleIn) -> SelectionMode:
    """The mode; the default one when none is named."""
    return SelectionMode(given.get("mode") or SelectionMode.DEFAULT)


def _to_provenance(given: Provenance | None) -> core.Provenance | None:
    if given is None:
        return None
    return core.Provenance(
        page=given.get("page"),
        offset_start=given.get("offset_start"),
        offset_end=given.get("offset_end"),
        block_name=given.get("block_name"),
    )
