"""A key that ends: given on the page, in the admin and by command, shown in all three."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from helmdash.queries.access.access import ProjectInfo, api_keys
from helmdash.records.models import ApiKey
from tests.factories import make_key


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("apikey", *arguments, stdout=out)
    return out.getvalue()


def test_the_page_sets_and_shows_it(owner: Client) -> None:
    data = {"name": "ci", "scopes": ["record"], "expires": "30d"}
    page = owner.post("/settings/keys/", data)

    assert page.status_code == 200
    (key,) = api_keys()
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    assert f"{key.expires_at:%Y-%m-%d %H:%M}" in page.content.decode()

    ApiKey.objects.update(expires_at=timezone.now())
    assert "expired" in owner.get("/settings/").content.decode()


@pytest.mark.parametrize("text", ["yesterday", "2020-01-01"])
def test_the_page_says_what_is_wrong_and_makes_nothing(text: str, owner: Client) -> None:
    data = {"name": "ci", "scopes": ["record"], "expires": text}
    page = owner.post("/settings/keys/", data)

    assert page.status_code == 422
    assert "30d" in page.content.decode()
    assert text in page.content.decode()  # what was typed is still there
    assert api_keys() == ()


def test_the_admin_sets_shows_and_changes_it(owner: Client, project: ProjectInfo) -> None:
    data = {"project": project.id, "name": "ci", "scopes": ["record"]}
    past = {"expires_at_0": "2020-01-01", "expires_at_1": "00:00:00"}
    future = {"expires_at_0": "2099-01-01", "expires_at_1": "00:00:00"}

    refused = owner.post("/admin/records/apikey/add/", data | past)
    assert "future" in refused.content.decode()
    assert owner.post("/admin/records/apikey/add/", data | future).status_code == 200
    row = ApiKey.objects.get(name="ci")
    assert "2099" in owner.get("/admin/records/apikey/").content.decode()

    # A key that is there may be ended this way.
    owner.post(f"/admin/records/apikey/{row.pk}/change/", data | past)
    assert api_keys()[0].state(timezone.now()) == "expired"


def test_the_command_sets_and_lists_it(project: ProjectInfo) -> None:
    command("create", "--name", "short", "--expires", "12h")
    command("create", "--name", "long")
    make_key(name="over")
    ApiKey.objects.filter(name="over").update(expires_at=timezone.now())

    lines = {line.split()[0]: line for line in command("list").splitlines()}
    ends = ApiKey.objects.get(name="short").expires_at
    assert ends is not None
    assert f"{ends:%Y-%m-%d %H:%M}" in lines["short"]
    assert "never" in lines["long"]
    assert "expired" in lines["over"]

    with pytest.raises(CommandError, match=r"--expires.*30d"):
        command("create", "--name", "bad", "--expires", "soon")
