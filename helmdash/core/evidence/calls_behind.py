"""Which calls a learned figure was counted from, as a query of the list of calls.

The words are those of queries.calls.terms; there the list has as many calls as the figure says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.evidence.figures import Figure
from helmdash.core.rollups.evidence_facts import EvidenceKind
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.core.text.query_terms import term_text

_KINDS: Final[Mapping[Figure, EvidenceKind]] = {
    Figure.INPUT_TOKENS: EvidenceKind.INPUT_TOKENS,
    Figure.CONTEXT_LENGTH: EvidenceKind.WINDOW,
    Figure.OUTPUT_TOKENS: EvidenceKind.OUTPUT,
    Figure.CHARS_PER_TOKEN: EvidenceKind.ESTIMATOR,
    Figure.MAX_CATALOG_BYTES: EvidenceKind.CATALOG,
    Figure.TIER: EvidenceKind.STRUCTURED,
    Figure.PROMPT_VARIANT: EvidenceKind.STRUCTURED,
    Figure.WANTS_STRICT_JSON: EvidenceKind.STRUCTURED,
}
# Of the two ways of asking that are compared.
_WAYS: Final = f"variant:{','.join(PromptVariant)}"
# A part of a model's calls, and the field that leaves it.
_PARTS: Final = {"purpose": "purpose", "prompt_variant": "variant"}


def calls_behind(
    figure: Figure,
    *,
    model_key: str,
    upstream: str = "",
    part: str = "",
    in_bytes: bool = False,
) -> str:
    """The query of the calls that a figure of a model is learned from.

    upstream: "" for all of them. part: as LearnedLimit has it, "" for all. in_bytes: sizes are
    those sent, not tokens.
    """
    kind = _KINDS[figure]
    if in_bytes and kind is EvidenceKind.INPUT_TOKENS:
        kind = EvidenceKind.INPUT_BYTES
    terms = [term_text("key", model_key), f"evidence:{kind}"]
    if upstream:
        terms.append(term_text("upstream", upstream))
    if figure is Figure.PROMPT_VARIANT:
        terms.append(_WAYS)
    name, _, value = part.partition("=")
    if name in _PARTS:
        terms.append(term_text(_PARTS[name], value or NO_VARIANT))
    elif part:
        terms.append(term_text("has", part))
    return " ".join(terms)


def prompts_above(query: str, *, ceiling: int, in_bytes: bool) -> str:
    """Those of them with prompts above a ceiling of tokens, or of bytes."""
    return f"{query} {'sent' if in_bytes else 'prompt'}:>{ceiling}"


def sizes_between(query: str, *, field: str, least: int, most: int) -> str:
    """Those of them of some sizes, both included. field: prompt, sent or catalog."""
    return f"{query} {field}:{least}..{most}"


def clean_ones(query: str) -> str:
    """Those of them that were clean."""
    return f"{query} outcome:clean"


def counted_as(query: str, *, least: int) -> str:
    """Those of them whose prompts were reported with so many tokens or more."""
    return f"{query} prompt:>={least}"


def of_way(query: str, figure: Figure, *, is_first: bool) -> str:
    """Those of them that were asked in one of the two ways that are compared."""
    if figure is Figure.PROMPT_VARIANT:
        way = PromptVariant.FULL_STEPS if is_first else PromptVariant.SINGLE_PICK
        return f"{query} variant:{way}".replace(f"{_WAYS} ", "")
    return f"{query} {'-' if is_first else ''}has:json"


def replies_cut_off(query: str) -> str:
    """Those of them that met their limit of output."""
    return f"{query} finish:length"
