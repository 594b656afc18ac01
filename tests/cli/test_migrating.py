"""A step of an upgrade that takes long is told, and one that does not is not."""

from __future__ import annotations

from queue import Empty, SimpleQueue

import pytest
from django.core.management import call_command
from django.db.migrations import Migration

from helmdash.cli.migrating import MigrateCommand

_STEP = Migration("0019_projects_first", "records")
_PATIENCE_SECONDS = 30


def test_a_step_that_takes_long_is_told_and_the_end_as_well(db: None) -> None:
    said: SimpleQueue[str] = SimpleQueue()
    command = MigrateCommand(said.put, after=0.0)

    command.migration_progress_callback("apply_start", _STEP)
    told = said.get(timeout=_PATIENCE_SECONDS)
    command.migration_progress_callback("apply_success", _STEP)
    call_command(command, interactive=False, verbosity=0)

    assert told.startswith("Bringing the tables up to date: step 19 of ")
    assert told.endswith(" (0019_projects_first) …")
    assert said.get(timeout=_PATIENCE_SECONDS) == "The tables are up to date."
    with pytest.raises(Empty):
        said.get_nowait()


def test_quick_steps_are_not_told(db: None) -> None:
    said: SimpleQueue[str] = SimpleQueue()
    command = MigrateCommand(said.put, after=3600.0)

    for action in ("apply_start", "apply_success"):
        command.migration_progress_callback(action, _STEP)
    call_command(command, interactive=False, verbosity=0)

    with pytest.raises(Empty):
        said.get_nowait()
