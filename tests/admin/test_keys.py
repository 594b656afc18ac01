from __future__ import annotations

import logging

import pytest
from django.test import Client

from helmdash.queries.access import access
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import ApiKey
from tests.admin.forms import filled, text_of
from tests.factories import make_key

LIST = "/admin/records/apikey/"
ADD = LIST + "add/"


def test_a_new_key_works_and_is_shown_exactly_once(
    operator: Client, project: ProjectInfo, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    response = operator.post(ADD, {"project": project.id, "name": "ci", "scopes": ["read", "fit"]})

    secret = response.context["secret"]
    assert response.content.decode().count(secret) == 1
    assert "no-store" in response["Cache-Control"]
    caller = access.find_caller(key=secret)
    assert caller is not None
    assert (caller.name, set(caller.scopes)) == ("ci", {"read", "fit"})
    row = ApiKey.objects.get(name="ci")
    for page in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/history/", "/admin/"):
        assert secret not in operator.get(page).content.decode()
    assert secret not in caplog.text
    assert secret not in str(ApiKey.objects.filter(pk=row.pk).values())
    assert secret not in str(dict(operator.session))


@pytest.mark.parametrize(
    ("over", "field"),
    [
        # nothing to do with it
        ({"scopes": []}, "scopes"),
        # a scope nobody knows
        ({"scopes": ["root"]}, "scopes"),
        # blank
        ({"name": "  "}, "name"),
        # no project
        ({"project": ""}, "project"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused_by_field(
    operator: Client, project: ProjectInfo, over: dict[str, object], field: str
) -> None:
    sent = {"project": project.id, "name": "ci", "scopes": ["read"], **over}

    response = operator.post(ADD, sent)

    assert list(response.context["adminform"].form.errors) == [field]
    assert not ApiKey.objects.exists()


def test_two_active_keys_cannot_have_one_name(operator: Client, project: ProjectInfo) -> None:
    make_key(name="ci")

    response = operator.post(ADD, {"project": project.id, "name": "ci", "scopes": ["read"]})

    assert "An active key has this name. Revoke it first." in text_of(response)
    assert ApiKey.objects.count() == 1
    make_key(name="nightly")
    url = f"{LIST}{ApiKey.objects.get(name='nightly').pk}/change/"
    renamed = operator.post(url, filled(operator, url, name="ci"))
    assert "An active key has this name. Revoke it first." in text_of(renamed)


def test_revoking_asks_first_and_then_ends_the_key_at_once(operator: Client) -> None:
    secret = make_key(name="ci")
    row = ApiKey.objects.get(name="ci")
    sent = {"action": "revoke", "_selected_action": [row.pk]}

    asked = operator.post(LIST, sent)
    assert "This cannot be undone" in text_of(asked)
    assert access.find_caller(key=secret) is not None
    finished = operator.post(LIST, {**sent, "confirmed": "yes"}, follow=True)

    assert "1 revoked" in text_of(finished)
    assert access.find_caller(key=secret) is None


def test_scopes_may_change_but_the_key_and_its_project_may_not(
    operator: Client, project: ProjectInfo
) -> None:
    secret = make_key(name="ci", scopes=("read",))
    row = ApiKey.objects.get(name="ci")
    url = f"{LIST}{row.pk}/change/"
    sent = filled(operator, url, scopes=["read", "plan"], key_hash="x", prefix="y", project=999)

    operator.post(url, sent)

    caller = access.find_caller(key=secret)
    assert caller is not None
    assert (set(caller.scopes), caller.project.id) == ({"read", "plan"}, project.id)


def test_a_revoked_key_is_only_looked_at_and_none_is_deleted(operator: Client) -> None:
    make_key(name="ci")
    row = ApiKey.objects.get(name="ci")
    operator.post(LIST, {"action": "revoke", "_selected_action": [row.pk], "confirmed": "yes"})
    url = f"{LIST}{row.pk}/change/"

    page = operator.get(url)

    assert "adminform" in page.context
    assert not page.context["has_change_permission"]
    assert operator.post(url, {"name": "again", "scopes": ["admin"]}).status_code == 403
    assert operator.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_times_are_written_as_on_the_pages(operator: Client, project: ProjectInfo) -> None:
    operator.post(ADD, {"project": project.id, "name": "ci", "scopes": ["read"]})
    row = ApiKey.objects.get(name="ci")

    for page in (LIST, f"{LIST}{row.pk}/change/"):
        assert f"{row.created_at:%Y-%m-%d %H:%M:%S} UTC" in text_of(operator.get(page))
