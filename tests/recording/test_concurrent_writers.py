"""Many writers at once, each with a connection of its own: nothing lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture
from helmdash.operations.fitting.catalogs import Imported, import_catalog
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, CatalogRevision, Conversation, Project, StoredMessage
from tests.factories import NOW, make_capture
from tests.recording import load
from tests.recording.support import at_once, make_ruled_project, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def full(transactional_db: None) -> ProjectInfo:
    return make_ruled_project(payload="full")


def capture(call: dict[str, Any]) -> Capture:
    return Capture(**{**call, "messages": tuple(call["messages"])})


def test_every_call_is_stored_once_and_numbered_without_gap(full: ProjectInfo) -> None:
    shares = load.shares(calls=600, writers=8)

    def write(requests: list[list[dict[str, Any]]]) -> list[Recorded]:
        return [
            answer
            for request in requests
            for answer in record(full, *(capture(call) for call in request))
        ]

    answers = [a for share in at_once([partial(write, share) for share in shares]) for a in share]

    sent = {name for share in shares for name in load.ids(share)}
    assert set(Call.objects.values_list("name", flat=True)) == sent
    assert Call.objects.count() == len(sent) == 540
    load.assert_each_answered_once_as_new([(answer.id, answer.duplicate) for answer in answers])
    load.assert_numbered_without_gap_or_double(full.id)
    assert StoredMessage.objects.count() == len(sent) + 1
    by_id: dict[str, set[Recorded]] = {}
    for answer in answers:
        by_id.setdefault(answer.id, set()).add(replace(answer, duplicate=False))
    assert all(len(different) == 1 for different in by_id.values())


def test_one_id_from_everybody_at_once_is_stored_once(full: ProjectInfo) -> None:
    calls = [make_capture(id="one", conversation=f"talk-{n}") for n in range(8)]

    answers = at_once([partial(record, full, call) for call in calls])

    assert Call.objects.count() == 1
    assert Conversation.objects.count() == 1
    assert [a.duplicate for (a,) in answers].count(False) == 1
    assert len({a.conversation for (a,) in answers}) == 1


def test_the_same_batch_of_repeats_in_opposite_orders_ends(full: ProjectInfo) -> None:
    calls = [make_capture(id=f"id-{n}", conversation=None) for n in range(40)]

    at_once([partial(record, full, *(calls if n % 2 else calls[::-1])) for n in range(6)])

    assert Call.objects.count() == 40


def test_batches_over_the_same_conversations_in_opposite_orders_end(full: ProjectInfo) -> None:
    names = [f"talk-{n}" for n in range(20)]
    message = {"role": "system", "content": "Be brief."}

    def batch(order: Sequence[str]) -> list[Capture]:
        return [make_capture(conversation=name, messages=(message,)) for name in order]

    at_once([partial(record, full, *batch(names if n % 2 else names[::-1])) for n in range(6)])

    assert Call.objects.count() == 120
    load.assert_numbered_without_gap_or_double(full.id)


def test_catalogs_imported_at_once_are_numbered_in_a_row(full: ProjectInfo) -> None:
    def catalog(number: int) -> dict[str, Any]:
        return {"packs": [{"name": f"pack-{number}"}], "pipelines": []}

    def put(number: int) -> Imported:
        return import_catalog(
            actor=SHELL, project_id=full.id, name="demo", body=catalog(number), now=NOW
        )

    done = at_once([partial(put, number) for number in range(8)])

    assert sorted(each.number for each in done) == list(range(1, 9))
    assert CatalogRevision.objects.count() == 8
    newest = CatalogRevision.objects.get(number=8)
    assert Project.objects.get(pk=full.id).current_catalog_id == newest.pk
