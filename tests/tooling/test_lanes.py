"""What the lanes of `make test` leave out is proven by what they keep."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ROOT
from tests.support.laws import FEW
from tests.support.statements import (
    Told,
    function_of,
    in_few_words,
    kinds_of,
    read_list,
    said_elsewhere,
    shape_of,
)


def test_every_test_that_is_left_out_on_the_second_database_exists() -> None:
    gone = {
        line
        for line in read_list()
        if (parts := function_of(line).split("::"))[1] not in functions(parts[0])
    }

    assert gone == set(), "run `make said-elsewhere`, or take the lines out"


@cache
def functions(path: str) -> set[str]:
    """The functions of a test file; none, where there is no file."""
    file = ROOT / path
    # No tree of it: to parse three hundred files takes seconds.
    return set(re.findall(r"(?m)^def (\w+)", file.read_text("utf-8") if file.exists() else ""))


def test_those_stay_that_together_ask_everything_for_the_least_time() -> None:
    found = {
        "a served test": Told(seconds=9, asked={"a"}, may_stay_away=False),
        "a dear test": Told(seconds=5, asked={"a", "b", "c"}),
        "a cheap test": Told(seconds=1, asked={"b", "a"}),
        "another": Told(seconds=1, asked={"c"}),
        "one that asks nothing": Told(seconds=1),
    }

    assert said_elsewhere(found) == ["a dear test", "one that asks nothing"]


def test_a_function_whose_cases_all_stay_away_is_named_once() -> None:
    found = ["a.py::one[x]", "a.py::one[y@z]", "a.py::two[x]", "a.py::two[y]", "a.py::three"]

    lines = in_few_words([found[0], found[1], found[3], found[4]], found)

    assert lines == ["a.py::one", "a.py::three", "a.py::two[y]"]


def test_a_statement_is_known_by_its_shape_and_the_kinds_of_its_values() -> None:
    one = shape_of("SELECT a FROM t1 WHERE b = 'x' AND c IN (%s, %s, %s) LIMIT 21")

    assert one == shape_of("SELECT a FROM t1  WHERE b = '' AND c IN (%s) LIMIT 5")
    assert one != shape_of("SELECT a FROM t1 WHERE b = 'x' AND d IN (%s) LIMIT 21")
    assert kinds_of([1, True, None, "plain", {"deep": [2**31, -(2**63)]}]) == {"32 bits", "64 bits"}
    assert kinds_of(("ä", "x\0", "x" * 3000, float("nan"))) == {
        *("beyond ASCII", "U+0000", "long", "no number")
    }


@given(st.integers())
@settings(max_examples=FEW * 5)
def test_a_law_is_tried_with_a_few_examples(request: pytest.FixtureRequest, number: int) -> None:
    asked = vars(request.function)["_hypothesis_internal_use_settings"].max_examples

    assert asked == (FEW * 5 if request.config.getoption("--whole-laws") else FEW), number
