"""What a migration marks is counted anew."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from helmdash.records.models import RollupState
from tests.factories import make_project


@pytest.mark.parametrize(
    ("is_complete", "version", "expected"),
    [
        (True, 4, (True, 5, None)),
        (True, 3, (True, 3, None)),
        # What was being counted begins anew, whichever version it was of.
        (False, 3, (False, 3, None)),
        (False, 4, (False, 4, None)),
        (True, 5, (True, 5, 7)),
    ],
)
def test_plans_by_other_keys_are_counted_anew(
    db: None, is_complete: bool, version: int, expected: object
) -> None:
    migration = import_module("helmdash.records.migrations.0046_failed_calls_and_plans")
    RollupState.objects.create(
        project_id=make_project().id, is_complete=is_complete, version=version, rebuilt_down_to=7
    )

    migration.mark_projects(apps, None)

    state = RollupState.objects.get()
    assert (state.is_complete, state.version, state.rebuilt_down_to) == expected
