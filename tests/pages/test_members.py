"""Members of a project on their page: who changes them, and what stays as it is."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.operations.access.members import set_member
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Membership
from tests.factories import sign_in
from tests.pages.hygiene import faults

PAGE, CHANGE = "/settings/members/", "/settings/members/change/"


def roles() -> dict[str, str]:
    return dict(Membership.objects.values_list("user__username", "role"))


@pytest.fixture
def boss(project: ProjectInfo) -> Client:
    """The only owner, no superuser."""
    return sign_in("boss", project=project, role=MemberRole.OWNER)


def test_an_owner_adds_changes_and_removes_members(boss: Client) -> None:
    get_user_model().objects.create_user(username="vera")

    added = boss.post(CHANGE, {"do": "set", "user": "vera", "role": "editor"}, follow=True)
    was = roles()
    boss.post(CHANGE, {"do": "set", "user": "vera", "role": "viewer"})
    then = roles()
    boss.post(CHANGE, {"do": "remove", "user": "vera"})

    html = added.content.decode()
    assert (faults(html), "vera is editor now." in html) == ([], True)
    assert (was["vera"], then["vera"], roles()) == ("editor", "viewer", {"boss": "owner"})
    changes = Membership.history.filter(user__username="vera")
    assert {each.history_change_reason for each in changes} == {"by boss"}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"do": "remove", "user": "boss"}, "keeps its last owner"),
        ({"do": "set", "user": "boss", "role": "viewer"}, "keeps its last owner"),
        # Accounts concern every project, so a superuser makes them.
        ({"do": "set", "user": "nobody", "role": "viewer"}, "nobody is called nobody"),
        ({"do": "remove", "user": "nobody"}, "is no member of"),
        ({"do": "set", "user": "", "role": "viewer"}, "write the name"),
        ({"do": "set", "user": "boss", "role": "king"}, "choose viewer, editor or owner"),
    ],
)
def test_what_is_refused_is_told_and_changes_nothing(
    boss: Client, sent: dict[str, str], told: str
) -> None:
    html = boss.post(CHANGE, sent, follow=True).content.decode()

    assert (faults(html), told in html) == ([], True)
    assert roles() == {"boss": "owner"}
    assert not get_user_model().objects.filter(username="nobody").exists()


def test_a_name_that_is_none_is_told_at_its_field_and_stays_typed(owner: Client) -> None:
    answer = owner.post(CHANGE, {"do": "set", "user": "jo smith", "role": "editor"})

    html = answer.content.decode()
    assert (answer.status_code, faults(html)) == (422, [])
    assert 'value="jo smith"' in html
    assert 'id="id_user_error" role="alert">User: Enter a valid username' in html
    assert '<input type="radio" name="role" value="editor" checked>' in html


def test_one_of_two_owners_may_go(boss: Client, project: ProjectInfo) -> None:
    set_member(actor=SHELL, user="second", project=project.slug, role=MemberRole.OWNER)

    boss.post(CHANGE, {"do": "remove", "user": "boss"})

    assert roles() == {"second": "owner"}


def test_a_superuser_makes_an_account_whose_link_is_shown_once(
    owner: Client, client: Client
) -> None:
    made = owner.post(CHANGE, {"do": "set", "user": "vera", "role": "viewer"})

    html = made.content.decode()
    (link,) = re.findall(r">http://testserver(/login/link/[^<]+)<", html)
    assert (faults(html), made["Cache-Control"]) == ([], "no-store")
    assert "/login/link/" not in owner.get(PAGE).content.decode()
    assert client.post(link).status_code == 302
    assert client.get(PAGE).status_code == 200


def test_a_viewer_sees_who_is_who_and_no_form(viewer: Client, owner: Client) -> None:
    html = viewer.get(PAGE).content.decode()

    assert faults(html) == []
    assert ("viewer" in html, ">owner</span>" in html, CHANGE in html) == (True, True, False)
