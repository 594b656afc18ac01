"""What a migration marks is counted anew."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from helmdash.records.models import RollupState
from tests.factories import make_capture, make_project
from tests.recording.support import make_ruled_project, record


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


@pytest.mark.parametrize(
    ("before", "calls", "expected"),
    [
        # (is_complete, version, rebuilt_down_to); None: a project without a row has all figures.
        (None, 1, (True, 5, None)),
        (None, 0, None),
        ((True, 5, None), 1, (True, 5, None)),
        ((True, 5, None), 0, (True, 6, None)),
        # What was being counted begins anew.
        ((True, 4, 7), 1, (True, 4, None)),
        ((False, 5, 7), 1, (False, 5, None)),
    ],
)
def test_calls_are_counted_for_what_clients_spent(
    db: None,
    before: tuple[bool, int, int | None] | None,
    calls: int,
    expected: tuple[bool, int, int | None] | None,
) -> None:
    migration = import_module("helmdash.records.migrations.0061_spending_by_client")
    project = make_ruled_project()
    record(project, *(make_capture() for _ in range(calls)))
    RollupState.objects.all().delete()
    if before is not None:
        complete, version, reached = before
        RollupState.objects.create(
            project_id=project.id,
            is_complete=complete,
            version=version,
            rebuilt_down_to=reached,
        )

    migration.mark_projects(apps, None)

    state = RollupState.objects.filter(project_id=project.id).first()
    told = state and (state.is_complete, state.version, state.rebuilt_down_to)
    assert told == expected
