"""Silent cuts: telling from sizes alone that a provider dropped a part of the prompt.

Some servers answer 200 after cutting a prompt to their window, and report the count of what was
left. A verdict is advice: nothing is estimated in place of the reported
count, the count is only not trusted, and the evidence is shown.

Signals, each a rule with a name: the count is one that a window leaves (half of it and a little,
all of it, or a maximum that other calls of the model met); it stays where it was, or falls, while
the bytes grow; bytes per token leave the band of the conversation, or that of the model.

Never judged: prompts too short to tell, calls with images (bytes say nothing), a reported Trim,
counts of new tokens only. Pure; the memory is `core.truncation.traces` and
`core.truncation.calibration`.
"""

from __future__ import annotations

from math import log, sqrt

from helmdash.core.truncation.calibration import Band, pin_tolerance
from helmdash.core.truncation.odds import likelihood_of_cut, likelihood_of_new
from helmdash.core.truncation.sizes import (
    LEAST_BYTES,
    LEAST_TOKENS,
    CutRule,
    CutVerdict,
    Sizes,
    Suspicion,
    is_judgeable,
)
from helmdash.core.truncation.traces import Trace, first_clean, smoothed

CUTS_VERSION = "cuts-2"

# Windows are powers of two, from Ollama's old default up to a million.
_WINDOWS = tuple(2**power for power in range(11, 21))
# ... and what hosted models have.
_COMMON_WINDOWS = (*_WINDOWS, 32_000, 128_000, 200_000)
# Cutting whole messages, or in the middle, leaves so much of the window; there fewer deviations do.
_NEAR = 0.94
_NEAR_FAR = 0.7
# What a half window may have on top: the kept beginning (4) and a token or two of the template.
_HALF_BELOW = 4
_HALF_ABOVE = 12
# Ordinary text stays below so many bytes a token: only beyond can most of a prompt be missing.
_ORDINARY_RATIO = 4.8
# Deviations, in standard deviations, that count; one clean call in a thousand is as far off.
_FAR = 3.5
# Less than that is never told from content that changed.
_LEAST_OFF = 0.03
# Against the model's band, in its spreads; and what content of another kind reaches by itself.
_BAND_FAR = 3.0
_LEAST_BAND_OFF = 0.4
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
# New tokens only: so many bytes a token of the whole prompt show it beside a short count; at most
# such a share of all tokens is new; and no evidence is so strong that ten calls could not turn it.
_ADDED_RATIO = 9.0
_ADDED_MOST = 0.6
_NEW_ONLY_MOST = 6_000
# The very count of another call: one in hundreds by chance.
_PIN_LIKELIHOOD = 4.0
# A tokenizer's change: at most so far off, told over at least three calls that grew so much.
_TOKENIZER_MOST = 0.45
_TOKENIZER_CALLS = 3
_TOKENIZER_GROWTH = 0.06
# A window that was halved fills again faster than that, for its bytes grow from far more.
_TOKENIZER_FASTEST = 1.4


def judge_cut(sizes: Sizes, trace: Trace, band: Band) -> CutVerdict:
    """Judge one successful call by its own conversation's trace, and by its model's band.

    `trace` is of the same round and model (`read_trace`). Never raises.
    """
    sent, tokens = sizes.bytes, sizes.tokens
    if tokens is None:
        return CutVerdict(suspicion=None, trace=trace, is_learned=False)
    if sizes.is_blind or sent is None:
        return CutVerdict(suspicion=_told_window(sizes, tokens), trace=trace, is_learned=False)
    if not is_judgeable(sizes):
        return _too_short(sizes, sent, tokens, trace)
    if sizes.is_trimmed:
        return _begun(Trace(round_number=trace.round_number, model=trace.model), sent, tokens)
    return _Call(sizes, sent, tokens, trace, band).verdict()


def _too_short(sizes: Sizes, sent: int, tokens: int, trace: Trace) -> CutVerdict:
    """A count too small to judge. What a window leaves is more: beside a long prompt it tells that
    only new tokens are counted, and the next call adds to these bytes."""
    if sent >= LEAST_BYTES and tokens > 0 and not sizes.is_trimmed:
        tells = not trace.cuts and sent / tokens > _ADDED_RATIO
        trace = trace._replace(
            last_bytes=sent,
            last_tokens=tokens,
            last_messages=sizes.messages or 0,
            new_only_mille=min(trace.new_only_mille + 2000 * tells, _NEW_ONLY_MOST),
        )
    return CutVerdict(suspicion=None, trace=trace, is_learned=False)


def _begun(trace: Trace, sent: int, tokens: int) -> CutVerdict:
    fresh = first_clean(trace, sent_bytes=sent, tokens=tokens)
    fresh = fresh._replace(last_bytes=sent, last_tokens=tokens)
    return CutVerdict(suspicion=None, trace=fresh, is_learned=False)


