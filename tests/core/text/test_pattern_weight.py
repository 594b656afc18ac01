"""The weight of an expression is a bound from above of what it costs, however it is written."""

from __future__ import annotations

import pytest

from helmdash.core.text.pattern_weight import weigh


@pytest.mark.parametrize(
    ("pattern", "places", "least_units"),
    [
        ("", 0, 0),
        ("abc", 3, 3),
        (r"^[a-z0-9_-]{1,64}$", 64, 64 * 60),
        (r"\w{200}", 200, 200_000),
        (r"\p{Letter}{3}", 3, 3_000),
        (r"\pL{3}", 3, 3_000),
        (r"[^\w\d]{4,}", 4, 8_000),
        (r"\(?ext", 4, 4),
        (r"(?:a{10}){10}", 100, 100),
        (r"a{10}{10}{10}", 1_000, 1_000),
        (r"(?P<name>ab|cd){5}", 20, 20),
        (r"(?i)ab{3}", 4, 8),
        (r"(?i:ab){3}", 6, 12),
        # Signs that look like others.
        (r"[]\w]{7}", 7, 7_000),
        (r"[^]\w]{7}", 7, 7_000),
        (r"[[a]\w]{7}", 7, 7_000),
        (r"[\]\w]{7}", 7, 7_000),
        (r"[(]\w{7}", 8, 7_000),
        (r"\(\w{7}\)", 9, 7_000),
        (r"\[\w{7}", 8, 7_000),
        (r"\\{5}", 5, 5),
        (r"\x{41}{5}", 5, 5),
        ("é{5}", 5, 5),
        (r"(((\w{7}", 7, 7_000),
        (r")\w{7}", 7, 7_000),
    ],
)
def test_what_an_expression_weighs(pattern: str, places: int, least_units: int) -> None:
    weight = weigh(pattern)

    assert weight is not None
    assert (weight.places, weight.units >= least_units) == (places, True)


def test_numbers_of_any_length_have_an_end() -> None:
    weight = weigh("(" * 500 + "a" + "){999999999999999999999}" * 500)

    assert weight is not None
    assert weight.places == 10**12


@pytest.mark.parametrize("pattern", ["(?x)a # [", "(?ix: a )", "(?sx-u)a", r"\\(?x)a"])
def test_what_the_text_does_not_tell_has_none(pattern: str) -> None:
    assert weigh(pattern) is None
