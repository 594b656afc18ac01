"""Requests that Django refuses before any view: the operator reads which setting is missing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from helmdash.operations.database.timeouts import connection_beside_pool

SETTING = "HELMDASH_ALLOWED_HOSTS"


@pytest.mark.parametrize("path", ["/", "/login/", "/calls/", "/admin/", "/nothing/"])
def test_a_page_of_an_unknown_host_names_the_setting(db: None, path: str) -> None:
    response = Client(headers={"host": "helm.example.org"}).get(path)

    assert response.status_code == 400
    assert SETTING in response.content.decode()
    assert "helm.example.org" in response.content.decode()


@pytest.mark.parametrize(
    ("path", "accept"), [("/api/v1/calls", "*/*"), ("/calls/", "application/json")]
)
def test_so_does_an_answer_to_a_program_in_its_own_shape(db: None, path: str, accept: str) -> None:
    response = Client(headers={"host": "helm.example.org", "accept": accept}).get(path)

    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
    assert SETTING in response.json()["detail"]


@pytest.mark.parametrize("host", ["<script>alert(1)</script>", "\u202e", "a" * 5000, ""])
def test_a_host_that_is_none_is_shown_as_text(db: None, host: str) -> None:
    response = Client(headers={"host": host}).get("/")

    page = response.content.decode()
    assert response.status_code == 400 or host == ""
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "a" * 300 not in page


QUERY = "a=1&" * 1001
FIELDS = {f"a{number}": "1" for number in range(1001)}
FILES = {f"a{number}": SimpleUploadedFile("a.txt", b"x") for number in range(101)}


@pytest.mark.parametrize(
    ("query", "form", "sentence"),
    [
        (QUERY, None, "The address has more than 1,000 parameters."),
        (QUERY, {"a": "1"}, "The address has more than 1,000 parameters."),
        ("", FIELDS, "The form has more than 1,000 fields."),
        ("", FILES, "The form has more than 100 files."),
    ],
    ids=["parameters", "parameters of a form", "fields", "files"],
)
@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_too_many_parts_of_a_request_are_named_and_leave_nothing_in_the_log(
    db: None,
    query: str,
    form: dict[str, Any] | None,
    sentence: str,
    accept: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, path = Client(headers={"accept": accept}), f"/login/?{query}"
    response = client.get(path) if form is None else client.post(path, form)

    kind = "text/html; charset=utf-8" if accept == "*/*" else "application/problem+json"
    assert (response.status_code, response["Content-Type"]) == (400, kind)
    assert sentence in response.content.decode()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("user__password__startswith=pbkdf2", "user__password__startswith"),
        ("project__memberships__user__email=a", "project__memberships__user__email"),
        ("_to_field=role", "role"),
        ("_to_field=%3Cscript%3E", "&lt;script&gt;"),
    ],
)
def test_a_filter_that_the_admin_does_not_have_is_named_and_leaves_nothing_in_the_log(
    owner: Client, query: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = owner.get(f"/admin/records/membership/?{query}")

    assert response.status_code == 400
    assert named in response.content.decode()
    assert caplog.records == []


@pytest.mark.parametrize("sign", ["&", "/"])
def test_who_has_to_sign_in_is_led_there_from_the_longest_address(
    db: None, sign: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = Client().get("/calls/?q=" + sign * 7_000)

    assert (response.status_code, response["Location"]) == (302, "/login/")
    assert caplog.records == []


def test_what_would_lead_to_too_long_an_address_is_told_so(
    owner: Client, caplog: pytest.LogCaptureFixture
) -> None:
    response = owner.get("/export/calls.csv", {"query": "/" * 6_000, "range": "nope"})

    assert response.status_code == 400
    assert "too long for the address" in response.content.decode()
    assert caplog.records == []


@pytest.mark.parametrize("cookie", ["\0" * 32, "aaaaaaaa\0", "a" * 33])
def test_a_cookie_that_is_no_key_of_a_session_is_none(db: None, cookie: str) -> None:
    # As a client packs control characters; the standard library of newer Pythons refuses to.
    headers = {"cookie": 'sessionid="{}"'.format(cookie.replace("\0", r"\000"))}
    paths = ("/", "/login/", "/api/v1/calls")

    statuses = {path: Client().get(path, headers=headers).status_code for path in paths}

    assert statuses == {"/": 302, "/login/": 200, "/api/v1/calls": 401}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="a file breaks off nothing")
def test_a_page_that_the_database_broke_off_says_when_to_come_back(transactional_db: None) -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    with connection.cursor() as own:
        own.execute("SELECT pg_backend_pid()")
        number = own.fetchone()
    beside = connection_beside_pool()
    with beside.cursor() as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", number)
    beside.close()

    response = client.get("/")
    connection.close()

    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert "The database is unavailable" in response.content.decode()
    assert client.get("/").status_code == 302
