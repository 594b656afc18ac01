"""What was learned of a model's window, and by whom: values only, core.windows decides.

- REFUSAL: the upstream refused a prompt as too long and named the window it has.
- SERVER: the upstream says it when it is asked (its listing, Ollama's `/api/show`, llama.cpp's
  `/props`).
- SUCCESS: a prompt that was answered, far longer than the limit it was judged by. It is no window,
  but a proof that whoever told a smaller one before was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

# A count may differ from the provider's own by some percent; beyond, the limit is disproved.
_DISPROOF_PERCENT = 110


class WindowSource(StrEnum):
    """Who told it."""

    REFUSAL = "refusal"
    SERVER = "server"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWindow:
    """The newest that one source told of a model. `call_id` "": no call told it."""

    key: str
    source: WindowSource
    tokens: int
    seen_at: datetime
    call_id: str = ""


def disproves(prompt_tokens: int, limit: int) -> bool:
    """Whether an answered prompt of so many tokens shows that the limit is wrong."""
    return prompt_tokens * 100 > limit * _DISPROOF_PERCENT
