"""What a conversation remembers so that its next call can be told from a cut one.

One small list of whole numbers in the conversation's row (about 100 bytes), written with every
call anyway. It is of one round and one model: a fresh start or another tokenizer begins anew.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log
from typing import NamedTuple
from zlib import crc32

_TRACE_VERSION = 2
# Logarithms are kept in thousandths.
_MILLE = 1000
# What is expected of a conversation's scatter before it has shown any: content changes from turn
# to turn, and a few percent between neighbouring calls are usual.
_USUAL_SCATTER = 0.04
# How much the newest clean call moves the conversation's own ratio, and its scatter.
_RATIO_WEIGHT = 0.25
_SCATTER_WEIGHT = 0.1
# The mean difference of two calls with a scatter of 1: 2 / sqrt(pi).
_STEP_TO_SIGMA = 1.128
# One odd call is not scatter: more than so many times the scatter before is not believed at once.
_MOST_SCATTER = 2.5
# Text that a count does not see (tool schemas told apart) makes the ratio of a young conversation
# absurdly low; what is added to it is text, and dense text has at least so many bytes a token.
_DENSEST = 2.5


class Trace(NamedTuple):
    """Sizes of a round's calls; a tuple, for one is made with every call.

    `clean`: calls that the ratio was learned from. `first_*`: the first of them. `at_bytes`: the
    newest; its tokens are smoothed by the ratio. `top_tokens`: the largest clean count. `held_*`:
    a call whose tokens rose, but by less than its bytes explain: the next call tells which it was.
    `last_*`: the newest call of all. `cuts`: suspected calls in a row; `cut_*`: the first of them;
    `cut_top_tokens`: their largest count. `new_only_mille`: how much likelier the calls so far are
    where a server counts only what is new than where it cuts (logarithm; below 0: it cuts).
    `reasoning`: tokens of reasoning since the newest clean call, which a provider may leave out of
    the history. `lean_*`: calls in a row that stayed below what was expected, and by how much
    together (logarithm).
    """

    round_number: int = 1
    model: int = 0
    clean: int = 0
    ratio_mille: int = 0
    scatter_mille: int = int(_USUAL_SCATTER * _MILLE)
    first_bytes: int = 0
    first_tokens: int = 0
    at_bytes: int = 0
    top_tokens: int = 0
    held_bytes: int = 0
    held_tokens: int = 0
    last_bytes: int = 0
    last_tokens: int = 0
    last_messages: int = 0
    cuts: int = 0
    cut_bytes: int = 0
    cut_tokens: int = 0
    cut_top_tokens: int = 0
    new_only_mille: int = 0
    reasoning: int = 0
    lean_calls: int = 0
    lean_mille: int = 0

    def to_json(self) -> list[object]:
        """The row's form: a version and whole numbers."""
        return [_TRACE_VERSION, *self]

    def with_newest(
        self, *, last_bytes: int, last_tokens: int, last_messages: int, reasoning: int
    ) -> Trace:
        """The trace with its newest call: as `_replace`, which takes three times as long."""
        before = self[:_NEWEST]
        between = self[_NEWEST + 3 : _REASONING]
        told = (last_bytes, last_tokens, last_messages)
        return Trace._make((*before, *told, *between, reasoning, *self[_REASONING + 1 :]))

    @property
    def ratio(self) -> float:
        """Bytes a token of the clean calls, newest first."""
        return exp(self.ratio_mille / _MILLE)

    @property
    def scatter(self) -> float:
        """Standard deviation of the logarithm of bytes a token around the smoothed ratio, without
        unit."""
        return self.scatter_mille / _MILLE

    @property
    def at_tokens(self) -> float:
        """Tokens of the newest clean call, by the smoothed ratio."""
        return self.at_bytes / self.ratio

    @property
    def growth_ratio(self) -> float:
        """Bytes a token of what is added; generous where two ways to tell differ."""
        added = self.at_tokens - self.first_tokens
        # Less growth than this says more of noise than of text.
        if self.at_bytes < 1.5 * self.first_bytes or added < 0.2 * self.first_tokens:
            return max(self.ratio, _DENSEST)
        return max(self.ratio, (self.at_bytes - self.first_bytes) / added, _DENSEST)

    def expected(self, sent_bytes: int) -> float:
        """Tokens to expect of so many bytes, once there is a clean call; reads no new content."""
        if sent_bytes < self.at_bytes:
            return sent_bytes / self.ratio
        return self.at_tokens + (sent_bytes - self.at_bytes) / self.growth_ratio


_NEWEST = Trace._fields.index("last_bytes")  # and the two after it
_REASONING = Trace._fields.index("reasoning")


@lru_cache(maxsize=512)
def model_mark(model: str) -> int:
    """A model's name as a small number; equal by chance is harmless and rare."""
    return crc32(model.encode("utf-8", "surrogatepass"))


def read_trace(stored: object, *, round_number: int, model: str) -> Trace:
    """The stored trace if it is of this round and model, else an empty one. Never raises."""
    mark = model_mark(model)
    empty = Trace(round_number=round_number, model=mark)
    if not isinstance(stored, list) or len(stored) != len(Trace._fields) + 1:
        return empty
    if stored[0] != _TRACE_VERSION or not all(type(value) is int for value in stored):
        return empty
    if stored[1] != round_number or stored[2] != mark:
        return empty
    return Trace(*stored[1:])


def first_clean(
    trace: Trace, *, sent_bytes: int, tokens: int, scatter: float | None = None
) -> Trace:
    """The trace begun anew at a call taken for whole. scatter None: the trace's own is kept."""
    return Trace(
        round_number=trace.round_number,
        model=trace.model,
        clean=1,
        ratio_mille=round(log(sent_bytes / tokens) * _MILLE),
        scatter_mille=trace.scatter_mille if scatter is None else round(scatter * _MILLE),
        first_bytes=sent_bytes,
        first_tokens=tokens,
        at_bytes=sent_bytes,
        top_tokens=tokens,
        new_only_mille=trace.new_only_mille,
    )


def smoothed(
    trace: Trace, *, sent_bytes: int, tokens: int, expected: float, off: float, most: float
) -> tuple[int, int]:
    """Ratio and scatter after a clean call, in thousandths.

    expected: tokens, by `Trace.expected`; off: logarithm of these over the reported ones; `most`:
    how much of it upwards is believed.
    """
    ratio = log(sent_bytes / expected) + _RATIO_WEIGHT * min(max(off, -0.3), most)
    scatter = trace.scatter
    if trace.last_bytes and trace.last_tokens:
        # From one call to the next: a drift, as of text of another kind, is no scatter.
        step = abs(log(sent_bytes / trace.last_bytes) - log(tokens / trace.last_tokens))
        seen = min(step / _STEP_TO_SIGMA, _MOST_SCATTER * scatter + 0.005)
        scatter += max(_SCATTER_WEIGHT, 1 / (trace.clean + 4)) * (seen - scatter)
    return round(ratio * _MILLE), round(scatter * _MILLE)
