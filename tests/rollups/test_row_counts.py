"""How much a project holds: conversations are not counted one by one for it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.database import sizes
from helmdash.queries.database.sizes import row_counts
from tests.factories import make_capture
from tests.recording.support import make_ruled_project, record


def test_conversations_are_as_many_as_stand_at_the_levels(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "MOST_COUNTED", 2)
    project = make_ruled_project()
    record(project, *(make_capture(conversation=f"talk-{number}") for number in range(3)))
    before = row_counts(project_id=project.id)
    fold_all()
    record(project, make_capture(conversation="one more"))

    with CaptureQueriesContext(connection) as queries:
        after = row_counts(project_id=project.id)

    # Before the first fold nobody has counted them.
    assert (before.conversations, "conversations" in before.bounded) == (2, True)
    assert (after.conversations, "conversations" in after.bounded) == (4, False)
    assert len(queries) <= 7
    assert not any("records_conversation" in each["sql"] for each in queries)
