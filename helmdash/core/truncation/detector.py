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

from helmdash.core.truncation.calibration import Band
from helmdash.core.truncation.evidence import (
    LEAST_BAND_OFF,
    NEAR_FAR,
    NEW_ONLY_MOST,
    ORDINARY_RATIO,
    WINDOWS,
    Evidence,
)
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

# What a half window may have on top: the kept beginning (4) and a token or two of the template.
_HALF_BELOW = 4
_HALF_ABOVE = 12
# Against the model's band, in its spreads.
_BAND_FAR = 3.0
# New tokens only: so many bytes a token of the whole prompt show it beside a short count.
_ADDED_RATIO = 9.0


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
    return _Judgement(sizes, sent, tokens, trace, band).verdict()


def _too_short(sizes: Sizes, sent: int, tokens: int, trace: Trace) -> CutVerdict:
    """A count too small to judge. What a window leaves is more: beside a long prompt it tells that
    only new tokens are counted, and the next call adds to these bytes."""
    if sent >= LEAST_BYTES and tokens > 0 and not sizes.is_trimmed:
        tells = not trace.cuts and sent / tokens > _ADDED_RATIO
        trace = trace._replace(
            last_bytes=sent,
            last_tokens=tokens,
            last_messages=sizes.messages or 0,
            new_only_mille=min(trace.new_only_mille + 2000 * tells, NEW_ONLY_MOST),
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


class _Judgement(Evidence):
    """One call while it is judged: which rule its evidence meets, and what is remembered of it."""

    def verdict(self) -> CutVerdict:
        if self.is_plain():
            return self._leave(self._learned(), None, is_learned=True)
        if self.may_be_new_only():
            self.trace = self.trace._replace(new_only_mille=self.new_only_mille())
            if self.trace.new_only_mille > 0:
                return self._leave(self.trace, None)
        elif self.counts_new() and not self.is_whole() and self._window() is None:
            # Neither what is new nor all of it: doubt grows whether only new tokens are counted.
            less = max(self.trace.new_only_mille - 1000, 0)
            return self._leave(self.trace._replace(new_only_mille=less), None)
        rule = self._rule()
        if rule is None:
            return self._leave(self._learned(), None, is_learned=True)
        return self._leave(self._cut(), rule)

    def _rule(self) -> tuple[CutRule, int | None] | None:
        window = self._window()
        if window is not None:
            return window
        if self.counts_new():
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
        if self.counts_new():
            return None
        for window in WINDOWS if told is None else (told, *WINDOWS):
            above = self.tokens - window // 2
            if -_HALF_BELOW <= above <= _HALF_ABOVE and self.is_short(0.25):
                return CutRule.HALF_WINDOW, window
            if self.tokens == window and self.is_short(0.03):
                return CutRule.WHOLE_WINDOW, window
        # A window that a person chose, as 10,000. People also write round counts: its half and two
        # is no such count, the whole of it is, and is left to the rules of growth.
        if self.tokens % 500 == 2 and self.is_short(0.45):
            return CutRule.HALF_WINDOW, (self.tokens - 2) * 2
        if self.is_at_pin() and self.is_short(0.0):
            return CutRule.PINNED, None
        return None

    def _rule_of_growth(self) -> tuple[CutRule, int | None] | None:
        """Against the conversation's own clean calls, while its messages are only added to."""
        if self.is_pinned():
            return CutRule.PINNED, None
        if self.has_risen():
            return None
        is_off = self.off > self.far_here() or self.has_leaned()
        if is_off and not self.is_explained():
            fell = self.tokens < 0.98 * self.trace.last_tokens
            return (CutRule.FELL if fell else CutRule.STALLED), None
        return None

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
            if self.is_explained():
                return None
            if self.off <= least or self.has_outgrown(top) or self.is_other_tokenizer():
                return None
            return CutRule.STILL_CUT, None
        if self.has_shrunk or self.has_outgrown(trace.cut_top_tokens):
            return self._rule_of_band()
        return CutRule.STILL_CUT, None

    def _rule_of_band(self) -> tuple[CutRule, int | None] | None:
        """A call with nothing before it, against the calls of its model."""
        deviation = self.band.deviation(self.sent, self.tokens)
        spread = self.band.spread * (NEAR_FAR if self.is_near_window() else 1.0)
        least = max(_BAND_FAR * spread, LEAST_BAND_OFF)
        if deviation > least and self.sent / self.tokens > ORDINARY_RATIO:
            return (CutRule.OUT_OF_BAND, None) if not self.is_explained() else None
        return None

    def _leave(
        self, trace: Trace, rule: tuple[CutRule, int | None] | None, *, is_learned: bool = False
    ) -> CutVerdict:
        reasoning = self.sizes.reasoning or 0
        after = trace.with_newest(
            last_bytes=self.sent,
            last_tokens=self.tokens,
            last_messages=self.sizes.messages or 0,
            reasoning=reasoning if is_learned else self.trace.reasoning + reasoning,
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
        has_risen = self.has_risen()
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
        # Written out: to replace members of a tuple takes three times as long, for every call.
        return Trace(
            round_number=trace.round_number,
            model=trace.model,
            clean=trace.clean + 1,
            ratio_mille=ratio,
            scatter_mille=scatter,
            first_bytes=trace.first_bytes,
            first_tokens=trace.first_tokens,
            at_bytes=self.sent,
            top_tokens=max(trace.top_tokens, self.tokens),
            last_bytes=trace.last_bytes,
            last_tokens=trace.last_tokens,
            last_messages=trace.last_messages,
            new_only_mille=trace.new_only_mille,
            reasoning=trace.reasoning,
            lean_calls=min(trace.lean_calls + 1, 9) if leans else 0,
            lean_mille=trace.lean_mille + round(self.off * 1000) if leans else 0,
        )

    def _held(self) -> Trace:
        """More tokens than ever, yet fewer than the bytes explain: the next call tells."""
        trace = self.trace
        if trace.held_bytes and self.goes_on():
            return first_clean(trace, sent_bytes=self.sent, tokens=self.tokens)
        return trace._replace(held_bytes=self.sent, held_tokens=self.tokens)
