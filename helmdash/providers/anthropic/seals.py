"""Signatures of thoughts: Anthropic takes its own back alone; any other is a 400."""

from __future__ import annotations

from helmdash.providers.wire import Part, Reasoning


def is_sealed(part: Part) -> bool:
    """Whether it is a thought that Anthropic sealed itself. Its signatures are base64, in which no
    colon stands; another vendor's have a mark with one (providers.gemini.parts)."""
    seal = part.signature if isinstance(part, Reasoning) else None
    return seal is not None and seal != "" and ":" not in seal
