"""What each Claude generation accepts, as rows of data.

The version stands in the model's id (`claude-sonnet-4-5-20250929` is 4.5, `claude-3-7-sonnet` is
3.7). A model whose id names no version is another vendor's behind the Messages API, or a name we
do not know: it gets what the oldest rows of the protocol allow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]

# "claude-opus-4-20250514" is 4.0: a date is no minor version.
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

# platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting: budgets work up to 4.6,
# adaptive thinking from 4.6 on; 4.6 takes both.
ADAPTIVE_THINKING_SINCE: Version = (4, 6)
NO_BUDGET_SINCE: Version = (4, 7)
BUDGET_SINCE: Version = (3, 7)
# platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7: temperature, top_p and
# top_k answer 400.
NO_SAMPLING_SINCE: Version = (4, 7)
# "`temperature` and `top_p` cannot both be specified for this model", from Opus 4.1 on.
ONE_SAMPLING_SINCE: Version = (4, 1)
# platform.claude.com/docs/en/build-with-claude/structured-outputs
STRUCTURED_OUTPUT_SINCE: Version = (4, 5)
# platform.claude.com/docs/en/api/errors#prefill-not-supported
NO_PREFILL_SINCE: Version = (4, 6)
# platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5: also on Fable 5.1.
NO_FORCED_TOOL_SINCE: Version = (5, 1)

# The most that every model of a generation can write (platform.claude.com/docs/en/about-claude/
# models/overview): 4096 for Claude 3, 8192 for 3.5. From 3.7 on it is 32,000 and more; 16,384
# stays below the 21,333 above which the vendor's clients insist on a stream (ten minutes).
_DEFAULT_MAX_TOKENS: tuple[tuple[Version, int], ...] = (
    ((3, 7), 16_384),
    ((3, 5), 8_192),
    ((0, 0), 4_096),
)
# Other vendors' models behind this API: 8192 is what the smallest of the current ones can write.
_DEFAULT_MAX_TOKENS_ELSEWHERE = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What one model accepts; see the rows above."""

    adaptive_thinking: bool
    budget_thinking: bool
    sampling: bool
    temperature_with_top_p: bool
    structured_output: bool
    prefill: bool
    forced_tools: bool
    default_max_tokens: int


def traits_of(model: str) -> Traits:
    """Read the version out of a model's id and say what the model accepts.

    >>> traits_of("claude-opus-4-7").sampling
    False
    """
    version = _version_of(model)
    if version is None:
        return _ELSEWHERE
    return Traits(
        adaptive_thinking=version >= ADAPTIVE_THINKING_SINCE,
        budget_thinking=BUDGET_SINCE <= version < NO_BUDGET_SINCE,
        sampling=version < NO_SAMPLING_SINCE,
        temperature_with_top_p=version < ONE_SAMPLING_SINCE,
        structured_output=version >= STRUCTURED_OUTPUT_SINCE,
        prefill=version < NO_PREFILL_SINCE,
        forced_tools=version < NO_FORCED_TOOL_SINCE,
        default_max_tokens=next(most for since, most in _DEFAULT_MAX_TOKENS if version >= since),
    )


_ELSEWHERE = Traits(
    adaptive_thinking=False,
    budget_thinking=True,
    sampling=True,
    temperature_with_top_p=True,
    structured_output=False,
    prefill=True,
    forced_tools=True,
    default_max_tokens=_DEFAULT_MAX_TOKENS_ELSEWHERE,
)


def _version_of(model: str) -> Version | None:
    match = _VERSION.search(model.lower())
    if match is None:
        return None
    return int(match[1]), int(match[2] or 0)
