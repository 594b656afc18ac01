"""What fills the prompts of made-up agents: mostly what their tools gave back."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.calls.composition import Composition

# Of a prompt without its system prompt and its schemas, in tenths: an agent reads much, and is
# told little. The assistant has the rest.
_RESULTS, _USER = 7, 1


def composition(
    size: int, *, system_bytes: int, tools_bytes: int, shares: Mapping[str, int]
) -> Composition:
    """Of a prompt of `size` bytes. shares: of its results of tools, in thirtieths by the tool's
    name; none for a conversation without tools, where its answers take their place.
    """
    rest = max(size - system_bytes - tools_bytes, 0)
    results = rest * _RESULTS // 10 if shares else 0
    user = rest * _USER // 10
    return Composition(
        system=system_bytes,
        tools=tools_bytes,
        user=user,
        assistant=rest - results - user,
        tool_results=results,
        images=0,
        other=0,
        results_by_tool={name: results * share // 30 for name, share in shares.items()},
    )
