"""Sign-in by an identity provider: a real one on this machine, through the whole way and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from helmdash import conf
from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.operations.access.members import set_member
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AuditEntry, Membership
from helmdash.upstream.services import oidc
from tests.pages.hygiene import faults
from tests.support.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider, run_provider


@pytest.fixture
def provider(project: ProjectInfo, monkeypatch: pytest.MonkeyPatch) -> Iterator[OidcProvider]:
    oidc.forget()
    with run_provider() as running:
        for name, value in {
            "ISSUER": running.issuer,
            "CLIENT_ID": CLIENT_ID,
            "CLIENT_SECRET": CLIENT_SECRET,
            "ROLES": "admins=default:owner, dev=default:editor",
            "NAME": "Acme",
        }.items():
            monkeypatch.setenv(f"HELMDASH_OIDC_{name}", value)
        conf.env.cache_clear()
        yield running
    conf.env.cache_clear()


def go(client: Client, where: str = "/login/oidc/") -> dict[str, str]:
    """To the provider, which is willing; the query of the way back."""
    away = client.get(where)["Location"]
    httpx.get(away, timeout=60).raise_for_status()
    asked = dict(parse_qsl(urlsplit(away).query))
    return {"code": "the-code", "state": asked["state"]}


def come_back(client: Client, query: dict[str, str]) -> Any:
    return client.get(f"/login/oidc/done/?{urlencode(query)}")


def sign_in(where: str = "/login/oidc/") -> tuple[Client, Any]:
    client = Client()
    return client, come_back(client, go(client, where))


def roles() -> dict[str, str]:
    return dict(Membership.objects.values_list("user__username", "role"))


def test_who_is_vouched_for_comes_in_with_the_role_of_their_group(provider: OidcProvider) -> None:
    offered = Client().get("/login/?next=/calls/").content.decode()
    provider.claims = {"groups": ["staff", "dev"]}
    client, answer = sign_in("/login/oidc/?next=/calls/")
    first = roles()
    provider.claims = {"groups": ["dev", "admins"]}
    again, _ = sign_in()
    then = roles()
    set_member(actor=SHELL, user="other", project="default", role=MemberRole.OWNER)
    provider.claims = {}
    none, _ = sign_in()

    assert "Sign in with Acme" in offered
    assert "/login/oidc/?next=%2Fcalls%2F" in offered
    assert answer["Location"].startswith("/calls/")
    assert (first, then, roles()) == ({"vera": "editor"}, {"vera": "owner"}, {"other": "owner"})
    assert [each.get("/calls/").status_code for each in (client, again, none)] == [403, 403, 403]
    assert User.objects.filter(username__startswith="vera").count() == 1
    # Nor do they give themselves one, which would let them in when the provider no longer does.
    assert 'name="new_password1"' not in again.get("/profile/").content.decode()
    new = {"new_password1": "a-new-password-2", "new_password2": "a-new-password-2"}
    assert again.post("/profile/password/", new).status_code == 302
    assert not User.objects.get(username="vera").has_usable_password()
    told = AuditEntry.objects.filter(by="the identity provider").order_by("id")
    assert [f"{each.kind} {each.action}" for each in told] == [
        *("account added", "member added", "member changed", "member deleted"),
    ]


def test_the_last_owner_stays_whatever_the_provider_says(provider: OidcProvider) -> None:
    provider.claims = {"groups": "admins"}
    sign_in()
    provider.claims = {"groups": []}
    sign_in()

    assert roles() == {"vera": "owner"}


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example.org"},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "another"], "azp": "another"},
        # 1970 and 2096. A time of now would give the test another name in each worker.
        {"exp": 1},
        {"iat": 4_000_000_000},
        {"nonce": "of-another-visit"},
        {"nonce": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "nul\x00"},
        {"sub": "\ud800"},
        {"at_hash": "of-another-token"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_visit_lets_nobody_in(
    provider: OidcProvider, claims: dict[str, Any]
) -> None:
    provider.claims = claims

    client, answer = sign_in()

    assert (answer.status_code, faults(answer.content.decode())) == (403, [])
    assert "_auth_user_id" not in client.session
    assert not User.objects.exists()


def test_only_keys_that_the_provider_publishes_count_and_new_ones_are_found(
    provider: OidcProvider,
) -> None:
    assert sign_in()[1].status_code == 302
    provider.new_key("second")
    assert sign_in()[1].status_code == 302
    provider.new_key("third", is_published=False)
    assert sign_in()[1].status_code == 403


def test_what_comes_back_has_to_belong_to_this_browser_and_be_used_once(
    provider: OidcProvider,
) -> None:
    mine, theirs = Client(), Client()
    query, other = go(mine), go(theirs)

    for client, wrong in (
        (mine, other),
        (Client(), query),
        (mine, {**query, "state": ""}),
        (mine, {"error": "access_denied", "state": query["state"]}),
    ):
        assert come_back(client, wrong).status_code == 403
    again = go(mine)
    assert come_back(mine, {**again, "code": "made-up"}).status_code == 403
    assert not User.objects.exists()


def test_an_account_is_taken_over_only_by_an_address_that_both_sides_stand_for(
    provider: OidcProvider,
) -> None:
    User.objects.create_user("vera", password="a-password", email="vera@example.org")
    address = {"email": "VERA@example.org"}

    provider.claims = {**address, "sub": "unverified", "email_verified": False}
    sign_in()
    provider.claims = {**address, "sub": "verified", "email_verified": True}
    client, _ = sign_in()
    # Whoever comes later with that address is another person.
    provider.claims = {**address, "sub": "third", "email_verified": True}
    sign_in()

    assert client.session["_auth_user_id"] == str(User.objects.get(username="vera").pk)
    assert set(User.objects.values_list("username", flat=True)) == {"vera", "vera-2", "vera-3"}


@pytest.mark.parametrize(
    # Their capitals are ours: i without a dot, the long s, the sign of Kelvin.
    "email",
    ["k\u0131ss@example.org", "ki\u017fs@example.org", "\u212aiss@example.org", "\x00"],
    ids=ascii,
)
def test_an_address_that_only_looks_like_anothers_is_not_theirs(
    provider: OidcProvider, email: str
) -> None:
    kiss = User.objects.create_user("kiss", email="kiss@example.org")
    provider.claims = {"email": email, "email_verified": True}

    client, _ = sign_in()

    assert client.session["_auth_user_id"] != str(kiss.pk)


def test_a_provider_that_hangs_holds_few_threads_and_uses_no_visit_up(
    provider: OidcProvider,
) -> None:
    client = Client()
    query = go(client)
    for _ in range(oidc.MOST_AT_ONCE):
        oidc._places.acquire()
    try:
        away, back = Client().get("/login/oidc/"), come_back(client, query)
    finally:
        for _ in range(oidc.MOST_AT_ONCE):
            oidc._places.release()

    for busy in (away, back):
        assert (busy.status_code, busy["Retry-After"]) == (503, "10")
        assert (faults(busy.content.decode()), "slow to answer" in busy.content.decode()) == (
            [],
            True,
        )
    assert come_back(client, query).status_code == 302


def test_a_locked_account_stays_out(provider: OidcProvider) -> None:
    sign_in()
    User.objects.update(is_active=False)

    client, answer = sign_in()

    assert (answer.status_code, "is locked" in answer.content.decode()) == (403, True)
    assert "_auth_user_id" not in client.session


def test_nobody_is_led_to_another_host_after_it(provider: OidcProvider) -> None:
    for where in ("https://evil.example.org/", "//evil.example.org", "/\\evil.example.org"):
        _, answer = sign_in(f"/login/oidc/?{urlencode({'next': where})}")

        assert urlsplit(answer["Location"]).path == "/"
        assert urlsplit(answer["Location"]).netloc == ""


@pytest.mark.usefixtures("no_wait_ends")
def test_tries_that_fail_are_braked_and_without_a_provider_there_is_no_door(
    provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    statuses = [client.get("/login/oidc/done/?code=x&state=y").status_code for _ in range(21)]
    monkeypatch.setattr(provider, "issuer", "https://other.example.org")
    oidc.forget()
    away = Client().get("/login/oidc/")
    monkeypatch.delenv("HELMDASH_OIDC_ISSUER")
    conf.env.cache_clear()

    assert statuses == [403] * 20 + [429]
    # It calls itself by another name than the one that is trusted.
    assert away.status_code == 403
    assert Client().get("/login/oidc/").status_code == 404
    assert "oidc" not in Client().get("/login/").content.decode()
