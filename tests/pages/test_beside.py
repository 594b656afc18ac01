"""What lies open beside a list: by its address, whole or alone, and with its neighbours there."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

import pytest
from django.test import Client

from helmdash.queries.access.access import ProjectInfo
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan

ALONE = {"HX-Request": "true", "HX-Target": "panel"}


def opened(html: str) -> str | None:
    """The title of the panel; None where nothing lies open."""
    found = re.search(r'id="panel-title"[^>]*>([^<]*)<', html)
    return found[1] if found else None


def steps(html: str) -> tuple[str | None, str | None]:
    """The items that the panel leads to: before, after."""
    links = dict(re.findall(r'data-step="(-?1)" href="[^"]*[?;]open=([^"&]*)', html))
    before, after = (unquote_plus(links[side]) if side in links else None for side in ("-1", "1"))
    return before, after


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("/calls/", "cut", "What fills the prompt"),
        ("/calls/", "also/with slash", "What fills the prompt"),
        ("/conversations/", "talk", "Newest calls"),
        ("/plans/", "plan-1", "blog.publish"),
        ("/trims/", "", "Removed"),
    ],
)
def test_an_item_opens_with_the_list_and_alone(
    viewer: Client, filled: str, path: str, name: str, said: str
) -> None:
    name = name or filled
    html = viewer.get(path, {"open": name}).content.decode()
    part = viewer.get(path, {"open": name}, headers=ALONE).content.decode()

    assert faults(html) == []
    assert opened(html) == opened(part) == name
    assert said in html
    assert "<table" in html.split("<aside")[0]
    assert part.startswith("<aside")
    # A list that polls is asked for its rows, and for nothing beside them.
    rows = viewer.get(path, {"open": name}, headers={"HX-Request": "true"}).content.decode()
    assert opened(rows) is None


@pytest.mark.parametrize("path", ["/calls/", "/conversations/", "/plans/", "/trims/"])
@pytest.mark.parametrize("name", ["none-of-this-id", "with\x00nul"])
def test_what_is_not_there_is_said_beside_the_list(
    viewer: Client, filled: str, path: str, name: str
) -> None:
    page = viewer.get(path, {"open": name})

    assert page.status_code == 200
    assert "There is none of this id." in page.content.decode()
    assert opened(viewer.get(path).content.decode()) is None


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/calls/", {}),
        ("/calls/", {"model": "openai/gpt-4o"}),
        ("/calls/", {"q": "talk"}),
        ("/conversations/", {}),
        ("/conversations/", {"order": "newest"}),
        ("/plans/", {"outcome": "ok"}),
        ("/trims/", {}),
    ],
)
def test_neighbours_are_those_of_the_list(
    viewer: Client, project: ProjectInfo, filled: str, path: str, query: dict[str, str]
) -> None:
    record(
        *(
            make_capture(
                id=f"at-once-{n}", conversation=f"talk-{n % 3}", started_at=NOW, usage=None
            )
            for n in range(5)
        ),
        project=project,
    )
    for n in range(3):
        make_plan(project, f"plan-of-{n}", days=2 + n, entries=("",) if n == 1 else ("blog.write",))
    shown = re.findall(r'data-row="([^"]*)"', viewer.get(path, query).content.decode())
    walked = []
    at: str | None = shown[0]
    while at is not None:
        walked.append(at)
        before, at = steps(viewer.get(path, {**query, "open": at}, headers=ALONE).content.decode())
        assert before == (walked[-2] if len(walked) > 1 else None)

    assert walked == shown


def test_a_list_that_cannot_be_read_has_no_neighbours(viewer: Client, filled: str) -> None:
    page = viewer.get("/calls/", {"open": "cut", "level": "purple"})

    assert page.status_code == 400
    assert opened(page.content.decode()) == "cut"
    assert steps(page.content.decode()) == (None, None)
