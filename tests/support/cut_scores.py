"""How well core.truncation.detector judges a corpus of conversations whose truth is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from helmdash.core.truncation.calibration import Band, Sample, learn_band
from helmdash.core.truncation.detector import judge_cut
from helmdash.core.truncation.sizes import Sizes, is_judgeable
from helmdash.core.truncation.traces import read_trace
from tests.support.cut_talks import Talk

# As many of a model's newest calls as the recorder learns from.
_SAMPLES = 240


@dataclass
class Score:
    """Calls by their truth, and what was suspected of them."""

    cut: int = 0
    found: int = 0
    whole: int = 0
    false: int = 0

    def add(self, is_cut: bool, is_suspected: bool) -> None:
        self.cut += is_cut
        self.found += is_cut and is_suspected
        self.whole += not is_cut
        self.false += not is_cut and is_suspected

    def __add__(self, other: Score) -> Score:
        return Score(
            cut=self.cut + other.cut,
            found=self.found + other.found,
            whole=self.whole + other.whole,
            false=self.false + other.false,
        )


def score(corpus: Iterable[Talk]) -> Score:
    """Judge a corpus in its order, as the recorder does: traces stored, bands learned."""
    found = Score()
    samples: defaultdict[str, list[Sample]] = defaultdict(list)
    bands: defaultdict[str, Band] = defaultdict(Band)
    for number, talk in enumerate(corpus):
        stored: object = None
        for turn in talk.turns:
            name = talk.model + turn.model
            trace = read_trace(stored, round_number=turn.round_number, model=name)
            verdict = judge_cut(turn.sizes, trace, bands[name])
            stored = verdict.trace.to_json()
            found.add(turn.is_cut, verdict.suspicion is not None)
            if is_judgeable(turn.sizes):
                samples[name].append(_sample(number, turn.sizes, verdict.is_learned))
        for name in {talk.model + turn.model for turn in talk.turns}:
            bands[name] = learn_band(samples[name][-_SAMPLES:])
    return found


def _sample(conversation: int, sizes: Sizes, is_learned: bool) -> Sample:
    assert sizes.bytes is not None
    assert sizes.tokens is not None
    return Sample(
        conversation=conversation,
        sent_bytes=sizes.bytes,
        tokens=sizes.tokens,
        is_learned=is_learned,
    )
