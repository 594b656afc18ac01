from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.text.wilson import wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Worked by hand from Wilson's formula with z = 1.96.
        (8, 10, 0.4902, 0.9433),
        (81, 263, 0.2553, 0.3662),
        # none and all still have a width, and keep within 0 and 1
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_the_interval_is_wilsons(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-4)


def test_of_nothing_there_is_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_more_than_all_is_no_share(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(successes, n)


@settings(max_examples=100)
@given(st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_lies_within_and_ten_times_the_calls_narrow_it(case: tuple[int, int]) -> None:
    successes, n = case
    found, more = wilson(successes, n), wilson(successes * 10, n * 10)

    assert found is not None
    assert more is not None
    assert 0 <= found[0] <= successes / n <= found[1] <= 1
    assert more[1] - more[0] < found[1] - found[0]
