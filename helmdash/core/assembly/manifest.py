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

from helmdash.core.assembly.chunks import Provenance, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """One candidate. `tokens`: what it took; of one left out, what it would take by itself.

    `reason` None: it is included. `over_by`: tokens too many; None but for over_budget.
    """

    id: str
    source: str
    tokens: int
    score: float
    included: bool
    reason: Reason | None = None
    over_by: int | None = None  # tokens over the budget, had it been included at its turn
    provenance: Provenance | None = None

    def to_json(self) -> dict[str, object]:
        """The API's and the log's form; members that are None are left out."""
        found: dict[str, object] = {
            "id": self.id,
            "source": self.source,
            "tokens": self.tokens,
            "score": self.score,
            "included": self.included,
        }
        if self.reason is not None:
            found["reason"] = self.reason.value
        if self.over_by is not None:
            found["over_by"] = self.over_by
        if self.provenance is not None:
            found["provenance"] = self.provenance.to_json()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyManifest:
    """What a prompt is made of, in tokens, and which chunks are in it.

    `chunks`: the included in prompt order, then the others, both by score (highest first), then
    by id. `prompt_hash`: SHA-256 of the prompt's UTF-8 bytes, in hex.
    """

    prompt_hash: str
    system_tokens: int
    instructions_tokens: int
    user_query_tokens: int
    context_tokens: int
    wrapper_tokens: int  # the part of context_tokens that is no chunk's
    total_tokens: int
    budget_tokens: int
    chunks: tuple[ChunkEntry, ...]

    @property
    def within_budget(self) -> bool:
        """Whether the estimate of the whole text, not of its parts, is at most `budget_tokens`."""
        return self.total_tokens <= self.budget_tokens

    def to_json(self) -> dict[str, object]:
        """The API's and the log's form. It holds no text of the prompt."""
        return {
            "prompt_hash": self.prompt_hash,
            "system_tokens": self.system_tokens,
            "instructions_tokens": self.instructions_tokens,
            "user_query_tokens": self.user_query_tokens,
            "context_tokens": self.context_tokens,
            "wrapper_tokens": self.wrapper_tokens,
            "total_tokens": self.total_tokens,
            "budget_tokens": self.budget_tokens,
            "within_budget": self.within_budget,
            "chunks": [entry.to_json() for entry in self.chunks],
        }
