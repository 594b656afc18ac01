"""An operator who is signed in to the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from tests.admin.house import make_house


@pytest.fixture(autouse=True)
def _no_cached_budgets() -> None:
    budgets.forget_cache()


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """The default project, a fallback and one more budget."""
    return make_house()


@pytest.fixture
def operator(client: Client, project: ProjectInfo) -> Client:
    """A superuser's browser."""
    client.force_login(get_user_model().objects.create_superuser(username="operator"))
    return client
