"""What a list shows, as a file: all of it, by its filters, and nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import cast

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.pages.parts.lists.list_files import COLUMNS
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import listing
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TrimFilters
from tests.factories import make_capture, make_project, record


def file_of(client: Client, address: str) -> str:
    response = cast("StreamingHttpResponse", client.get(address))
    assert (address, response.status_code) == (address, 200)
    return response.getvalue().decode()


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


@pytest.mark.parametrize(
    ("address", "ids"),
    [
        ("calls", {"talk-0", "talk-1", "talk-2", "talk-3", "talk-4", "cut", "lost"}),
        ("conversations", {"talk", "plans", "quiet"}),
        ("plans", {"plan-1"}),
        ("trims", {"FIT"}),
    ],
)
def test_both_kinds_of_file_hold_the_whole_list(
    viewer: Client, filled: str, address: str, ids: set[str]
) -> None:
    rows = rows_of(file_of(viewer, f"/export/{address}.csv"))
    items = [json.loads(line) for line in file_of(viewer, f"/export/{address}.ndjson").splitlines()]

    assert {filled if each == "FIT" else each for each in ids} <= {row["id"] for row in rows}
    assert [row["id"] for row in rows] == [item["id"] for item in items]
    assert tuple(rows[0]) == COLUMNS[address]
    # Each column is a path that the items have: none of them is empty by a wrong name.
    for path in COLUMNS[address]:
        head, _, rest = path.partition(".")
        assert head in items[0]
        assert not rest or any(rest in (item[head] or {rest}) for item in items)


def test_a_list_links_to_its_file_with_its_filters(viewer: Client, filled: str) -> None:
    html = viewer.get("/calls/?level=critical&open=talk-4").content.decode()
    link = html.split('href="/export/calls.csv', 1)[1].split('"', 1)[0].replace("&amp;", "&")

    rows = rows_of(file_of(viewer, f"/export/calls.csv{link}"))

    assert "open=" not in link
    assert [row["id"] for row in rows] == ["talk-4"]
    assert rows[0]["usage.prompt_tokens"] == "120000"
    assert rows[0]["cause.name"] == ""
    wrong = viewer.get("/export/calls.csv?level=blue")
    assert (wrong.status_code, wrong["Location"]) == (302, "/calls/?level=blue&project=default")
    assert viewer.get("/export/keys.csv").status_code == 404
    assert viewer.get("/export/calls.xlsx").status_code == 404


def test_no_cell_is_a_formula_and_no_other_project_is_told(
    owner: Client, project: ProjectInfo
) -> None:
    evil = '=HYPERLINK("http://x","a")\r\n+1'
    record(make_capture(id="-1+1", model=evil, error_message="@SUM(A1)"), project=project)
    record(make_capture(id="theirs"), project=make_project(slug="other"))

    (row,) = rows_of(file_of(owner, "/export/calls.csv"))

    assert (row["id"], row["model"]) == ("'-1+1", f"'{evil}")
    assert [row["id"] for row in rows_of(file_of(owner, "/export/calls.csv?project=other"))] == [
        "theirs"
    ]


def test_a_file_is_read_by_pieces(
    filled: str, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of queries is that of the pieces; what moves on meanwhile is not left out."""
    for module, name in (
        (call_listing, "_EXPORT_CHUNK"),
        (listing, "_CHUNK"),
        (trims, "_EXPORT_CHUNK"),
    ):
        monkeypatch.setattr(module, name, 2)
    moved = make_capture(id="talk-5", conversation="talk")

    with CaptureQueriesContext(connection) as queries:
        told = [
            each.id for each in call_listing.export(project_id=project.id, filters=CallFilters())
        ]
    found = listing.export(project_id=project.id, filters=ConversationFilters())
    first = next(found)
    record(moved, project=project)
    rest = [each.id for each in found]

    assert len(told) == len(set(told)) == 8
    # Four full pieces, and one that is empty.
    assert len(queries) == 5
    assert {first.id, *rest} == {"talk", "plans", "quiet"}
    assert sum(1 for _ in trims.export(project_id=project.id, filters=TrimFilters())) == 1
