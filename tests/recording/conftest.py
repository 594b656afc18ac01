"""A project and the few budgets that recording is tested with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from tests.recording.support import make_ruled_project


@pytest.fixture(autouse=True)
def _fresh_budget_cache() -> Iterator[None]:
    # A rolled back database gives the same numbers again; the cache would take them for known.
    budgets.forget_cache()
    yield
    budgets.forget_cache()


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """The default project; it keeps no texts."""
    return make_ruled_project()
