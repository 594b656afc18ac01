"""The list `models` that Codex reads beside `data`, in the shape of Codex CLI 0.169.

Codex asks only where its provider is set up with `auth`, and takes an entry only when it has every
member that version knows; of one that lacks any, Codex assumes a window of 272,000 tokens. Its
entries also hold the agent's own instructions, which is why nobody gets them unasked
(HELMDASH_CODEX_MODELS).
"""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.providers.protocols import ListedModel
from helmdash.providers.shared.bodies import read_object, to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import Json

# Ours, since Codex has none for a model that it does not know.
_INSTRUCTIONS = (
    "You are a coding agent that works in the user's terminal. Read what is there before you "
    "change it, keep each change as small as the task allows, run what shows that it works, and "
    "say in a few sentences what you did and what is left. Change files with the tools you are "
    "given, never touch work that is not yours, and ask when a step cannot be undone."
)
_EFFORTS = (
    ("low", "Answers soon, for work that is easy to check"),
    ("medium", "Thinks as long as most work needs"),
    ("high", "Thinks longer, for work that is hard to get right"),
)
# Bytes of one tool's output that stay in the context: Codex's own figure for models it knows.
_TOOL_OUTPUT_BYTES = 10_000
# Codex compacts before the window is full; it takes this share of it at most.
_WINDOW_PERCENT = 95


def with_codex_models(listing: bytes, models: Iterable[ListedModel]) -> bytes:
    """A list in OpenAI's format with the list `models` beside it."""
    entries = [_entry(model, number) for number, model in enumerate(models)]
    return to_json({**(read_object(listing) or {}), "models": entries})


def _entry(model: ListedModel, number: int) -> dict[str, Json]:
    return without_nones(
        slug=model.name,
        display_name=model.name,
        description=f"served by {model.owner}",
        default_reasoning_level="medium",
        supported_reasoning_levels=[
            {"effort": effort, "description": words} for effort, words in _EFFORTS
        ],
        shell_type="shell_command",
        visibility="list",
        supported_in_api=True,
        priority=number,
        base_instructions=_INSTRUCTIONS,
        supports_reasoning_summaries=False,
        support_verbosity=False,
        truncation_policy={"mode": "bytes", "limit": _TOOL_OUTPUT_BYTES},
        supports_parallel_tool_calls=True,
        experimental_supported_tools=[],
        context_window=model.window,
        max_context_window=model.window,
        auto_compact_token_limit=model.compacts_at,
        effective_context_window_percent=_WINDOW_PERCENT,
        input_modalities=["text", "image"],
    )
