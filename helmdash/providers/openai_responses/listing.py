"""Lists of models: those of OpenAI, whose two APIs share one."""

from __future__ import annotations

from helmdash.providers.openai.listing import write_model, write_models

__all__ = ["write_model", "write_models"]
