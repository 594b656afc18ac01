"""The house that all kinds of callers visit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from tests.access.cast import House, make_full_house


@pytest.fixture(scope="module")
def full_house(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[House]:
    """A house for all tests of a module: what one of them does is rolled back to it.

    To make it takes as long as fifteen pages.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_full_house()
        transaction.set_rollback(True)
