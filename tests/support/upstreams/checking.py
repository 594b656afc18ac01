"""Requests are read as strictly as the vendors read them: what they would refuse is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Invalid(Exception):
    """The vendor would answer 400; `where` is the member."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where
        self.message = message


def known(value: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Only these members (and a test's own, which begin with `x_`). Raises Invalid."""
    allowed = set(names)
    for name in value:
        if name not in allowed and not name.startswith("x_"):
            raise Invalid(f"{where}{name}", "unknown member")


def need(condition: object, where: str, message: str) -> None:
    """Raises Invalid unless the condition holds."""
    if not condition:
        raise Invalid(where, message)


def behaviours(prefix: str, names: Iterable[str]) -> list[str]:
    """Model ids a server lists."""
    return [f"{prefix}-{name}" for name in names]


# What a server lists: enough for a bare model name to find its way.
LISTED = ("plain", "cached", "refusal", "slow", "reasoning", "two-tools", "usage-missing")
