from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.http import HttpResponse
from django.test import Client
from django.urls import path

from helmdash.core.access.permissions import MemberRole
from helmdash.queries import upstreams
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.secrets import seal
from helmdash.records.models import Upstream
from helmdash.urls import urlpatterns
from tests.admin.forms import filled, text_of
from tests.admin.house import make_project
from tests.factories import sign_in

LIST = "/admin/records/upstream/"
ADD = LIST + "add/"
KEY = "sk-very-hidden-0123456789"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    upstreams.forget_cache()


def sent(**over: Any) -> dict[str, Any]:
    values = {
        "project": "",
        "name": "acme",
        "kind": "openai",
        "base_url": "https://llm.acme.test/v1",
        "key_variable": "",
        "key": "",
        "models_served": "",
        "read_timeout_s": 600,
        "enabled": "on",
    }
    return {**values, **over}


def errors(response: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = response.context["adminform"].form.errors
    return found


def test_a_typed_key_is_used_and_never_shown(
    operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    saved = operator.post(ADD, sent(key=KEY), follow=True)

    row = Upstream.objects.get(name="acme")
    (endpoint,) = upstreams.endpoints(project_id=None)
    assert endpoint.api_key == KEY
    pages = [
        saved,
        *(
            operator.get(page)
            for page in (
                LIST,
                f"{LIST}{row.pk}/change/",
                f"{LIST}{row.pk}/history/",
                f"{LIST}{row.pk}/delete/",
                "/admin/",
            )
        ),
        operator.post(f"{LIST}{row.pk}/change/", sent(key="sk another", key_variable="x")),
    ]
    for page in pages:
        assert page.status_code == 200
        assert KEY not in page.content.decode()
        assert row.key_encrypted not in page.content.decode()
        assert "sk another" not in page.content.decode()
    assert "Stored. Type to replace it" in text_of(pages[2])
    assert KEY not in caplog.text
    assert KEY not in str(Upstream.objects.filter(pk=row.pk).values())
    assert KEY not in str(LogEntry.objects.values())
    assert KEY not in repr(upstreams.listing(project_id=None))
    assert KEY not in repr(endpoint)


def test_what_to_type_is_set_apart_in_the_help_of_a_field(operator: Client) -> None:
    """Help texts are the models', which have backticks; they were shown as they are."""
    html = operator.get(ADD).content.decode()

    assert "What stands before the slash in <code>provider/model</code>" in html
    assert "`" not in html.split("<form", 1)[1].split("</form>", 1)[0]


def test_a_key_stays_when_the_form_is_saved_without_one(operator: Client) -> None:
    operator.post(ADD, sent(key=KEY))
    row = Upstream.objects.get(name="acme")
    url = f"{LIST}{row.pk}/change/"

    operator.post(url, filled(operator, url, read_timeout_s=30))

    (endpoint,) = upstreams.endpoints(project_id=None)
    assert (endpoint.api_key, endpoint.read_timeout_s) == (KEY, 30.0)


def test_a_stored_key_goes_to_no_other_host(operator: Client) -> None:
    operator.post(ADD, sent(key=KEY))
    row = Upstream.objects.get(name="acme")
    page = f"{LIST}{row.pk}/change/"

    moved = operator.post(page, filled(operator, page, base_url="https://mine.test/v1"))

    (said,) = errors(moved)["key"]
    assert "type it again" in said
    same_host = {"base_url": "https://LLM.acme.test/v2"}
    for over, key in (
        (same_host, KEY),
        ({"base_url": "https://mine.test/v1", "key": "sk-mine"}, "sk-mine"),
        ({"base_url": "https://theirs.test", "forget_key": "on"}, None),
    ):
        operator.post(page, filled(operator, page) | over)
        upstreams.forget_cache()
        (endpoint,) = upstreams.endpoints(project_id=None)
        assert (endpoint.base_url, endpoint.api_key) == (over["base_url"], key)


@pytest.mark.parametrize(
    ("over", "key"),
    [
        # typed anew
        ({"key": "sk-other"}, "sk-other"),
        # the box is ticked
        ({"forget_key": "on"}, None),
        # a variable takes its place
        ({"key_variable": "ACME_API_KEY"}, KEY),
    ],
)
def test_a_stored_key_is_replaced_or_forgotten(
    operator: Client, over: dict[str, str], key: str | None
) -> None:
    row = Upstream.objects.create(
        name="acme", kind="openai", base_url="https://a.test/v1", key_encrypted=seal("sk-old")
    )
    url = f"{LIST}{row.pk}/change/"

    operator.post(url, filled(operator, url, **over))

    (endpoint,) = upstreams.endpoints(project_id=None)
    assert endpoint.api_key == key
    row.refresh_from_db()
    assert bool(row.key_encrypted) == ("key" in over)


def test_a_key_that_cannot_be_read_any_more_has_to_be_entered_again(operator: Client) -> None:
    row = Upstream.objects.create(
        name="acme", kind="openai", base_url="https://a.test/v1", key_encrypted="gAAAAAsomething"
    )

    page = operator.get(f"{LIST}{row.pk}/change/")

    assert "Enter it again" in text_of(page)
    assert "stored, but unreadable" in text_of(operator.get(LIST))
    (endpoint,) = upstreams.endpoints(project_id=None)
    assert endpoint.api_key is None
    (info,) = upstreams.listing(project_id=None)
    assert "Enter it again" in (info.problem or "")


def test_the_list_says_where_each_key_comes_from(operator: Client) -> None:
    for name, over in {
        "one": {"key_variable": "ACME_API_KEY"},
        "two": {"key_variable": "MISSING_API_KEY"},
        "three": {"key_encrypted": seal(KEY)},
        "four": {},
    }.items():
        Upstream.objects.create(name=name, kind="openai", base_url="https://a.test/v1", **over)

    text = text_of(operator.get(LIST))

    assert "variable ACME_API_KEY (set)" in text
    assert "variable MISSING_API_KEY (not set)" in text
    assert " stored " in text
    assert " none " in text


@pytest.mark.parametrize(
    ("over", "field", "words"),
    [
        # a name that cannot stand before a slash
        ({"name": "Acme/one"}, "name", "lower-case"),
        # an API nobody speaks
        ({"kind": "soap"}, "kind", "valid choice"),
        # not on the web
        ({"base_url": "ftp://a.test"}, "base_url", "http://"),
        # a password in the address
        ({"base_url": "https://me:word@a.test"}, "base_url", "user name"),
        # a query would come before the path
        ({"base_url": "https://a.test/v1?x=1"}, "base_url", "query"),
        # this machine, without the box
        ({"base_url": "http://127.0.0.1:11434"}, "base_url", "private addresses are allowed"),
        # the same in disguise
        ({"base_url": "http://0x7f.1"}, "base_url", "usual spelling"),
        # where clouds keep credentials, even with the box
        (
            {"base_url": "http://169.254.169.254", "allow_private": "on"},
            "base_url",
            "link-local",
        ),
        # our own key
        ({"key_variable": "HELMDASH_SECRET_KEY"}, "key_variable", "may not be sent"),
        # anything at all
        ({"key_variable": "PATH"}, "key_variable", "_KEY"),
        # two places at once
        ({"key": "sk-1", "key_variable": "ACME_API_KEY"}, "key", "not both"),
        # a line break would be a header of its own
        ({"key": "sk-1\u2028x"}, "key", "one word"),
        # not an id
        ({"models_served": "gpt 4"}, "models_served", "One a line"),
        # endless
        ({"read_timeout_s": 0}, "read_timeout_s", "greater than"),
    ],
)
def test_an_upstream_that_makes_no_sense_is_refused_by_field(
    operator: Client, over: dict[str, Any], field: str, words: str
) -> None:
    response = operator.post(ADD, sent(**over))

    assert list(errors(response)) == [field]
    assert words in str(errors(response)[field])
    assert not Upstream.objects.exists()


@pytest.mark.parametrize(
    "over",
    [
        # a name on a container network
        {"base_url": "http://ollama:11434", "kind": "ollama"},
        # this machine, with the box
        {"base_url": "http://127.0.0.1:8080/v1/", "allow_private": "on"},
        # models, some twice and with blank lines
        {"models_served": "gpt-*\r\n\r\n o1 \r\ngpt-*"},
    ],
)
def test_what_does_make_sense_is_taken(operator: Client, over: dict[str, Any]) -> None:
    operator.post(ADD, sent(**over))

    (endpoint,) = upstreams.endpoints(project_id=None)
    assert not endpoint.base_url.endswith("/")
    if "models_served" in over:
        assert endpoint.models == ("gpt-*", "o1")


def test_a_name_is_given_once_for_every_project_and_once_for_each(
    operator: Client, project: ProjectInfo
) -> None:
    other = make_project(slug="other")
    for whose in ("", project.id, other.id):
        assert operator.post(ADD, sent(project=whose)).status_code == 302

    for whose in ("", project.id):
        assert list(errors(operator.post(ADD, sent(project=whose)))) == ["name"]

    assert Upstream.objects.count() == 3


def test_what_is_allowed_but_likely_not_meant_is_pointed_out(operator: Client) -> None:
    page = operator.post(
        ADD, sent(base_url="https://a.test", key_variable="MISSING_API_KEY"), follow=True
    )

    assert "want /v1" in text_of(page)
    assert "MISSING_API_KEY is not set" in text_of(page)


def test_listing_for_pages_is_ready_for_json_and_holds_no_key(operator: Client) -> None:
    operator.post(ADD, sent(key=KEY))

    (info,) = upstreams.listing(project_id=None)

    assert (info.key_place, info.has_key, info.problem) == ("stored", True, None)
    assert KEY not in json.dumps(repr(info))


def test_somebody_who_may_only_look_sees_no_key_and_no_field_for_one(
    project: ProjectInfo,
) -> None:
    row = Upstream.objects.create(
        name="acme",
        kind="openai",
        base_url="https://a.test/v1",
        key_encrypted=seal(KEY),
        project_id=project.id,
    )
    client = sign_in("viewer", project=project, role=MemberRole.VIEWER)

    page = client.get(f"{LIST}{row.pk}/change/")

    assert page.status_code == 200
    assert 'name="key"' not in page.content.decode()
    assert row.key_encrypted not in page.content.decode()
    assert client.post(f"{LIST}{row.pk}/change/", sent(key="sk-x")).status_code == 403


def test_a_stored_upstream_can_be_tested_where_the_server_has_that_page(
    operator: Client, settings: Any
) -> None:
    row = Upstream.objects.create(name="acme", kind="openai", base_url="https://a.test/v1")
    place = "settings/upstreams/<int:pk>/test/"
    test_page = path(place, lambda request, pk: HttpResponse(f"{pk}"), name="test-upstream")
    settings.ROOT_URLCONF = (test_page, *urlpatterns)

    page = operator.get(f"{LIST}{row.pk}/change/").content.decode()

    assert f'action="/settings/upstreams/{row.pk}/test/"' in page
    assert "Test the saved upstream" not in operator.get(ADD).content.decode()


@pytest.mark.parametrize(
    ("kind", "formats", "stored", "problem"),
    [
        ("openai", [], "", None),
        ("openai", ["chat", "responses"], "chat responses", None),
        ("openai", ["responses"], "responses", None),
        ("anthropic", ["anthropic"], "anthropic", None),
        ("anthropic", ["anthropic", "chat"], None, "may speak anthropic."),
        ("openai", ["morse"], None, "morse"),
    ],
)
def test_an_upstream_says_which_formats_it_speaks(
    operator: Client, kind: str, formats: list[str], stored: str | None, problem: str | None
) -> None:
    answer = operator.post(ADD, sent(kind=kind, formats=formats))

    if problem is not None:
        assert problem in str(errors(answer)["formats"])
        return
    row = Upstream.objects.get(name="acme")
    assert row.formats == stored
    (endpoint,) = upstreams.endpoints(project_id=None)
    assert list(endpoint.formats) == formats
    page = operator.get(f"{LIST}{row.pk}/change/").content.decode()
    assert page.count(" checked") == len(formats) + 1  # and enabled
