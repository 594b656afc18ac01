"""Silent cuts: what core.truncation finds in made-up conversations, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.truncation.calibration import Band, Sample, learn_band
from helmdash.core.truncation.detector import judge_cut
from helmdash.core.truncation.sentences import describe, evidence
from helmdash.core.truncation.sizes import CutRule, Sizes, Suspicion
from helmdash.core.truncation.traces import Trace, read_trace
from tests.support.cut_scores import Score, score
from tests.support.cut_talks import talks
from tests.support.real_talks import real_talks, tokenizers

# Not the seeds that the constants were chosen on (0 to 3).
_SEEDS = (11, 12)
_TALKS = 240


def _judge(calls: Iterable[Sizes], band: Band | None = None) -> list[Suspicion | None]:
    """The suspicions of one conversation's calls, its trace stored and read between them."""
    stored: object = None
    found: list[Suspicion | None] = []
    for sizes in calls:
        trace = read_trace(stored, round_number=1, model="m")
        verdict = judge_cut(sizes, trace, band or Band())
        stored = verdict.trace.to_json()
        found.append(verdict.suspicion)
    return found


def _rules(calls: Iterable[Sizes], band: Band | None = None) -> list[str]:
    return [found.rule.value if found else "" for found in _judge(calls, band)]


def _grown(
    count: int, *, ratio: float = 4.0, start: int = 20_000, step: int = 2_000
) -> list[Sizes]:
    """Calls that are only added to, with their whole counts."""
    sizes = [start + number * step for number in range(count)]
    return [
        Sizes(bytes=size, tokens=round(size / ratio), messages=2 * number + 2)
        for number, size in enumerate(sizes)
    ]


def _told(calls: Sequence[Sizes], tokens: Sequence[int]) -> list[Sizes]:
    return [sizes._replace(tokens=count) for sizes, count in zip(calls, tokens, strict=True)]


def _model_band(ratio: float, *, conversations: int = 20) -> Band:
    return learn_band(
        [
            Sample(
                conversation=number,
                sent_bytes=20_000,
                tokens=round(20_000 / ratio),
                is_learned=True,
            )
            for number in range(conversations)
        ]
    )


def test_most_cuts_are_found_and_hardly_a_whole_call_is_suspected() -> None:
    total = Score()
    for seed in _SEEDS:
        total += score(talks(seed, _TALKS))

    assert total.cut > 4_000
    assert total.whole > 8_000
    assert total.found / total.cut >= 0.95
    assert total.false / total.whole <= 0.01


@pytest.mark.parametrize("tokenizer", tokenizers())
def test_so_it_is_with_real_messages_and_any_tokenizer(tokenizer: str) -> None:
    found = score(real_talks(tokenizer, 5, _TALKS))

    assert found.cut > 2_000
    assert found.whole > 3_000
    assert found.found / found.cut >= 0.95
    assert found.false / found.whole <= 0.01


@pytest.mark.parametrize(
    ("tokens", "rule"),
    [
        ([5_000, 5_500, 4_098], CutRule.HALF_WINDOW),  # half of 8,192 and two more
        ([5_000, 5_500, 5_500], CutRule.PINNED),  # 2,000 bytes more, not one token
        ([5_000, 5_500, 4_300], CutRule.FELL),  # tokens fall while bytes grow
        ([7_692, 8_100, 8_192], CutRule.WHOLE_WINDOW),  # a power of two, to the token
    ],
)
def test_a_cut_after_whole_calls_is_found_at_once(tokens: list[int], rule: CutRule) -> None:
    ratio = 20_000 / tokens[0]
    calls = _told(_grown(3, ratio=ratio, step=2_400), tokens)

    assert _rules(calls) == ["", "", rule.value]


def test_every_call_after_a_cut_is_suspected_until_the_client_compacts() -> None:
    grown = _grown(8, step=2_500)
    cut = _told(grown[3:], [4_098] * 5)
    compacted = Sizes(bytes=12_000, tokens=3_000, messages=3)

    assert _rules([*grown[:3], *cut, compacted, *_grown(2, start=14_000)]) == [
        *[""] * 3,
        *["half_window"] * 5,
        *[""] * 3,
    ]


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        # 160,689 tokens sent to a window of 32,768 (ollama issue 3839).
        (Sizes(bytes=640_000, tokens=16_387), CutRule.HALF_WINDOW),
        # Far outside what any text has, and no window that is known.
        (Sizes(bytes=90_000, tokens=7_777), CutRule.OUT_OF_BAND),
        # The server was told a window of its own, and it is full.
        (Sizes(bytes=26_000, tokens=6_000, window=6_000), CutRule.WHOLE_WINDOW),
        (Sizes(bytes=31_000, tokens=3_002, window=6_000), CutRule.HALF_WINDOW),
    ],
)
def test_a_first_call_is_told_by_what_a_window_leaves_or_by_the_widest_band(
    sizes: Sizes, rule: CutRule
) -> None:
    assert _rules([sizes]) == [rule.value]


def test_the_learned_band_of_a_model_finds_a_first_call_that_the_wide_one_leaves_alone() -> None:
    call = Sizes(bytes=40_000, tokens=7_013)

    assert _rules([call]) == [""]
    assert _rules([call], _model_band(3.2)) == ["out_of_band"]


def test_a_maximum_that_others_met_tells_a_call_by_itself() -> None:
    samples = [
        Sample(conversation=number, sent_bytes=size, tokens=166_000, is_learned=False)
        for number, size in enumerate((700_000, 760_000, 820_000))
    ]
    band = learn_band([*samples, *(_whole(number) for number in range(10, 20))])

    assert band.pins == (166_000,)
    assert _rules([Sizes(bytes=690_000, tokens=165_998)], band) == ["pinned"]


