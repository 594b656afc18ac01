"""A weak model, simulated (helmdeck ADR 050, 051 and 053): what was seen of one, it does here.

Too much prompt: a 200 with nothing in it. Else it thinks aloud first, which counts as output, and
is cut off at the cap when too much is asked of it. Only a small prompt that asks for one thing gets
JSON, and that stands in a fence after the thoughts, with braces among them.
"""

from __future__ import annotations

import json

from tests.support.upstreams.scripted import Heard, Said

# Beyond this many bytes of prompt it answers nothing (helmdeck ADR 050: 35 kB of catalog did it).
SILENT_BEYOND = 16_000
# It stops here whatever the cap: 53's rows ended within 1,547 tokens.
OWN_CAP_TOKENS = 1_500

INTENT = (
    "MiniMax just launched M3. "
    + "The M3 model writes long code, reads images and costs little. " * 24
    + "\n\nRemember this launch, then draft a blog about it, and generate an illustration for it."
)
# Each action with the tools that serve it; any of the first is the right first step.
FIRST = ("helmdeck.memory_store",)
WANTED = (
    *FIRST,
    "blog.rewrite_for_audience",
    "builtin.brief-rewrite-blog",
    "image.generate",
)

_THOUGHTS = (
    "<think>The user wants three things {memory, blog, image}. A plan looks like "
    '{"steps": [{"tool": "example.tool", "args": {}}]} but I must pick from the catalog. '
    + "Let me weigh each of the tools again. " * 12
    + "</think>\n"
)


def answer(heard: Heard) -> Said:
    """What the weak model says to a prompt; a strong one stands behind other names."""
    if "claude" in heard.model:
        return Said(content=json.dumps({"steps": [_step(tool) for tool in WANTED[::2]]}))
    if heard.bytes > SILENT_BEYOND:
        return Said(content="", finish=None)
    if heard.is_filter:
        numbers = [heard.number_of(name) for name in WANTED]
        return _said(heard, {"ids": [number for number in numbers if number]})
    prompt = heard.system + heard.user
    if not heard.wants_one and "recommendation" not in heard.system:
        # All steps at once: it never gets to the end.
        return Said(content=_THOUGHTS + '{"steps": [{"order": 1, "tool": "' + "x" * 9_000)
    tool = next((name for name in WANTED if f'"{name}"' in prompt), "unknown.tool")
    if "recommendation" in heard.system:
        kind = "pipeline" if tool.startswith("builtin.") else "pack"
        return _said(heard, {"recommendation": {"kind": kind, "id": tool}, "reasoning": "It fits."})
    return _said(
        heard,
        {
            "steps": [_step(tool)],
            "complexity": "pack-chain",
            "more_steps_likely": True,
            "reasoning": "-",
        },
    )


def _step(tool: str) -> dict[str, object]:
    return {"order": 1, "tool": tool, "args": {}, "rationale": "The source has to be kept first."}


def _said(heard: Heard, value: object) -> Said:
    text = f"{_THOUGHTS}Here it is:\n```json\n{json.dumps(value)}\n```\nHope that helps!"
    cap = min(heard.max_tokens, OWN_CAP_TOKENS) * 4
    return Said(content=text[:cap], finish="stop" if len(text) <= cap else "length")
