"""The adapter of each format a client may speak."""

from __future__ import annotations

from helmdash.gateway.routes import Shape
from helmdash.providers import gemini, ollama
from helmdash.providers.protocols import Adapter
from helmdash.providers.registry import adapter


def format_of(shape: Shape) -> Adapter:
    """The adapter that reads a client's request and writes its answer."""
    if shape is Shape.OLLAMA_GENERATE:
        return ollama.GENERATE
    if shape is Shape.GEMINI_ARRAY:
        return gemini.ARRAY
    return adapter(shape.kind)