def _whole(conversation: int) -> Sample:
    return Sample(conversation=conversation, sent_bytes=40_000, tokens=10_000, is_learned=True)


def _cached_only() -> list[Sizes]:
    """A server that counts only what it evaluated anew: 500 tokens a turn."""
    return _told(_grown(8), [5_000, *[512, 498, 505, 2_050, 501, 507, 495]])


def _images() -> list[Sizes]:
    """Each turn brings a picture of 300 KB, for about a thousand tokens."""
    return [
        Sizes(bytes=20_000 + 300_000 * number, tokens=5_000 + 1_100 * number, is_blind=number > 0)
        for number in range(6)
    ]


def _short() -> list[Sizes]:
    """Nothing to tell: a template outweighs the words."""
    return [Sizes(bytes=1_900, tokens=20), Sizes(bytes=9_000, tokens=120)]


def _reasoning_left_out() -> list[Sizes]:
    """The provider drops the reasoning of earlier turns; the client goes on sending it."""
    calls = [sizes._replace(reasoning=600) for sizes in _grown(4, step=3_000)]
    return [*calls, Sizes(bytes=32_000, tokens=6_400)]


def _trimmed() -> list[Sizes]:
    """The caller says that it cut the prompt itself."""
    return [*_grown(4), Sizes(bytes=28_000, tokens=3_000, is_trimmed=True)]


def _same_again() -> list[Sizes]:
    """A retry: the same bytes, the same count."""
    return [sizes for sizes in _grown(4) for _ in range(3)]


def _blob() -> list[Sizes]:
    """Dashes and blanks, twenty bytes a token, come in one turn and stay."""
    return [
        Sizes(bytes=size + 30_000 * (number > 2), tokens=size // 4 + 1_500 * (number > 2))
        for number, size in enumerate(range(20_000, 36_000, 2_000))
    ]


def _to_english() -> list[Sizes]:
    """Chinese first, 2.6 bytes a token; then English, 4.4."""
    grown = [Sizes(bytes=20_000 + 3_000 * number, tokens=0) for number in range(12)]
    counts = [7_692 + round(3_000 * number / 2.6) for number in range(6)]
    counts += [counts[-1] + round(3_000 * number / 4.4) for number in range(1, 7)]
    return _told(grown, counts)


def _unknown() -> list[Sizes]:
    """No bytes, or no count."""
    return [Sizes(bytes=None, tokens=4_096), Sizes(bytes=90_000, tokens=None)]


@pytest.mark.parametrize(
    "calls",
    [
        _cached_only,
        _images,
        _short,
        _reasoning_left_out,
        _trimmed,
        _same_again,
        _blob,
        _to_english,
        _unknown,
    ],
)
def test_what_looks_like_a_cut_and_is_none_is_left_alone(calls: object) -> None:
    assert callable(calls)
    found = calls()

    assert _rules(found) == [""] * len(found)


def test_another_tokenizer_under_the_same_name_is_learned_after_a_few_calls() -> None:
    grown = _grown(16)
    changed = [sizes._replace(tokens=(sizes.tokens or 0) * 3 // 4) for sizes in grown[5:]]

    rules = _rules([*grown[:5], *changed])

    assert set(rules[:5]) == {""}
    assert set(rules[9:]) == {""}


def test_another_model_or_round_begins_anew() -> None:
    trace = judge_cut(Sizes(bytes=40_000, tokens=10_000), Trace(), Band()).trace
    stored = read_trace(trace.to_json(), round_number=1, model="a").to_json()

    assert read_trace(stored, round_number=2, model="a").clean == 0
    assert read_trace(stored, round_number=1, model="b").clean == 0


@pytest.mark.parametrize(
    "stored",
    [None, {}, [], [1], [9, 1, 2], [1, 1, *["x"] * 19], "text", [1, *[None] * 20]],
)
def test_a_trace_that_cannot_be_read_is_an_empty_one(stored: object) -> None:
    assert read_trace(stored, round_number=3, model="m") == read_trace(
        None, round_number=3, model="m"
    )


_COUNTS = st.one_of(st.none(), st.integers(min_value=0, max_value=2**53))
_SIZES = st.builds(
    Sizes,
    bytes=_COUNTS,
    tokens=st.one_of(st.none(), st.integers(min_value=1, max_value=2**53)),
    messages=_COUNTS,
    cached=_COUNTS,
    reasoning=_COUNTS,
    window=st.one_of(st.none(), st.integers(min_value=1, max_value=2**40)),
    is_blind=st.booleans(),
    is_trimmed=st.booleans(),
)


@settings(max_examples=150)
@given(st.lists(_SIZES, max_size=12))
def test_no_sizes_break_the_judge_or_its_words(calls: list[Sizes]) -> None:
    for found in _judge(calls):
        assert found is None or describe(found)


def test_the_evidence_is_a_sentence_with_its_numbers_and_the_next_step() -> None:
    calls = _grown(4, ratio=4.2, step=7_000)
    cut = Sizes(bytes=41_200, tokens=2_050, messages=10)
    found = _judge([*calls, cut])[-1]

    assert found is not None
    told = evidence(found)
    assert told["version"] == "cuts-2"
    assert told["rule"] == "half_window"
    assert told["reported_tokens"] == 2_050
    assert str(told["detail"]).startswith(
        "About 9,800 tokens were expected for 41 KB (4.2 bytes a token over 4 calls); "
        "2,050 were reported, half of a window of 4,096. Raise num_ctx"
    )
