"""Going somewhere by name: what is found, in which order, and for whom."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from helmdash.pages.parts.places import ACTIONS, PAGES
from helmdash.queries import finder
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, make_project, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan

PALETTE = {"HX-Request": "true"}


def options(html: str) -> list[tuple[str, str]]:
    """Address and name of each option."""
    told = re.findall(r'role="option"[^>]* href="([^"]*)"><span[^>]*>([^<]*)<', html)
    return [(unescape(address), name) for address, name in told]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("talk", ("/conversations/talk/?project=default", "talk")),
        ("  talk-3 ", ("/calls/talk-3/?project=default", "talk-3")),
        ("also/with", ("/calls/also/with%20slash/?project=default", "also/with slash")),
        ("plan-", ("/plans/plan-1/?project=default", "plan-1")),
        ("GPT-4O", ("/calls/?model=openai%2Fgpt-4o&project=default", "openai/gpt-4o")),
        ("trims", ("/trims/?project=default", "Trims")),
        ("retention", ("/settings/?project=default", "Settings")),
        ("failed calls", ("/calls/?cause=any&project=default", "See failed calls")),
    ],
)
def test_what_is_called_so_comes_first(
    viewer: Client, filled: str, text: str, first: tuple[str, str]
) -> None:
    html = viewer.get("/find/", {"q": text}, headers=PALETTE).content.decode()

    assert options(html)[0] == first
    # The page has the same for who uses no script.
    page = viewer.get("/find/", {"q": text}).content.decode()
    assert faults(page) == []
    assert first[1] in page.split("<main")[1]


def test_a_fit_is_found_by_its_id_and_by_how_it_begins(viewer: Client, filled: str) -> None:
    for text in (filled, filled[:12]):
        html = viewer.get("/find/", {"q": text}, headers=PALETTE).content.decode()
        assert options(html) == [(f"/trims/{filled}/?project=default", filled)]


def test_an_id_that_many_others_begin_with_is_found_by_itself(project: ProjectInfo) -> None:
    record(
        *(make_capture(id=f"job-1{n}", conversation=f"job-1{n}") for n in range(8)),
        make_capture(id="job-1", conversation="job-1"),
        project=project,
    )
    for n in range(8):
        make_plan(project, f"job-1{n}")
    make_plan(project, "job-1")

    found = finder.find(project_id=project.id, text="job-1")

    for kind in ("conversation", "call", "plan"):
        names = [each.id for each in found if each.kind == kind]
        assert names[0] == "job-1"
        assert len(names) == finder.MOST_FOUND


def test_a_conversation_is_found_by_a_part_of_its_id_after_those_that_begin_so(
    viewer: Client, project: ProjectInfo
) -> None:
    for name in ("billing-old", "move-Billing-to-v2", "release-notes"):
        record(make_capture(conversation=name), project=project)

    html = viewer.get("/find/", {"q": "billing"}, headers=PALETTE).content.decode()

    assert [name for _, name in options(html)] == ["billing-old", "move-Billing-to-v2"]


@pytest.mark.parametrize("text", ["", "   ", "x" * 300, "nul\x00", "%", "_", "\\", "'"])
def test_odd_texts_find_nothing_of_a_project(viewer: Client, filled: str, text: str) -> None:
    page = viewer.get("/find/", {"q": text}, headers=PALETTE)

    assert page.status_code == 200
    assert "/calls/talk" not in page.content.decode()


def test_nothing_of_another_project_is_found(viewer: Client, project: ProjectInfo) -> None:
    record(make_capture(id="secret-1"), project=make_project(slug="other"))

    assert options(viewer.get("/find/", {"q": "secret"}, headers=PALETTE).content.decode()) == []


def test_actions_are_offered_to_who_may_take_them(
    viewer: Client, editor: Client, owner: Client, filled: str
) -> None:
    def offered(client: Client) -> set[str]:
        html = client.get("/find/", headers=PALETTE).content.decode()
        return {name for _, name in options(html)}

    assert {"Calls", "See failed calls"} <= offered(viewer)
    assert offered(viewer) < offered(editor) < offered(owner)
    assert offered(editor) - offered(viewer) >= {"Try a plan", "Add a budget"}
    assert offered(owner) - offered(editor) >= {"Make an API key", "Add an upstream", "Audit log"}


def test_what_is_found_costs_a_fixed_number_of_queries(
    project: ProjectInfo, filled: str, django_assert_num_queries: object
) -> None:
    with django_assert_num_queries(10):  # type: ignore[operator]
        finder.find(project_id=project.id, text="talk")


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("change budget", "/budgets/?project=default"),
        ("undo", "/budgets/edits/?project=default"),
        ("mute", "/?project=default#failing"),
        ("snooze", "/?project=default#needs-attention"),
        ("dark", "/profile/?project=default"),
        ("side by side", "/compare/plans/?project=default"),
        ("gpt-4o", "/budgets/?model=openai%2Fgpt-4o&project=default"),
    ],
)
def test_an_action_is_found_by_what_people_call_it(
    owner: Client, filled: str, text: str, leads: str
) -> None:
    found = options(owner.get("/find/", {"q": text}, headers=PALETTE).content.decode())

    assert leads in [address for address, _ in found]
    assert owner.get(leads).status_code == 200


def test_whatever_the_navigation_has_is_found_by_name(owner: Client, filled: str) -> None:
    page = owner.get("/find/").content.decode()
    rail, main = page.split("<main")
    links = dict(re.findall(r'<li[^>]*><a href="([^"]*)"[^>]*>([^<]+)</a>', rail))

    named = {"Connect", "Admin", "Week", "Try it"}
    assert named <= set(links.values())
    # What can be tried has three names of its own.
    assert [name for name in links.values() if f">{name}<" not in main] == ["Try it"]
    for text in ("connect", "alerts", "what-if", "preflight", "api"):
        assert options(owner.get("/find/", {"q": text}, headers=PALETTE).content.decode())


def test_every_place_is_there(owner: Client, filled: str) -> None:
    statuses = {place.address: owner.get(place.address).status_code for place in (*PAGES, *ACTIONS)}

    assert statuses == dict.fromkeys(statuses, 200)
