"""Conversations in which something was due a moment ago: it most likely is again.

Before most calls a look tells that nothing is due (`operations.care.peeking`). In caution it tells
the contrary each time, and then it is only one more round trip to the database before the step.
"""

from __future__ import annotations

from collections import OrderedDict

# Conversations under way at once in one process, by far.
_MOST = 10_000
# So many steps without a look. A level that was left without a clear costs that many in vain.
_STEPS = 7

Who = tuple[int, str]  # project, caller


class DueSteps:
    """The conversations that took a step lately. Used on one event loop."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._left: OrderedDict[tuple[Who, str], int] = OrderedDict()

    def is_due(self, who: Who, name: str) -> bool:
        """Whether to take the step without a look; counts it."""
        left = self._left.get((who, name), 0)
        if left:
            self._left[who, name] = left - 1
        return left > 0

    def note(self, who: Who, name: str, *, is_over: bool) -> None:
        """Remember that something was due in the conversation, or with is_over that it is no
        more."""
        if is_over:
            self._left.pop((who, name), None)
        elif not self._left.get((who, name)):
            self._left[who, name] = _STEPS
            while len(self._left) > self._most:
                self._left.popitem(last=False)
