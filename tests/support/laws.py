"""How many examples of a law (a test with hypothesis's `given`) a run tries.

Each law says how many it deserves, 25 to 400, and they were 60 % of what the tests of `core` took.
A lane tries a few of each; `--whole-laws` tries all that are asked for, as a change of what a law
is about should. With CI=true hypothesis draws the same examples in every run.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

# What one example in ten breaks is found by 40 in 985 of 1,000 runs.
FEW = 40
# Not a public name; if it goes, the laws take longer.
_SETTINGS = "_hypothesis_internal_use_settings"


def try_few(items: list[pytest.Item]) -> None:
    """Bound the examples of the laws among these tests."""
    for item in items:
        law = getattr(item, "obj", None)
        asked = getattr(law, _SETTINGS, None)
        if isinstance(asked, settings) and asked.max_examples > FEW:
            setattr(law, _SETTINGS, settings(asked, max_examples=FEW))
