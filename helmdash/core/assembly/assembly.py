"""Assembly: a prompt put together within a budget of tokens, with its manifest.

Source: "Context Manager" (docs/sources.md), with exact sums and every blank line counted.
The layout is system, instructions, `<context>` with the chosen chunks, user query; empty parts are
left out and one blank line stands between the others. The fixed parts are never cut: when they
alone are too big, OverBudget is raised before anything could be sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import HIDDEN, Doc
from helmdash.core.assembly.chunks import (
    SEPARATOR,
    WRAPPER_BYTES,
    Block,
    Chunk,
    ChunkSelection,
    LeftOut,
    SelectionMode,
    clean,
    select_chunks,
)
from helmdash.core.assembly.manifest import AssemblyManifest, ChunkEntry
from helmdash.core.text.tokens import Estimator, utf8_bytes


class NoRoom(ValueError):
    """The reserve takes the whole window, so no prompt could fit; `reserve_tokens` is to blame."""


class OverBudget(Exception):
    """Even without any chunk the prompt is over the budget. Nothing was sent.

    `manifest` has the breakdown; its hash is that of the fixed parts, and no chunk is included.
    """

    code = "over_budget"

    def __init__(self, manifest: AssemblyManifest) -> None:
        self.estimated_tokens = manifest.total_tokens
        self.budget_tokens = manifest.budget_tokens
        self.over_by = manifest.total_tokens - manifest.budget_tokens
        self.manifest = manifest
        self.largest, tokens = _largest_part(manifest)
        super().__init__(
            f"Without any chunk the prompt is estimated at {self.estimated_tokens} tokens; the "
            f"budget is {self.budget_tokens}, so it is {self.over_by} over. Its largest part is "
            f"{self.largest} with {tokens} tokens."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A prompt that fits, and its receipt.

    `prompt` is the whole text. Chat clients send `system` and `user` as two messages instead: the
    same text but for the blank line between them.
    """

    prompt: str
    manifest: AssemblyManifest
    system: Annotated[str, HIDDEN]
    user: Annotated[str, Doc("The prompt without its system part, for clients that send messages.")]


def prompt_budget(*, limit_tokens: int, reserve_tokens: int) -> int:
    """The tokens a prompt may have: the window less what the reply needs. Never raised to a floor.

    Raises NoRoom when nothing is left.

    >>> prompt_budget(limit_tokens=32_768, reserve_tokens=2_000)
    30768
    """
    left = limit_tokens - reserve_tokens
    if left < 1:
        raise NoRoom(
            f"reserve_tokens ({reserve_tokens}) leaves no room for a prompt in a window of "
            f"{limit_tokens} tokens"
        )
    return left


def assemble(
    *,
    system: str = "",
    instructions: str = "",
    user_query: str,
    chunks: Sequence[Chunk] = (),
    mode: SelectionMode = SelectionMode.DEFAULT,
    budget_tokens: int,
    estimator: Estimator,
) -> Assembled:
    """Put a prompt together that is estimated at no more than `budget_tokens`.

    The same input gives the same bytes, in whatever order the chunks come. Raises OverBudget when
    the fixed parts alone are too big, ChunkProblem for a candidate that cannot be used (see
    `select_chunks`), ValueError for a budget below 1.
    """
    if budget_tokens < 1:
        raise ValueError(f"budget_tokens must be at least 1, not {budget_tokens}")
    fixed = (clean(system), clean(instructions), clean(user_query))
    fixed_bytes = utf8_bytes(_joined(*fixed))
    selection = select_chunks(
        chunks,
        budget_tokens,
        estimator,
        mode,
        outside_bytes=fixed_bytes + (len(SEPARATOR) if fixed_bytes else 0),
    )
    user = _joined(fixed[1], selection.text, fixed[2])
    prompt = _joined(fixed[0], user)
    manifest = _manifest(fixed, selection, prompt, budget_tokens, estimator)
    if not manifest.within_budget:
        raise OverBudget(manifest)
    return Assembled(prompt=prompt, manifest=manifest, system=fixed[0], user=user)


class _Tally:
    """Counts bytes as they are laid down, and what each of them adds to the estimate."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._bytes = 0
        self.tokens = 0

    def add(self, n_bytes: int) -> int:
        """Lay down some more bytes; gives the tokens that the estimate grows by."""
        before = self.tokens
        self._bytes += n_bytes
        self.tokens = self._estimator.tokens_of_bytes(self._bytes)
        return self.tokens - before

    def add_part(self, n_bytes: int) -> int:
        """Lay down a part with the blank line before it, which the first one has not."""
        return self.add(n_bytes + len(SEPARATOR) if self._bytes else n_bytes) if n_bytes else 0


def _manifest(
    fixed: tuple[str, str, str],
    selection: ChunkSelection,
    prompt: str,
    budget_tokens: int,
    estimator: Estimator,
) -> AssemblyManifest:
    tally = _Tally(estimator)
    system, instructions, user_query = (tally.add_part(utf8_bytes(part)) for part in fixed)
    without_context = tally.tokens
    wrapper = tally.add_part(WRAPPER_BYTES) if selection.included else 0
    included = [
        _included(block, tally.add(block.n_bytes + (len(SEPARATOR) if number else 0)))
        for number, block in enumerate(selection.included)
    ]
    return AssemblyManifest(
        prompt_hash=hashlib.sha256(prompt.encode()).hexdigest(),
        system_tokens=system,
        instructions_tokens=instructions,
        user_query_tokens=user_query,
        context_tokens=tally.tokens - without_context,
        wrapper_tokens=wrapper,
        total_tokens=tally.tokens,
        budget_tokens=budget_tokens,
        chunks=(*included, *(_excluded(left, estimator) for left in selection.excluded)),
    )


def _included(block: Block, tokens: int) -> ChunkEntry:
    chunk = block.chunk
    return ChunkEntry(
        id=chunk.id,
        source=chunk.source,
        tokens=tokens,
        score=chunk.weight,
        included=True,
        provenance=chunk.provenance,
    )


def _excluded(left: LeftOut, estimator: Estimator) -> ChunkEntry:
    chunk = left.block.chunk
    return ChunkEntry(
        id=chunk.id,
        source=chunk.source,
        tokens=estimator.tokens_of_bytes(left.block.n_bytes),
        score=chunk.weight,
        included=False,
        reason=left.reason,
        over_by=left.over_by,
        provenance=chunk.provenance,
    )


def _largest_part(manifest: AssemblyManifest) -> tuple[str, int]:
    """The name and tokens of the biggest fixed part; of two alike, the first in the prompt."""
    sizes = {
        "system": manifest.system_tokens,
        "instructions": manifest.instructions_tokens,
        "user_query": manifest.user_query_tokens,
    }
    return max(sizes.items(), key=lambda item: item[1])


def _joined(*parts: str) -> str:
    return SEPARATOR.join(part for part in parts if part)
