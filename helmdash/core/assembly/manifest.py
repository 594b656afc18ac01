"""The manifest: the receipt of an assembled prompt.

Source: "Context Manager" (docs/sources.md; its manifest). The counts are estimates of the very text
that is sent, and they add up exactly:

    system + instructions + user_query + context = total = estimate(prompt)
    wrapper + the included chunks = context

An estimate is rounded up twice, so estimates of parts would add up to more than the estimate of
the whole. Instead the parts are laid down one after the other, and each is charged what the
estimate of all bytes so far grows by: system, instructions, user query, then the wrapper with its
blank line, then the chunks in prompt order, each with the blank line before it. So what the fixed
parts take does not depend on the chunks, and `context_tokens` is what the context adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import OPTIONAL, Doc, answer, member
from helmdash.core.assembly.chunks import Provenance, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """One candidate: what it took, or would take by itself, and why it was left out.

    `reason` None: it is included. `over_by`: tokens; None but for over_budget.
    """

    id: str
    source: str
    tokens: int
    score: float
    included: bool
    reason: Annotated[Reason | None, OPTIONAL] = None
    over_by: Annotated[
        int | None,
        OPTIONAL,
        Doc("With over_budget: tokens too many, had it been included then."),
    ] = None
    provenance: Annotated[Provenance | None, OPTIONAL] = None


@answer("Manifest")
@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyManifest:
    """The receipt. The four parts add up to total_tokens, the estimate of the whole prompt.

    It holds no text of the prompt. wrapper_tokens: the part of context_tokens that is no chunk's.
    """

    prompt_hash: Annotated[str, Doc("SHA-256 of the prompt's UTF-8 bytes, in hex.")]
    system_tokens: int
    instructions_tokens: int
    user_query_tokens: int
    context_tokens: Annotated[int, Doc("wrapper_tokens and the tokens of all included chunks.")]
    wrapper_tokens: int
    total_tokens: int
    budget_tokens: int
    chunks: Annotated[
        tuple[ChunkEntry, ...],
        Doc(
            "Included ones in prompt order, then the others; both by score (highest "
            "first), then by id (code points)."
        ),
    ]

    @property
    @member
    def within_budget(self) -> bool:
        """Whether the estimate of the whole text, not of its parts, is at most `budget_tokens`."""
        return self.total_tokens <= self.budget_tokens