def _told_window(sizes: Sizes, tokens: int) -> Suspicion | None:
    """What needs no bytes: the count is the very window that the server was told to use."""
    if sizes.window is None or tokens < sizes.window or sizes.window < LEAST_TOKENS:
        return None
    return Suspicion(
        rule=CutRule.WHOLE_WINDOW,
        expected_tokens=None,
        reported_tokens=tokens,
        sent_bytes=sizes.bytes or 0,
        window=sizes.window,
    )


class _Call:
    """One call while it is judged."""

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

    def verdict(self) -> CutVerdict:
        if self._is_plain():
            return self._leave(self._learned(), None, is_learned=True)
        if self._may_be_new_only():
            self.trace = self.trace._replace(new_only_mille=self._new_only_mille())
            if self.trace.new_only_mille > 0:
                return self._leave(self.trace, None)
        elif self._counts_new() and not self._is_whole() and self._window() is None:
            # Neither what is new nor all of it: doubt grows whether only new tokens are counted.
            less = max(self.trace.new_only_mille - 1000, 0)
            return self._leave(self.trace._replace(new_only_mille=less), None)
        rule = self._rule()
        if rule is None:
            return self._leave(self._learned(), None, is_learned=True)
        return self._leave(self._cut(), rule)

    def _is_plain(self) -> bool:
        """As many tokens as expected, or more: most calls, on which no rule has anything to say."""
        told = self.sizes.window
        return (
            self.trace.clean > 0
            and self.off <= 0.3 * self.scatter
            and not self.has_shrunk
            and not self.trace.cuts
            and (told is None or self.tokens < told)
        )

    # What tells

    def _rule(self) -> tuple[CutRule, int | None] | None:
        window = self._window()
        if window is not None:
            return window
        if self._counts_new():
            return None
        if self.trace.cuts:
            return self._rule_after_cut()
        if not self.trace.clean or self.has_shrunk:
            return self._rule_of_band()
        return self._rule_of_growth()

    def _window(self) -> tuple[CutRule, int | None] | None:
        """Counts that a window leaves behind. The rarer by chance, the less else has to agree."""
        told = self.sizes.window
        if told is not None and self.tokens >= told:
            return CutRule.WHOLE_WINDOW, told
        if self._counts_new():
            return None
        for window in _WINDOWS if told is None else (told, *_WINDOWS):
            above = self.tokens - window // 2
            if -_HALF_BELOW <= above <= _HALF_ABOVE and self._is_short(0.25):
                return CutRule.HALF_WINDOW, window
            if self.tokens == window and self._is_short(0.03):
                return CutRule.WHOLE_WINDOW, window
        # A window that a person chose, as 10,000. People also write round counts: its half and two
        # is no such count, the whole of it is, and is left to the rules of growth.
        if self.tokens % 500 == 2 and self._is_short(0.45):
            return CutRule.HALF_WINDOW, (self.tokens - 2) * 2
        if self._is_at_pin() and self._is_short(0.0):
            return CutRule.PINNED, None
        return None

    def _counts_new(self) -> bool:
        return self.trace.new_only_mille > 0

    def _is_at_pin(self) -> bool:
        tolerance = pin_tolerance(self.tokens)
        return any(-tolerance <= pin - self.tokens <= 2 * tolerance for pin in self.band.pins)

    def _is_short(self, least: float) -> bool:
        """Whether tokens are missing at all, by the best that is known."""
        if self.trace.clean and not self.has_shrunk:
            return self.off > max(min(least, 0.2), 0.3 * self.scatter)
        if self.trace.cuts and not self.has_shrunk:
            return True
        deviation = self.band.deviation(self.sent, self.tokens)
        if self.band.conversations >= 3 and self.band.spread < 0.2:
            return deviation > least
        return self.sent / self.tokens > _ORDINARY_RATIO if least > 0.1 else deviation > 0.0

    def _rule_of_growth(self) -> tuple[CutRule, int | None] | None:
        """Against the conversation's own clean calls, while its messages are only added to."""
        if self._is_pinned():
            return CutRule.PINNED, None
        if self._has_risen():
            return None
        is_off = self.off > self._far_here() or self._has_leaned()
        if is_off and not self._is_explained():
            fell = self.tokens < 0.98 * self.trace.last_tokens
            return (CutRule.FELL if fell else CutRule.STALLED), None
        return None

    def _has_risen(self) -> bool:
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

    def _far_here(self) -> float:
        """Just below a common window less is needed: that is where a cut prompt lies."""
        return max(_NEAR_FAR * self.far, _LEAST_OFF) if self._is_near_window() else self.far

    def _is_near_window(self) -> bool:
        return any(_NEAR * window <= self.tokens <= window for window in _COMMON_WINDOWS)

    def _has_leaned(self) -> bool:
        """Several calls in a row below what was expected, together further than chance goes."""
        trace = self.trace
        if not trace.lean_calls or self.off < self.scatter:
            return False
        calls = trace.lean_calls + 1
        # What was expected has an error of its own, common to all of them: 0.14 of the variance.
        return trace.lean_mille / 1000 + self.off > self.far * sqrt(calls * (1 + 0.14 * calls))

    def _is_pinned(self) -> bool:
        """The very count of the call before, or of the largest, though bytes were added."""
        trace = self.trace
        added = (self.sent - trace.last_bytes) / trace.growth_ratio
        tolerance = pin_tolerance(self.tokens)
        if added < max(16, 8 * tolerance, 0.01 * self.tokens) or self.off < 0.6 * self.scatter:
            return False
        return abs(self.tokens - trace.last_tokens) <= tolerance

    def _rule_after_cut(self) -> tuple[CutRule, int | None] | None:
        """Once cut, every call is, until its count rises above what the cut let through."""
        trace = self.trace
        if trace.clean:
            least = (
                max(self.far, 0.15)
                if self.has_shrunk
                else self.far * (0.75 if trace.cuts < 3 else 0.5)
            )
            top = max(trace.top_tokens, trace.cut_top_tokens)
            if self._is_explained():
                return None
            if self.off <= least or self._has_outgrown(top) or self._is_other_tokenizer():
                return None
            return CutRule.STILL_CUT, None
        if self.has_shrunk or self._has_outgrown(trace.cut_top_tokens):
            return self._rule_of_band()
        return CutRule.STILL_CUT, None

    def _has_outgrown(self, top: int) -> bool:
        """Above what a cut let through, by at least half of what the bytes since let expect."""
        trace = self.trace
        if self.tokens <= 1.03 * top:
            return False
        if self.has_shrunk:
            return True
        before = trace.at_bytes if trace.clean else trace.cut_bytes
        return log(self.tokens / top) >= _OUTGROWN * log(self.sent / before)

    def _is_other_tokenizer(self) -> bool:
        """The count is smaller for good, yet grows as the bytes do; one that is cut does not."""
        trace = self.trace
        grown = log(self.sent / trace.cut_bytes)
        return (
            trace.cuts >= _TOKENIZER_CALLS
            and self.off < _TOKENIZER_MOST
            and grown >= _TOKENIZER_GROWTH
            and 0.6 * grown <= log(self.tokens / trace.cut_tokens) <= _TOKENIZER_FASTEST * grown
        )

    def _rule_of_band(self) -> tuple[CutRule, int | None] | None:
        """A call with nothing before it, against the calls of its model."""
        deviation = self.band.deviation(self.sent, self.tokens)
        spread = self.band.spread * (_NEAR_FAR if self._is_near_window() else 1.0)
        least = max(_BAND_FAR * spread, _LEAST_BAND_OFF)
        if deviation > least and self.sent / self.tokens > _ORDINARY_RATIO:
            return (CutRule.OUT_OF_BAND, None) if not self._is_explained() else None
        return None

    # What explains

    def _has_shrunk(self) -> bool:
        trace, messages = self.trace, self.sizes.messages
        if self.sent < _SHRUNK * trace.last_bytes:
            return True
        if messages is None:
            return False
        is_window = messages == trace.last_messages >= _WINDOW_MESSAGES
        return messages < trace.last_messages or (is_window and self.sent != trace.last_bytes)

    def _may_be_new_only(self) -> bool:
        """Far fewer tokens than all of the prompt, behind a call that sent less: servers that
        reuse a prompt's state may count only what they evaluated anew."""
        if not self.trace.last_bytes or self.sent <= self.trace.last_bytes:
            return False
        expected = self.expected if self.trace.clean else self.sent / self.band.ratio
        return self.tokens <= _ADDED_MOST * expected

    def _new_only_mille(self) -> int:
        """The odds of the trace, after this call as well."""
        trace = self.trace
        ratio = trace.ratio if trace.clean else self.band.ratio
        added = log((self.sent - trace.last_bytes) / self.tokens / ratio)
        odds = likelihood_of_new(added) - self._likelihood_of_cut()
        most = _NEW_ONLY_MOST
        return min(max(trace.new_only_mille + round(1000 * odds), -most), most)

    def _likelihood_of_cut(self) -> float:
        """Of this count, where a window has to hold what was counted before."""
        trace = self.trace
        if abs(self.tokens - trace.last_tokens) <= pin_tolerance(self.tokens) or self._is_at_pin():
            return _PIN_LIKELIHOOD
        top = max(trace.top_tokens, trace.cut_top_tokens, trace.held_tokens, trace.last_tokens)
        return likelihood_of_cut(log(top / self.tokens))

    def _is_whole(self) -> bool:
        """About as many tokens as the whole prompt should have."""
        if self.trace.clean:
            return self.off <= max(self.far, 0.15)
        least = max(3 * self.band.spread, _LEAST_BAND_OFF)
        return self.band.deviation(self.sent, self.tokens) <= least

    def _is_explained(self) -> bool:
        """What is missing was told beside the count: cached, or reasoning that is left out."""
        told = (self.sizes.cached or 0, self.trace.reasoning)
        if not any(told):
            return False
        expected = self.expected if self.trace.clean else self.sent / self.band.ratio
        return any(
            part and log(expected / (self.tokens + part)) <= max(self.far, 0.15) for part in told
        )

    # What is remembered

    def _leave(
        self, trace: Trace, rule: tuple[CutRule, int | None] | None, *, is_learned: bool = False
    ) -> CutVerdict:
        reasoning = self.trace.reasoning + (self.sizes.reasoning or 0)
        after = trace._replace(
            last_bytes=self.sent,
            last_tokens=self.tokens,
            last_messages=self.sizes.messages or 0,
            reasoning=(self.sizes.reasoning or 0) if is_learned else reasoning,
        )
        return CutVerdict(
            suspicion=self._suspicion(*rule) if rule else None, trace=after, is_learned=is_learned
        )

    def _suspicion(self, rule: CutRule, window: int | None) -> Suspicion:
        trace, band = self.trace, self.band
        if trace.clean:
            expected, ratio, calls = self.expected, trace.ratio, trace.clean
        elif band.conversations:
            expected, ratio, calls = self.sent / band.ratio, band.ratio, band.calls
        else:
            expected, ratio, calls = self.sent / band.ratio, band.ratio, 0
        return Suspicion(
            rule=rule,
            expected_tokens=round(expected),
            reported_tokens=self.tokens,
            sent_bytes=self.sent,
            ratio=round(ratio, 1),
            calls=calls,
            window=window,
        )

    def _cut(self) -> Trace:
        trace = self.trace
        is_first = trace.cuts == 0
        return trace._replace(
            cuts=trace.cuts + 1,
            cut_bytes=self.sent if is_first else trace.cut_bytes,
            cut_tokens=self.tokens if is_first else trace.cut_tokens,
            cut_top_tokens=max(trace.cut_top_tokens, self.tokens),
        )

    def _learned(self) -> Trace:
        trace = self.trace
        if not trace.clean or self.has_shrunk or (trace.cuts and self.off > self.far / 2):
            is_new = not trace.clean and not trace.cuts
            return first_clean(
                trace,
                sent_bytes=self.sent,
                tokens=self.tokens,
                scatter=self.band.scatter if is_new else None,
            )
        has_risen = self._has_risen()
        leans = not has_risen and self.off > 0.3 * self.scatter
        if has_risen and self.off > max(self.far, 0.1):
            return self._held()
        # While the count does not rise, a falling ratio is believed only a little: a maximum that
        # is met slowly must not pass for text of another kind.
        most = 0.3 if has_risen else 0.7 * self.scatter
        ratio, scatter = smoothed(
            trace,
            sent_bytes=self.sent,
            tokens=self.tokens,
            expected=self.expected,
            off=self.off,
            most=most,
        )
        return trace._replace(
            clean=trace.clean + 1,
            ratio_mille=ratio,
            scatter_mille=scatter,
            at_bytes=self.sent,
            top_tokens=max(trace.top_tokens, self.tokens),
            held_bytes=0,
            held_tokens=0,
            cuts=0,
            cut_bytes=0,
            cut_tokens=0,
            cut_top_tokens=0,
            lean_calls=min(trace.lean_calls + 1, 9) if leans else 0,
            lean_mille=trace.lean_mille + round(self.off * 1000) if leans else 0,
        )

    def _held(self) -> Trace:
        """More tokens than ever, yet fewer than the bytes explain: the next call tells."""
        trace = self.trace
        if trace.held_bytes and self._goes_on():
            return first_clean(trace, sent_bytes=self.sent, tokens=self.tokens)
        return trace._replace(held_bytes=self.sent, held_tokens=self.tokens)

    def _goes_on(self) -> bool:
        """Since the held call, tokens have grown as bytes have: it was text of another kind."""
        trace = self.trace
        grown = (self.sent - trace.held_bytes) / max(trace.ratio, 4.0)
        return self.tokens - trace.held_tokens >= 0.5 * grown
