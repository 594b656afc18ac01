"""Which figures of a budget recorded calls teach."""

from __future__ import annotations

from enum import StrEnum


class Figure(StrEnum):
    """What a suggestion is about: a column of the budget."""

    INPUT_TOKENS = "input_tokens"
    CONTEXT_LENGTH = "context_length"
    OUTPUT_TOKENS = "output_tokens"
    CHARS_PER_TOKEN = "chars_per_token"  # noqa: S105  # a column
    MAX_CATALOG_BYTES = "max_catalog_bytes"
    TIER = "tier"
    PROMPT_VARIANT = "prompt_variant"
    WANTS_STRICT_JSON = "wants_strict_json"
