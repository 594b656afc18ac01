"""Every page that asks for a password, or takes a link, brakes who is wrong too often."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from helmdash.operations.access import sign_in_links
from helmdash.operations.database.clock import shared_now
from helmdash.pages import braking

pytestmark = pytest.mark.usefixtures("no_wait_ends")
PASSWORD = "a-long-enough-password"


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("admin", password=PASSWORD)


def sign_in(path: str) -> Callable[[Client, str], Any]:
    return lambda client, password: client.post(path, {"username": "admin", "password": password})


def change_password(client: Client, password: str) -> Any:
    new = {"new_password1": "another-long-one", "new_password2": "another-long-one"}
    return client.post("/profile/password/", {"old_password": password, **new})


DOORS = {
    "pages": sign_in("/login/"),
    "change": change_password,
}
WRONG = {"pages": 200, "change": 422}


def come_in(door: str, admin: User, client: Client) -> None:
    """A password is changed by who is signed in."""
    if door == "change":
        admin.set_password(PASSWORD)
        admin.save()
        client.force_login(admin)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_that_asks_for_a_password_has_the_brake(
    door: str, admin: User, client: Client
) -> None:
    come_in(door, admin, client)
    tries = [DOORS[door](client, f"guess-{n}") for n in range(7)]

    assert [response.status_code for response in tries] == [WRONG[door]] * 5 + [429] * 2
    assert tries[-1]["Retry-After"] == "1"
    assert "Wait 1 second," in tries[-1].content.decode()
    # The right one has to wait, too: else the wait would tell right from wrong.
    assert DOORS[door](client, PASSWORD).status_code == 429


@pytest.mark.parametrize("door", DOORS)
def test_a_right_password_starts_anew(door: str, admin: User, client: Client) -> None:
    for _ in range(3):
        come_in(door, admin, client)
        statuses = [DOORS[door](client, f"guess-{n}").status_code for n in range(4)]
        assert statuses == [WRONG[door]] * 4
        assert DOORS[door](client, PASSWORD).status_code == 302
        client.logout()


def test_who_was_let_in_by_a_host_whose_clock_is_ahead_waits_at_no_other(
    admin: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(braking, "shared_now", shared_now)  # as it goes on
    now = timezone.now
    with monkeypatch.context() as there:
        there.setattr(timezone, "now", lambda: now() + timedelta(minutes=5))
        assert DOORS["pages"](client, PASSWORD).status_code == 302

    assert DOORS["pages"](Client(), PASSWORD).status_code == 302


def test_an_account_that_is_not_there_answers_like_one_that_is(admin: User) -> None:
    def answers(name: str) -> list[tuple[int, str]]:
        client = Client(REMOTE_ADDR=f"192.0.2.{len(name)}")
        data = {"username": name, "password": "guess"}
        found = [client.post("/login/", data) for _ in range(8)]
        return [(each.status_code, each.get("Retry-After", "")) for each in found]

    assert answers("admin") == answers("nobody")


def test_a_link_of_the_terminal_lets_the_owner_in_whatever_an_attacker_does(
    admin: User, client: Client
) -> None:
    for n in range(30):
        client.post("/login/", {"username": f"admin{n % 4 or ''}", "password": "guess"})
    assert client.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 429
    path = sign_in_links.make_link_path(username="admin")

    assert client.get(path).status_code == 200
    assert client.post(path).status_code == 302
    client.logout()

    assert client.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302


def test_made_up_links_count_for_their_address(admin: User) -> None:
    guesser, other = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="192.0.2.2")
    statuses = [guesser.get(f"/login/link/MQ/abc-{n}/").status_code for n in range(21)]

    assert statuses == [410] * 20 + [429]
    assert other.get("/login/link/MQ/abc-def/").status_code == 410
    assert other.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302


def test_a_form_without_a_password_is_no_try(admin: User, client: Client) -> None:
    for _ in range(10):
        assert client.post("/login/", {"username": "admin", "password": ""}).status_code == 200

    assert client.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302
