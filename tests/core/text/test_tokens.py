"""Sizes and the estimator: exact, on UTF-8 bytes, and the two directions agree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.text.tokens import Estimator, compact_json, json_bytes, utf8_bytes

FACTORS = st.decimals("0.1", "20", places=2).map(float)


@pytest.mark.parametrize(
    ("characters", "tokens"),
    [
        (0, 0),
        (1, 2),  # ceil(1 / 4) = 1, x 1.2 = 1.2
        (4, 2),
        (5, 3),
        (20, 6),
        (300_000, 90_000),  # 75,000 x 1.2 is 90,000; in floats it can come out as 90,001
        (400_000, 120_000),
    ],
)
def test_estimate_rounds_up_twice(characters: int, tokens: int) -> None:
    assert Estimator().tokens("x" * characters) == tokens


def test_chinese_text_is_counted_in_utf8_bytes() -> None:
    assert Estimator().tokens("数" * 100_000) == 90_000


@pytest.mark.parametrize(
    ("chars_per_token", "safety_multiplier", "n", "tokens"),
    [
        (4.0, 1.0, 9, 3),
        (3.5, 1.2, 7, 3),
        (2.5, 1.1, 25, 11),  # 10 x 1.1 is 11, not 11.000000000000002
        (0.5, 3.0, 1, 6),
    ],
)
def test_estimator_takes_its_factors_as_written(
    chars_per_token: float, safety_multiplier: float, n: int, tokens: int
) -> None:
    estimator = Estimator(chars_per_token=chars_per_token, safety_multiplier=safety_multiplier)

    assert estimator.tokens_of_bytes(n) == tokens


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_factor_is_refused_by_name(factor: float) -> None:
    with pytest.raises(ValueError, match="safety_multiplier"):
        Estimator(safety_multiplier=factor)


@given(tokens=st.integers(0, 10**7), cpt=FACTORS, multiplier=FACTORS)
@settings(max_examples=60, deadline=None)
def test_bytes_within_is_the_largest_size_that_fits(
    tokens: int, cpt: float, multiplier: float
) -> None:
    estimator = Estimator(chars_per_token=cpt, safety_multiplier=multiplier)

    n = estimator.bytes_within(tokens)

    assert n == 0 or estimator.tokens_of_bytes(n) <= tokens
    assert estimator.tokens_of_bytes(n + 1) > tokens


def test_no_room_gives_no_bytes() -> None:
    assert Estimator().bytes_within(0) == 0
    assert Estimator().bytes_within(-5) == 0


@given(a=st.integers(0, 10**9), b=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_the_whole_never_costs_more_than_its_parts(a: int, b: int) -> None:
    estimator = Estimator()

    whole = estimator.tokens_of_bytes(a + b)

    assert whole <= estimator.tokens_of_bytes(a) + estimator.tokens_of_bytes(b)
    assert whole >= estimator.tokens_of_bytes(max(a, b))


def test_json_is_compact_in_given_order_and_unescaped() -> None:
    value = {"b": [1, 2.5, None, True], "a": "é数"}

    assert compact_json(value) == '{"b":[1,2.5,null,true],"a":"é数"}'
    assert json_bytes(value) == len(compact_json(value).encode())


def test_a_lone_surrogate_has_a_size() -> None:
    value = json.loads('"\\ud800"')

    assert json_bytes(value) == 5
    assert utf8_bytes(value) == 3
