"""What happens when something that a test needs is not on this machine.

A skipped test is easily taken for a passed one. So a thing that is missing fails the run under
CI=true, and elsewhere is named at the end of the run together with how to get it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

_MARK = "NOT TESTED: "


def in_ci() -> bool:
    """Whether nothing may be left out of this run."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing(what: str, how: str) -> NoReturn:
    """Fail under CI, else skip so that `summary` names it. `how`: why it is, and how to get it."""
    sentence = f"{what} is missing. {how}"
    if in_ci():
        pytest.fail(sentence, pytrace=False)
    pytest.skip(_MARK + sentence)


def summary(skipped: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """One line for each missing thing, with the number of tests that wanted it."""
    reasons = Counter(
        report.longrepr[2].split(_MARK, 1)[1]
        for report in skipped
        if isinstance(report.longrepr, tuple) and _MARK in report.longrepr[2]
    )
    return [f"{_MARK}{count} test(s): {reason}" for reason, count in sorted(reasons.items())]
