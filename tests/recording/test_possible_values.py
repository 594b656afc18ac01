"""What no table takes is refused before it is written, also where SQLite does not ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from helmdash.records.models import Call, Conversation, HealthChange, Round
from helmdash.records.statements.bulk import allocate_ids, insert_rows
from helmdash.records.statements.possible_values import closed_sets, require_possible
from tests.factories import make_capture
from tests.recording.support import make_ruled_project, record

WORDS = {
    Call: {"status", "level", "finish_reason", "cause"},
    Conversation: {"level", "known_level"},
    Round: {"opened_by"},
}
COUNTS = ("prompt_tokens", "attempt", "http_status", "limit_tokens", "sent_bytes")


def test_the_words_are_those_of_the_tables() -> None:
    assert {model: set(closed_sets(model)) for model in WORDS} == WORDS
    assert {"from_level", "to_level"} <= set(closed_sets(HealthChange))


def test_what_is_possible_passes() -> None:
    names = ("level", "prompt_tokens", "known_level")
    require_possible(Conversation, names, [["healthy", None, ""], ["unknown", 0, "critical"]])


@pytest.fixture
def unchecked(db: None) -> Iterator[None]:
    """The database asks nothing, as on the connection of recording."""
    if connection.vendor == "sqlite":
        connection.cursor().execute("PRAGMA ignore_check_constraints=ON")
    yield
    if connection.vendor == "sqlite":
        connection.cursor().execute("PRAGMA ignore_check_constraints=OFF")


@pytest.mark.parametrize(
    "wrong",
    [*({each: -1} for each in COUNTS), *({each: "x"} for each in sorted(WORDS[Call]))],
    ids=str,
)
@pytest.mark.usefixtures("unchecked")
def test_a_call_that_its_table_refuses_is_refused(wrong: dict[str, Any]) -> None:
    record(make_ruled_project(), make_capture(id="one"))
    row = Call.objects.values().get() | wrong

    with transaction.atomic():
        (row["id"],) = allocate_ids(Call, 1)
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        insert_rows(Call, [row])
    assert Call.objects.count() == 1
