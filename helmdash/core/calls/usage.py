"""Usage: every vendor's token counts in one shape, with unknown kept unknown.

Each row of SHAPES is one vendor's field names; a report is told apart by the names it uses. Prompt
tokens always mean the whole prompt, cached tokens included: OpenAI, Codex and Gemini count them in,
Anthropic and Bedrock report three separate counters that have to be added. Completion tokens
include the reasoning. A missing, null, negative, fractional, non-finite or non-numeric count, and a
prompt count of 0, are unknown: a meter that reads them as zero shows green when it should show
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from helmdash.core.values import quick_value

# Stored with every call. Reading a vendor's counts in another way is a new version.
USAGE_VERSION = "usage-3"

# The largest whole number every JSON reader keeps exact; no prompt comes near it.
LARGEST_COUNT = 2**53
# What an entry of Anthropic's `iterations` says of its prompt.
_OF_A_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@quick_value(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as reported, in our words; null means not reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def is_available(self) -> bool:
        """Whether the prompt was counted, which is what every health figure needs."""
        return self.prompt_tokens is not None


@quick_value(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """One vendor's names. Each member lists alternatives, best first; a dot goes one level down."""

    prompt: tuple[str, ...]
    completion: tuple[str, ...]
    total: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    cache_write: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # only when one of these is there too
    adds_cache: bool = False  # the prompt count leaves the cached and cache-written tokens out
    adds_reasoning: bool = False  # the completion count leaves the reasoning out


SHAPES: tuple[UsageShape, ...] = (
    # OpenAI chat and everything that speaks it, and our own flat shape. DeepSeek reports cache
    # hits beside the prompt count, LiteLLM keeps Anthropic's names; both count them in.
    UsageShape(
        prompt=("prompt_tokens",),
        completion=("completion_tokens",),
        total=("total_tokens",),
        cached=(
            "cached_tokens",
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cache_read_input_tokens",
        ),
        cache_write=(
            "cache_write_tokens",
            "prompt_tokens_details.cache_write_tokens",
            "cache_creation_input_tokens",
        ),
        reasoning=("reasoning_tokens", "completion_tokens_details.reasoning_tokens"),
    ),
    # OpenAI Responses (details) and Codex (flat): cached tokens are inside the input count.
    UsageShape(
        prompt=("input_tokens",),
        completion=("output_tokens",),
        total=("total_tokens",),
        cached=("input_tokens_details.cached_tokens", "cached_input_tokens"),
        cache_write=("input_tokens_details.cache_write_tokens",),
        reasoning=("output_tokens_details.reasoning_tokens", "reasoning_output_tokens"),
        needs=("input_tokens_details", "cached_input_tokens"),
    ),
    # Anthropic Messages: three disjoint counters; an absent cache counter is 0.
    UsageShape(
        prompt=("input_tokens",),
        completion=("output_tokens",),
        cached=("cache_read_input_tokens",),
        cache_write=("cache_creation_input_tokens",),
        reasoning=(
            "output_tokens_details.thinking_tokens",
            "output_tokens_details.reasoning_tokens",
        ),
        adds_cache=True,
    ),
    # Gemini: cached content is inside the prompt count, thoughts are beside the candidates.
    UsageShape(
        prompt=("promptTokenCount", "prompt_token_count"),
        completion=("candidatesTokenCount", "candidates_token_count"),
        total=("totalTokenCount", "total_token_count"),
        cached=("cachedContentTokenCount", "cached_content_token_count"),
        reasoning=("thoughtsTokenCount", "thoughts_token_count"),
        adds_reasoning=True,
    ),
    # Ollama: old servers leave the prompt count out when the prompt was cached.
    UsageShape(prompt=("prompt_eval_count",), completion=("eval_count",)),
    # The Vercel AI SDK: Bedrock's names, but cached tokens are inside the input count.
    UsageShape(
        prompt=("inputTokens",),
        completion=("outputTokens",),
        total=("totalTokens",),
        cached=("cachedInputTokens",),
        reasoning=("reasoningTokens",),
        needs=("cachedInputTokens",),
    ),
    # Bedrock Converse: as Anthropic, in camel case.
    UsageShape(
        prompt=("inputTokens",),
        completion=("outputTokens",),
        total=("totalTokens",),
        cached=("cacheReadInputTokens", "cacheReadInputTokenCount"),
        cache_write=("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        adds_cache=True,
    ),
)


# The names that go one level down.
_STEPS = {
    name: (outer, inner)
    for shape in SHAPES
    for names in (
        shape.prompt,
        shape.completion,
        shape.total,
        shape.cached,
        shape.cache_write,
        shape.reasoning,
        shape.needs,
    )
    for name in names
    for outer, dot, inner in (name.partition("."),)
    if dot
}


def normalise_usage(raw: Mapping[str, object] | None) -> Usage:
    """Read a usage report of any known shape; whatever cannot be used is None.

    Never raises. A report whose counts are all zero or unusable is no report: every member None.
    """
    if type(raw) is dict and (usage := _plain(raw)) is not None:
        return usage
    if type(raw) is not dict and not isinstance(raw, Mapping):
        return Usage()
    if "iterations" in raw:
        raw = _of_newest_message(raw)
    shape = _shape_of(raw)
    if shape is None:
        return Usage()
    usage = _read(raw, shape)
    if not any((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)):
        return Usage()
    return usage


def has_compacted(raw: Mapping[str, object] | None) -> bool:
    """Whether the provider compacted the prompt by itself, as Anthropic's `iterations` tell: what
    was sent is not what was read then."""
    if type(raw) is dict and "iterations" not in raw:
        return False
    entries = raw.get("iterations") if isinstance(raw, Mapping) else None
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        return False
    kinds = [entry.get("type") for entry in entries if isinstance(entry, Mapping)]
    return "compaction" in kinds


def _of_newest_message(raw: Mapping[str, object]) -> Mapping[str, object]:
    """Anthropic's report with the prompt of the last message only.

    Where a server runs tools or compacts by itself, the counts are sums over several prompts, each
    of which holds the one before it; how full the context is, the last one says.
    https://platform.claude.com/docs/en/build-with-claude/compaction
    """
    entries = raw["iterations"]
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        return raw
    messages = [
        entry for entry in entries if isinstance(entry, Mapping) and entry.get("type") == "message"
    ]
    if not messages or messages[-1].get("input_tokens") is None:
        return raw
    return {**raw, **{name: messages[-1].get(name) for name in _OF_A_PROMPT}}


# What OpenAI's own shape takes for a count of tokens, where no other name is of any of its counts.
_PLAIN_NAMES = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})


