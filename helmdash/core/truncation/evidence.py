"""Evidence: what the sizes of one call tell, measured against its conversation and its model.

Measures and yes-or-no questions only; which of them makes a rule fire is in `detector`.
"""

from __future__ import annotations

from math import log, sqrt

from helmdash.core.truncation.calibration import Band, pin_tolerance
from helmdash.core.truncation.odds import likelihood_of_cut, likelihood_of_new
from helmdash.core.truncation.sizes import Sizes
from helmdash.core.truncation.traces import Trace

# Windows are powers of two, from Ollama's old default up to a million.
WINDOWS = tuple(2**power for power in range(11, 21))
# ... and what hosted models have.
_COMMON_WINDOWS = (*WINDOWS, 32_000, 128_000, 200_000)
# Cutting whole messages, or in the middle, leaves so much of the window; there fewer deviations do.
_NEAR = 0.94
NEAR_FAR = 0.7
# Ordinary text stays below so many bytes a token: only beyond can most of a prompt be missing.
ORDINARY_RATIO = 4.8
# Deviations, in standard deviations, that count; one clean call in a thousand is as far off.
_FAR = 3.5
# Less than that is never told from content that changed.
_LEAST_OFF = 0.03
# What content of another kind reaches by itself, against the model's band.
LEAST_BAND_OFF = 0.4
# A count that is that much above all before has grown; a cut one cannot.
_RISEN = 1.02
_STEADY = 0.02
# ... and after a cut it must have grown as the bytes have, or nearly.
_OUTGROWN = 0.7
# Fewer bytes than that share of the call before: the client has compacted or trimmed.
_SHRUNK = 0.97
# As many messages as before, but others: a client that sends its newest only. Fewer say nothing,
# since some clients write a whole talk into one.
_WINDOW_MESSAGES = 4
# New tokens only: at most such a share of all tokens is new; and no evidence is so strong that ten
# calls could not turn it.
_ADDED_MOST = 0.6
NEW_ONLY_MOST = 6_000
# The very count of another call: one in hundreds by chance.
_PIN_LIKELIHOOD = 4.0
# A tokenizer's change: at most so far off, told over at least three calls that grew so much.
_TOKENIZER_MOST = 0.45
_TOKENIZER_CALLS = 3
_TOKENIZER_GROWTH = 0.06
# A window that was halved fills again faster than that, for its bytes grow from far more.
_TOKENIZER_FASTEST = 1.4


