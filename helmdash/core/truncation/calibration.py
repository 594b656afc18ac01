"""The band of a model: how many bytes its tokens stand for, learned from calls not suspected.

Content differs more between conversations than within one: prose has 4 to 5 bytes a token, code
3 to 4, Chinese 2 to 5 (three bytes a character), base64 less than 2, Hindi up to 10. So what
counts is how many conversations were seen, not how many calls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, inf, log, sqrt
from statistics import median
from typing import NamedTuple

# Before anything is learned: the middle of what text gives, and its usual spread (logarithm).
_USUAL_RATIO = log(4.0)
_USUAL_SPREAD = 0.25
# For how many conversations the two count: a few of one kind say little about the next.
_RATIO_CALLS_FOR = 2
_SPREAD_CALLS_FOR = 4
# From the median of absolute deviations to a standard deviation.
_MAD_TO_SIGMA = 1.4826
# So many differences of neighbours tell a model's scatter. One that shows none may yet do so.
_SCATTER_STEPS = 24
_LEAST_SCATTER = 0.03
# A maximum is one when so many calls have it, and their bytes differ by at least that factor.
_PINNED_CALLS = 3
_PINNED_SPREAD = 1.1
# Calls down to that share of the maximum are near it.
_PINNED_NEAR = 0.95


class Sample(NamedTuple):
    """One recorded call of the model; `is_learned`: neither suspected nor otherwise unfit.
    conversation None: it belongs to none."""

    conversation: int | None
    sent_bytes: int
    tokens: int
    is_learned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Bytes a token of a model's whole prompts: middle and spread as logarithms.

    `pins`: token counts that calls of different sizes were reported with. `scatter`: standard
    deviation of a call's ratio within its conversation (logarithm); None: too few are known.
    """

    middle: float = _USUAL_RATIO
    spread: float = _USUAL_SPREAD
    calls: int = 0
    conversations: int = 0
    pins: tuple[int, ...] = field(default=())
    scatter: float | None = None

    @property
    def ratio(self) -> float:
        """Bytes a token in the middle of the band."""
        return exp(self.middle)

    def deviation(self, sent_bytes: int, tokens: int) -> float:
        """Logarithm of the bytes a token over the band's middle; above 0: tokens are missing."""
        return log(sent_bytes / tokens) - self.middle


def learn_band(samples: Sequence[Sample]) -> Band:
    """The band of a model's newest calls; a wide one where they are few."""
    groups: defaultdict[object, list[float]] = defaultdict(list)
    for number, sample in enumerate(samples):
        if sample.is_learned:
            # A call without a conversation stands for itself.
            key = sample.conversation if sample.conversation is not None else f"alone {number}"
            groups[key].append(log(sample.sent_bytes / sample.tokens))
    pins = _pins(samples)
    if not groups:
        return Band(pins=pins)
    middles = [median(values) for values in groups.values()]
    middle = median(middles)
    own = _MAD_TO_SIGMA * median(abs(value - middle) for value in middles)
    # A quarter of conversations of another kind does not move the median of deviations.
    own = max(own, sqrt(sum(min((value - middle) ** 2, 1.0) for value in middles) / len(middles)))
    count = len(middles)
    return Band(
        middle=(_RATIO_CALLS_FOR * _USUAL_RATIO + count * middle) / (_RATIO_CALLS_FOR + count),
        spread=sqrt(
            (_SPREAD_CALLS_FOR * _USUAL_SPREAD**2 + count * own**2) / (_SPREAD_CALLS_FOR + count)
        ),
        calls=sum(map(len, groups.values())),
        conversations=count,
        pins=pins,
        scatter=_scatter(groups.values()),
    )


def _scatter(groups: Iterable[Sequence[float]]) -> float | None:
    """From the differences of neighbours, so that a ratio that drifts does not count as noise."""
    steps = [abs(after - before) for group in groups for before, after in pairwise(group)]
    if len(steps) < _SCATTER_STEPS:
        return None
    return max(median(steps) * _MAD_TO_SIGMA / sqrt(2), _LEAST_SCATTER)


def pin_tolerance(tokens: int) -> int:
    """How far two counts may differ and still be one maximum: 1 in 4,000 tokens."""
    return tokens // 4000


def _pins(samples: Iterable[Sample]) -> tuple[int, ...]:
    """Counts that at least three calls share although their bytes differ."""
    ordered = sorted([(sample.tokens, sample.sent_bytes) for sample in samples])
    found: list[int] = []
    start, most = 0, -1
    # The last one ends the group before it: no call has so many tokens.
    for end, (tokens, _) in enumerate([*ordered, (inf, 0)]):
        if tokens <= most:
            continue
        sizes = [size for _, size in ordered[start:end]] if end - start >= _PINNED_CALLS else []
        if sizes and max(sizes) >= _PINNED_SPREAD * min(sizes):
            # A maximum is met by most that come near it, and passed by few.
            beyond = len(ordered) - end
            low = bisect_left(ordered, (round(ordered[start][0] * _PINNED_NEAR), 0))
            if end - start > max(beyond, start - low):
                found.append(ordered[end - 1][0])
        if end < len(ordered):
            start, most = end, ordered[end][0] + pin_tolerance(ordered[end][0])
    return tuple(found)
