"""A stored catalog is the bytes that were given, on either database."""

from __future__ import annotations

import json

import pytest

from helmdash.core.tokens import compact_json
from helmdash.operations.catalog import import_catalog
from helmdash.queries import catalog
from tests.factories import NOW, make_project


@pytest.mark.django_db
def test_keys_keep_their_order_and_numbers_their_spelling() -> None:
    given = json.loads(
        '{"packs":[{"zebra":1e20,"name":"b.two","metadata":{"b":1.0,"a":[2]}},{"name":"a.one"}],'
        '"about":"z first","pipelines":[]}'
    )
    project = make_project()

    done = import_catalog(project_id=project.id, name="own", body=given, now=NOW)

    stored = catalog.body(revision_id=done.revision_id)
    assert compact_json(stored) == compact_json(given)
    prepared = catalog.prepared(revision_id=done.revision_id)
    assert compact_json(prepared.catalog.raw) == compact_json(given)