class Evidence:
    """The measures of one call. `sent` in bytes, `tokens` as reported."""

    def __init__(self, sizes: Sizes, sent: int, tokens: int, trace: Trace, band: Band) -> None:
        self.sizes = sizes
        self.sent = sent
        self.tokens = tokens
        self.trace = trace
        self.band = band
        self.has_shrunk = self._has_shrunk()
        # How far the count lies below what the conversation lets expect, as a logarithm.
        self.expected = trace.expected(sent) if trace.clean else 0.0
        self.off = log(self.expected / tokens) if trace.clean else 0.0
        # A young conversation has shown little scatter; the usual one counts for three calls.
        self.scatter = max(trace.scatter, 0.01)
        self.far = max(_FAR * self.scatter, _LEAST_OFF)

    def is_plain(self) -> bool:
        """As many tokens as expected, or more: most calls, on which no rule has anything to say."""
        told = self.sizes.window
        return (
            self.trace.clean > 0
            and self.off <= 0.3 * self.scatter
            and not self.has_shrunk
            and not self.trace.cuts
            and (told is None or self.tokens < told)
        )

    def counts_new(self) -> bool:
        return self.trace.new_only_mille > 0

    def is_at_pin(self) -> bool:
        tolerance = pin_tolerance(self.tokens)
        return any(-tolerance <= pin - self.tokens <= 2 * tolerance for pin in self.band.pins)

    def is_short(self, least: float) -> bool:
        """Whether tokens are missing at all, by the best that is known."""
        if self.trace.clean and not self.has_shrunk:
            return self.off > max(min(least, 0.2), 0.3 * self.scatter)
        if self.trace.cuts and not self.has_shrunk:
            return True
        deviation = self.band.deviation(self.sent, self.tokens)
        if self.band.conversations >= 3 and self.band.spread < 0.2:
            return deviation > least
        return self.sent / self.tokens > ORDINARY_RATIO if least > 0.1 else deviation > 0.0

    def has_risen(self) -> bool:
        """More tokens than any call before: a maximum is not met yet, or the text is of another
        kind. Where counts scatter little, each step up counts."""
        trace = self.trace
        top = max(trace.top_tokens, trace.held_tokens)
        if self.tokens > _RISEN * top:
            return True
        if self.tokens <= top or trace.scatter > _STEADY or self.sent <= trace.last_bytes:
            return False
        grown = log(self.sent / trace.last_bytes)
        return log(self.tokens / trace.last_tokens) >= 0.4 * grown

    def far_here(self) -> float:
        """Just below a common window less is needed: that is where a cut prompt lies."""
        return max(NEAR_FAR * self.far, _LEAST_OFF) if self.is_near_window() else self.far

    def is_near_window(self) -> bool:
        return any(_NEAR * window <= self.tokens <= window for window in _COMMON_WINDOWS)

    def has_leaned(self) -> bool:
        """Several calls in a row below what was expected, together further than chance goes."""
        trace = self.trace
        if not trace.lean_calls or self.off < self.scatter:
            return False
        calls = trace.lean_calls + 1
        # What was expected has an error of its own, common to all of them: 0.14 of the variance.
        return trace.lean_mille / 1000 + self.off > self.far * sqrt(calls * (1 + 0.14 * calls))

    def is_pinned(self) -> bool:
        """The very count of the call before, or of the largest, though bytes were added."""
        trace = self.trace
        added = (self.sent - trace.last_bytes) / trace.growth_ratio
        tolerance = pin_tolerance(self.tokens)
        if added < max(16, 8 * tolerance, 0.01 * self.tokens) or self.off < 0.6 * self.scatter:
            return False
        return abs(self.tokens - trace.last_tokens) <= tolerance

    def has_outgrown(self, top: int) -> bool:
        """Above what a cut let through, by at least half of what the bytes since let expect."""
        trace = self.trace
        if self.tokens <= 1.03 * top:
            return False
        if self.has_shrunk:
            return True
        before = trace.at_bytes if trace.clean else trace.cut_bytes
        return log(self.tokens / top) >= _OUTGROWN * log(self.sent / before)

    def is_other_tokenizer(self) -> bool:
        """The count is smaller for good, yet grows as the bytes do; one that is cut does not."""
        trace = self.trace
        grown = log(self.sent / trace.cut_bytes)
        return (
            trace.cuts >= _TOKENIZER_CALLS
            and self.off < _TOKENIZER_MOST
            and grown >= _TOKENIZER_GROWTH
            and 0.6 * grown <= log(self.tokens / trace.cut_tokens) <= _TOKENIZER_FASTEST * grown
        )

    def _has_shrunk(self) -> bool:
        trace, messages = self.trace, self.sizes.messages
        if self.sent < _SHRUNK * trace.last_bytes:
            return True
        if messages is None:
            return False
        is_window = messages == trace.last_messages >= _WINDOW_MESSAGES
        return messages < trace.last_messages or (is_window and self.sent != trace.last_bytes)

    def may_be_new_only(self) -> bool:
        """Far fewer tokens than all of the prompt, behind a call that sent less: servers that
        reuse a prompt's state may count only what they evaluated anew."""
        if not self.trace.last_bytes or self.sent <= self.trace.last_bytes:
            return False
        expected = self.expected if self.trace.clean else self.sent / self.band.ratio
        return self.tokens <= _ADDED_MOST * expected

    def new_only_mille(self) -> int:
        """The odds of the trace, after this call as well."""
        trace = self.trace
        ratio = trace.ratio if trace.clean else self.band.ratio
        added = log((self.sent - trace.last_bytes) / self.tokens / ratio)
        odds = likelihood_of_new(added) - self._likelihood_of_cut()
        most = NEW_ONLY_MOST
        return min(max(trace.new_only_mille + round(1000 * odds), -most), most)

    def _likelihood_of_cut(self) -> float:
        """Of this count, where a window has to hold what was counted before."""
        trace = self.trace
        if abs(self.tokens - trace.last_tokens) <= pin_tolerance(self.tokens) or self.is_at_pin():
            return _PIN_LIKELIHOOD
        top = max(trace.top_tokens, trace.cut_top_tokens, trace.held_tokens, trace.last_tokens)
        return likelihood_of_cut(log(top / self.tokens))

    def is_whole(self) -> bool:
        """About as many tokens as the whole prompt should have."""
        if self.trace.clean:
            return self.off <= max(self.far, 0.15)
        least = max(3 * self.band.spread, LEAST_BAND_OFF)
        return self.band.deviation(self.sent, self.tokens) <= least

    def is_explained(self) -> bool:
        """What is missing was told beside the count: cached, or reasoning that is left out."""
        told = (self.sizes.cached or 0, self.trace.reasoning)
        if not any(told):
            return False
        expected = self.expected if self.trace.clean else self.sent / self.band.ratio
        return any(
            part and log(expected / (self.tokens + part)) <= max(self.far, 0.15) for part in told
        )

    def goes_on(self) -> bool:
        """Since the held call, tokens have grown as bytes have: it was text of another kind."""
        trace = self.trace
        grown = (self.sent - trace.held_bytes) / max(trace.ratio, 4.0)
        return self.tokens - trace.held_tokens >= 0.5 * grown
