"""Caches that outlive a test's database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helmdash.queries import budgets, catalog


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    # A rolled back database gives the same numbers again; the caches would take them for known.
    budgets.forget_cache()
    catalog.prepared.cache_clear()
    yield
    budgets.forget_cache()
    catalog.prepared.cache_clear()
