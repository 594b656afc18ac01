"""What people do on the pages: sign in, make keys, load demo data, try a fit, choose a scheme."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.views.defaults import server_error

from helmdash.operations.access import members, sign_in_links
from helmdash.operations.jobs import kinds
from helmdash.queries.access.access import ProjectInfo, api_keys, find_caller
from tests.factories import make_capture, make_key, make_project, record
from tests.pages.conftest import CATALOG
from tests.pages.hygiene import faults

# --- signing in -------------------------------------------------------------------------------


def test_signing_in_leads_to_where_one_wanted_to_go(client: Client, owner: Client) -> None:
    data = {"username": "owner", "password": "owner-password", "next": "/calls/?level=critical"}

    assert client.post("/login/", data)["Location"] == "/calls/?level=critical&project=default"
    assert client.get("/login/")["Location"] == "/?project=default"


def test_a_wrong_password_is_said_beside_the_form(client: Client, owner: Client) -> None:
    response = client.post("/login/", {"username": "owner", "password": "guess"})

    html = response.content.decode()
    assert "do not match" in html
    assert 'value="owner"' in html
    assert faults(html) == []


def test_signing_in_does_not_lead_to_another_host(client: Client, owner: Client) -> None:
    data = {"username": "owner", "password": "owner-password", "next": "https://evil.example/"}

    assert client.post("/login/", data)["Location"] == "/?project=default"


def test_a_sign_in_link_works_once_and_looking_at_it_does_not_use_it(
    client: Client, owner: Client
) -> None:
    path = sign_in_links.make_link_path(username="owner")

    for _ in range(2):
        page = client.get(path)
        assert page.status_code == 200
        assert faults(page.content.decode()) == []
        assert client.get("/").status_code == 302

    assert client.post(path)["Location"] == "/?project=default"
    assert client.get("/").status_code == 200

    stranger = Client()
    assert stranger.post(path).status_code == 410
    assert stranger.get("/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_a_link_that_is_used_many_times_at_once_lets_one_in() -> None:
    User.objects.create_user("vera")
    path = sign_in_links.make_link_path(username="vera")

    def use(_: int) -> int:
        try:
            return Client().post(path).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        statuses = sorted(threads.map(use, range(16)))

    assert statuses == [302, *[410] * 15]


@pytest.mark.parametrize("path", ["/login/link/x/y/", "/login/link/MQ/abc-def/"])
def test_a_made_up_link_opens_nothing(client: Client, owner: Client, path: str) -> None:
    assert client.get(path).status_code == 410
    assert client.post(path).status_code == 410


def test_who_has_no_link_is_told_the_command_that_makes_one(client: Client, db: None) -> None:
    """No start shows a link of anybody but the first admin, and in a log not even that."""
    spent = client.get("/login/link/MQ/abc-def/").content.decode()
    sign_in = client.get("/login/").content.decode()

    assert "<code>manage.py member link NAME</code>" in spent
    assert "<code>manage.py member link admin</code>" in sign_in


def test_signing_out_takes_a_post(owner: Client) -> None:
    assert owner.get("/logout/").status_code == 405
    assert owner.get("/").status_code == 200

    assert owner.post("/logout/")["Location"] == "/login/"
    assert owner.get("/").status_code == 302


# --- the first minutes ------------------------------------------------------------------------


def test_the_first_page_waits_with_a_snippet_for_this_very_address(
    owner: Client, project: ProjectInfo
) -> None:
    html = owner.get("/", headers={"Host": "localhost:8123"}).content.decode()

    assert "Waiting for the first call" in html
    assert "http://localhost:8123/api/v1/calls" in html
    assert "$HELMDASH_API_KEY" in html
    assert faults(html) == []


@pytest.mark.parametrize("path", ["/", "/calls/", "/conversations/", "/conversations/talk/"])
def test_a_fragment_brings_no_blanks_that_would_add_up_in_a_tab(
    owner: Client, project: ProjectInfo, path: str
) -> None:
    record(make_capture(id="one", conversation="talk"), project=project)

    html = owner.get(path, headers={"HX-Request": "true"}).content.decode()

    assert html == html.strip()
    assert re.findall(r"\s<[^<>]*hx-swap-oob", html) == []
    assert ("hx-swap-oob" in html) is (path == "/conversations/talk/")


def test_the_first_page_turns_into_the_overview_with_the_first_call(
    owner: Client, project: ProjectInfo
) -> None:
    etag = owner.get("/", headers={"HX-Request": "true"})["ETag"]
    polls = {"HX-Request": "true", "If-None-Match": etag}

    assert owner.get("/", headers=polls).status_code == 304
    record(project=project)
    html = owner.get("/", headers=polls).content.decode()

    assert "Waiting for the first call" not in html
    assert "/conversations/talk/" in html

    # What is there was written for another zone than the reader's, once that is known.
    polls["If-None-Match"] = owner.get("/", headers=polls)["ETag"]
    assert owner.get("/", headers=polls).status_code == 304
    owner.cookies["helmdash_zone"] = "Asia/Tokyo"
    assert owner.get("/", headers=polls).status_code == 200


def test_the_key_made_for_the_snippet_records_a_call(owner: Client, project: ProjectInfo) -> None:
    page = owner.post("/first-key/")
    html = page.content.decode()
    key = re.search(r'id="key">([^<]+)<', html)

    assert key is not None
    assert html.count(key[1]) == 3
    assert page["Cache-Control"] == "no-store"
    caller = find_caller(key=key[1])
    assert caller is not None
    assert caller.may("record")
    assert not caller.may("admin")
    # The key stays on the page while nothing has come: the poll is answered with 304.
    etag = re.search(r'data-etag="&quot;(\w+)&quot;"', html)
    assert etag is not None
    polls = {"HX-Request": "true", "If-None-Match": f'"{etag[1]}"'}
    assert owner.get("/", headers=polls).status_code == 304
    assert key[1] not in owner.get("/").content.decode()


def test_demo_data_comes_and_goes_and_is_never_mixed_with_real_calls(
    owner: Client, project: ProjectInfo
) -> None:
    assert owner.post("/settings/demo/load/")["Location"] == "/?project=demo"
    waiting = owner.get("/").content.decode()
    assert kinds.demo_now(lambda told: None, lambda step: None)
    demo = owner.get("/").content.decode()
    assert "Demo data." in demo
    assert "It is being loaded: a server begins in a moment" in waiting
    assert "No demo call yet" in waiting
    assert "being loaded" not in demo
    assert "Waiting for the first call" not in waiting + demo
    assert "Nothing on this page is yours" in owner.get("/settings/demo/").content.decode()
    assert "Demo data." in owner.get("/settings/").content.decode()

    back = owner.get("/?project=default").content.decode()
    assert "Demo data." not in back
    assert "Waiting for the first call" in back

    owner.post("/settings/demo/remove/")
    gone = owner.get("/").content.decode()
    assert "The demo data is removed." in gone
    assert "Demo data." not in gone


def test_demo_data_that_is_cancelled_says_so_and_can_be_loaded_again(
    owner: Client, project: ProjectInfo
) -> None:
    owner.post("/settings/demo/load/")

    def cancel(step: str) -> None:
        if step.startswith("fit 2"):
            owner.post("/settings/demo/cancel/")

    kinds.demo_now(lambda told: None, cancel)
    part = owner.get("/").content.decode()
    owner.post("/settings/demo/load/")
    owner.post("/settings/demo/cancel/")
    never = owner.get("/").content.decode()
    owner.post("/settings/demo/load/")
    owner.post("/settings/demo/remove/")

    assert "Loading it was cancelled" in part
    assert "Load it again" in part
    assert "Loading it was cancelled" in never
    # Nobody is left to fill it for, and it does not come back.
    told: list[str] = []
    assert kinds.demo_now(told.append, lambda step: None)
    assert told == ["the demo project was removed"]
    assert "Demo data." not in owner.get("/").content.decode()


def test_without_a_choice_real_calls_go_before_demo_data(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    owner.post("/settings/demo/load/")
    kinds.demo_now(lambda told: None, lambda step: None)
    assert "Demo data." in viewer.get("/").content.decode()

    record(make_capture(conversation="real"), project=project)

    html = viewer.get("/").content.decode()
    assert "Demo data." not in html
    assert "/conversations/real/" in html
    # Whoever loaded it wants to see it.
    assert "Demo data." in owner.get("/").content.decode()


def test_a_poll_does_not_switch_the_project_of_other_tabs(
    owner: Client, project: ProjectInfo
) -> None:
    make_project(slug="other")
    record(project=project)

    owner.get("/calls/?project=other", headers={"HX-Request": "true"})

    assert 'data-project="default"' in owner.get("/calls/").content.decode()


def test_another_project_is_shown_by_its_name_in_the_address(
    owner: Client, project: ProjectInfo
) -> None:
    other = make_project(slug="other")
    record(make_capture(conversation="theirs"), project=other)
    record(make_capture(conversation="ours"), project=project)

    assert "/conversations/ours/" in owner.get("/").content.decode()
    assert "/conversations/theirs/" in owner.get("/?project=other").content.decode()
    assert "/conversations/theirs/" in owner.get("/conversations/").content.decode()


# --- settings ---------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_ends_when_it_is_revoked(
    owner: Client, project: ProjectInfo
) -> None:
    page = owner.post("/settings/keys/", {"name": "nightly", "scopes": ["record", "read"]})
    secret = re.search(r'id="secret">([^<]+)<', page.content.decode())

    assert secret is not None
    assert page["Cache-Control"] == "no-store"
    assert faults(page.content.decode()) == []
    assert secret[1] not in owner.get("/settings/").content.decode()
    assert find_caller(key=secret[1]) is not None

    owner.post("/settings/keys/revoke/", {"name": "nightly"})
    assert find_caller(key=secret[1]) is None
    assert "is revoked" in owner.get("/settings/").content.decode()


WRONG_KEYS = [
    ("", ["read"], "Name: say who will use the key"),
    ("new", [], "Scopes: tick at least one scope"),
    ("new", ["root"], "Scopes: "),
    ("taken", ["read"], "Name: an active key is called taken"),
]


def test_a_key_that_cannot_be_made_says_why_and_keeps_what_was_typed(
    owner: Client, project: ProjectInfo
) -> None:
    make_key(name="taken")

    for name, scopes, said in WRONG_KEYS:
        response = owner.post("/settings/keys/", {"name": name, "scopes": scopes})

        html = response.content.decode()
        assert (said, response.status_code) == (said, 422)
        assert said in html
        assert f'value="{name}"' in html or not name
    assert len(api_keys()) == 1


def test_revoking_what_is_not_there_says_so(owner: Client, project: ProjectInfo) -> None:
    owner.post("/settings/keys/revoke/", {"name": "nobody\x00"})

    assert "no active key is called nobody" in owner.get("/settings/").content.decode()


STAFF_ONLY = [
    "/first-key/",
    "/settings/keys/",
    "/settings/keys/revoke/",
    "/settings/demo/load/",
    "/settings/demo/cancel/",
    "/settings/demo/remove/",
    "/settings/gateway/policy/",
    "/settings/upstreams/test/",
    "/settings/upstreams/1/test/",
]


def test_a_viewer_may_not_change_anything(viewer: Client) -> None:
    for path in STAFF_ONLY:
        response = viewer.post(path, {"name": "mine", "scopes": ["admin"]})

        html = response.content.decode()
        assert (path, response.status_code, faults(html)) == (path, 403, [])
        assert "Ask one of its owners" in html
    assert api_keys() == ()


# --- try a fit --------------------------------------------------------------------------------


def test_a_fit_shows_what_stays_what_goes_and_the_catalog_itself(
    owner: Client, filled: str
) -> None:
    data = {"model": "unheard/of", "intent": "write a blog", "catalog": json.dumps(CATALOG)}

    response = owner.post("/try/fit/", data)

    html = response.content.decode()
    assert response.status_code == 200
    assert faults(html) == []
    assert "write-blog" in html
    assert "single_pick" in html
    assert "room for 10,000 bytes" in html
    fitted = re.search(r'id="fitted-json"><code>(.*?)</code>', html, re.DOTALL)
    assert fitted is not None
    assert "tool.1" in fitted[1]


def test_without_a_catalog_the_one_in_force_is_fitted(owner: Client, filled: str) -> None:
    response = owner.post("/try/fit/", {"model": "openai/gpt-4o", "intent": "write", "catalog": ""})

    assert "It fits as it is" in response.content.decode()


WRONG_FITS: list[tuple[dict[str, str], str]] = [
    ({"model": ""}, "Model: name the model"),
    ({"intent": " "}, "Intent: say what the agent is to do"),
    ({"catalog": "{not json"}, "Catalog: is not JSON: line 1, column 2"),
    ({"catalog": "null"}, "Catalog: must be an object"),
    ({"catalog": "[" * 100_000}, "Catalog: is not JSON"),
    ({"catalog": '{"x":' * 201 + "1" + "}" * 201}, "Catalog: is not JSON: nested more than 200"),
    ({"catalog": '{"packs":[{"name":""}]}'}, "Catalog: packs.0.name"),
    ({"catalog": '{"packs":[{"name":"a"},{"name":"a"}]}'}, "packs.1.name"),
    ({"catalog": '{"packs":7}'}, "Catalog: packs"),
    # This project has no catalog in force.
    ({"catalog": ""}, "Catalog: paste a catalog"),
]


def test_a_fit_that_cannot_be_made_says_it_beside_the_field_and_loses_nothing(
    owner: Client, project: ProjectInfo
) -> None:
    for wrong, said in WRONG_FITS:
        typed = {"model": "openai/gpt-4o", "intent": "my precious intent", "catalog": "{}"} | wrong
        for headers in ({}, {"HX-Request": "true"}):
            response = owner.post("/try/fit/", typed, headers=headers)

            html = response.content.decode()
            assert (said, response.status_code, faults(html)) == (said, 422, [])
            assert said in html
            assert ("my precious intent" in html) is ("intent" not in wrong)


# --- small things -----------------------------------------------------------------------------


def test_the_scheme_one_chose_is_written_into_every_page(owner: Client) -> None:
    assert "data-theme" not in owner.get("/help/").content.decode()

    assert owner.post("/theme/", {"theme": "dark", "next": "/help/"})["Location"] == "/help/"
    assert 'data-theme="dark"' in owner.get("/help/").content.decode()

    owner.post("/theme/", {"theme": "", "next": "https://evil.example/"})
    assert "data-theme" not in owner.get("/help/").content.decode()


def test_the_way_back_after_choosing_a_scheme_stays_on_this_host(owner: Client) -> None:
    response = owner.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})

    assert response["Location"] == "/"


def test_a_form_without_its_token_gets_a_page_that_explains(db: None, project: ProjectInfo) -> None:
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(User.objects.create_user("someone"))

    response = careful.post("/theme/", {"theme": "dark"})

    assert response.status_code == 403
    assert "out of date" in response.content.decode()
    assert faults(response.content.decode()) == []


def test_the_page_for_our_own_mistakes_needs_no_database(rf: RequestFactory) -> None:
    request: HttpRequest = rf.get("/")

    html = server_error(request).content.decode()

    assert "HelmDash made a mistake" in html
    assert faults(html) == []


def test_the_icon_is_there_for_everybody(client: Client, db: None) -> None:
    assert client.get("/favicon.ico")["Location"].endswith("favicon.svg")


def test_a_first_admin_signs_in_with_the_password_of_the_terminal(
    client: Client, project: ProjectInfo
) -> None:
    password = members.ensure_admin(password="")

    assert (
        client.post("/login/", {"username": "admin", "password": password})["Location"]
        == "/?project=default"
    )


def test_a_link_made_in_another_project_leads_there(owner: Client, project: ProjectInfo) -> None:
    other = make_project(slug="other")
    record(make_capture(conversation="here"), project=project)
    record(make_capture(conversation="there", id="call-there"), project=other)
    owner.get("/?project=default")

    for path in ("/conversations/there/", "/calls/call-there/"):
        answer = owner.get(path)
        assert answer.status_code == 302
        assert answer["Location"] == f"{path}?project=other"
    assert owner.get("/conversations/there/?project=default").status_code == 404
    assert owner.get("/conversations/nowhere/").status_code == 404
    assert owner.get("/conversations/there/?project=other").status_code == 200