def _plain(raw: Mapping[str, object]) -> Usage | None:
    """What most reports say: three counts in OpenAI's names and nothing else; None: it says more,
    or not all of it can be used."""
    if raw.keys() != _PLAIN_NAMES:
        return None
    prompt, completion, total = raw["prompt_tokens"], raw["completion_tokens"], raw["total_tokens"]
    if not (type(prompt) is type(completion) is type(total) is int):
        return None
    if not (0 < prompt <= LARGEST_COUNT and 0 <= completion <= LARGEST_COUNT):
        return None
    if not 0 < total <= LARGEST_COUNT:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=total)


def _shape_of(raw: Mapping[str, object]) -> UsageShape | None:
    """Find the first shape whose prompt count is there; else one whose completion count is."""
    for shape in SHAPES:
        if _has(raw, shape.prompt) and _is_fitting(raw, shape):
            return shape
    for shape in SHAPES:
        if _has(raw, shape.completion) and _is_fitting(raw, shape):
            return shape
    return None


def _is_fitting(raw: Mapping[str, object], shape: UsageShape) -> bool:
    return not shape.needs or _has(raw, shape.needs)


def _read(raw: Mapping[str, object], shape: UsageShape) -> Usage:
    cached = _first(raw, shape.cached)
    written = _first(raw, shape.cache_write)
    reasoning = _first(raw, shape.reasoning)
    reported_total = _first(raw, shape.total)
    prompt = _prompt(raw, shape)
    completion = _completion(
        _first(raw, shape.completion), reasoning, prompt, reported_total, shape=shape
    )
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=_total(prompt, completion, reported_total),
        cached_tokens=_part_of(prompt, cached),
        cache_write_tokens=_part_of(prompt, written),
        reasoning_tokens=reasoning,
    )


def _prompt(raw: Mapping[str, object], shape: UsageShape) -> int | None:
    prompt = _first(raw, shape.prompt)
    if prompt is not None and shape.adds_cache:
        for names in (shape.cached, shape.cache_write):
            if not _has(raw, names):
                continue
            part = _first(raw, names)
            if part is None:
                return None  # a counter that cannot be read makes the sum unknown, not smaller
            prompt += part
    if not prompt or prompt > LARGEST_COUNT:
        return None
    return prompt


def _completion(
    visible: int | None,
    reasoning: int | None,
    prompt: int | None,
    total: int | None,
    *,
    shape: UsageShape,
) -> int | None:
    """Count the reasoning in, once.

    Gemini reports thoughts beside the candidates, yet some of its routes already counted them in;
    xAI leaves them out of an OpenAI-shaped count. The reported total tells which, and reasoning
    larger than the completion can only have been left out.
    """
    if not reasoning:
        return visible
    if visible is None:
        return reasoning if shape.adds_reasoning else None
    if prompt is not None and total == prompt + visible:
        return visible
    left_out = prompt is not None and total == prompt + visible + reasoning
    if shape.adds_reasoning or left_out or reasoning > visible:
        return visible + reasoning
    return visible


def _total(prompt: int | None, completion: int | None, reported: int | None) -> int | None:
    """Keep the reported total; else prompt + completion. None where either is unknown."""
    if reported:
        return reported
    if prompt is None or completion is None:
        return None
    return prompt + completion


def _part_of(prompt: int | None, part: int | None) -> int | None:
    """Drop a part that is larger than its whole: one of the two is wrong, and unknown is safe."""
    if prompt is not None and part is not None and part > prompt:
        return None
    return part


def _has(raw: Mapping[str, object], names: tuple[str, ...]) -> bool:
    for name in names:  # noqa: SIM110  (asked several times for every call: no generator)
        if (name in raw or name in _STEPS) and _at(raw, name) is not None:
            return True
    return False


def _first(raw: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    """Read the first name that is present; a present but unusable count is unknown."""
    for name in names:
        # Asked two dozen times for every call: most names are not there.
        found = raw.get(name) if name not in _STEPS else _at(raw, name)
        if found is not None:
            return _count(found)
    return None


def _at(raw: Mapping[str, object], path: str) -> object:
    steps = _STEPS.get(path)
    if steps is None:
        return raw.get(path)
    outer = raw.get(steps[0])
    # A dict nearly always, and to ask an abstract class costs ten times as much.
    is_object = type(outer) is dict or isinstance(outer, Mapping)
    return cast("Mapping[str, object]", outer).get(steps[1]) if is_object else None


def _count(value: object) -> int | None:
    """Accept whole numbers from 0 to 2**53, written as 12 or 12.0."""
    if type(value) is int:
        return value if 0 <= value <= LARGEST_COUNT else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= LARGEST_COUNT or value != int(value):  # NaN fails the first comparison
        return None
    return int(value)
