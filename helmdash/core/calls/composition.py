"""Composition: what fills a prompt, in bytes, by who said it.

Of what was sent, not of what a provider counted: no count of tokens is told apart by who caused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from operator import itemgetter
from typing import Annotated

from helmdash.answers import Doc, answer
from helmdash.core.values import quick_value

# The few tools that fill a prompt; an agent has dozens, and most say little.
MOST_RESULT_TOOLS = 6
# As long as the longest names that providers take (Anthropic: 128).
RESULT_TOOL_CHARS = 128


@answer("Composition")
@quick_value(frozen=True, slots=True, kw_only=True)
class Composition:
    """Bytes of what a call sent, by kind: of the texts as the model reads them (UTF-8), without the
    JSON around them.

    None: not known, which is never 0. The kinds do not overlap.
    """

    system: int | None = None
    tools: Annotated[int | None, Doc("Schemas of tools, as JSON.")] = None
    user: int | None = None
    assistant: Annotated[int | None, Doc("Texts, reasoning and calls of tools.")] = None
    tool_results: int | None = None
    images: Annotated[int | None, Doc("Their base64; an image given by its URL has none.")] = None
    other: Annotated[int | None, Doc("Files, audio and what else only one format knows.")] = None
    results_by_tool: Annotated[
        Mapping[str, int],
        Doc(f"The largest {MOST_RESULT_TOOLS} of `tool_results`, by the name of the tool."),
    ] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int | None, ...]:
        """The bytes of the seven kinds, in the order of the fields."""
        return (
            self.system,
            self.tools,
            self.user,
            self.assistant,
            self.tool_results,
            self.images,
            self.other,
        )

    @property
    def is_known(self) -> bool:
        """Whether more than the tools is known of it."""
        said = (self.system, self.user, self.assistant, self.tool_results, self.images, self.other)
        return any(size is not None for size in said)


def largest_results(by_tool: Mapping[str, int]) -> dict[str, int]:
    """The largest of many that have a name, the largest first; names as long as they are kept."""
    found = sorted(by_tool.items(), key=itemgetter(1), reverse=True)[: MOST_RESULT_TOOLS + 1]
    kept: dict[str, int] = {}
    for name, size in found:
        if name and len(kept) < MOST_RESULT_TOOLS:
            short = name[:RESULT_TOOL_CHARS]
            kept[short] = kept.get(short, 0) + size
    return kept
