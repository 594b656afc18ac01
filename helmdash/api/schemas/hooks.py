"""What clients post by hooks of their own: as they write it, unknown members and all."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape

_Word = Annotated[str, StringConstraints(max_length=4096)]
# Blanks alone name nothing.
_Name = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"\S")]
_Text = Annotated[str, StringConstraints(max_length=1_000_000)]


class ClaudeHookIn(TypedDict, total=False):
    """A hook of Claude Code, or the input of its status line. Other members are not read."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore")  # type: ignore[misc]

    session_id: Required[_Name]
    hook_event_name: _Word | None
    agent_id: _Word | None
    prompt_id: _Word | None
    trigger: _Word | None
    error: _Word | None
    error_details: _Text | None
    last_assistant_message: _Text | None
    model: Annotated[Any, Field(description="An id, or for a status line an object with `id`.")]
    context_window: Annotated[
        dict[str, Any] | None,
        Field(description="Of a status line; `context_window_size` is the window it counts on."),
    ]


CLAUDE_HOOK = Shape(ClaudeHookIn)
