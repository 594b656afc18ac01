"""Every error has one shape and tells nothing from inside."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from django.db import OperationalError
from django.test import Client

from helmdash import conf
from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from tests.api.conftest import PREFIX, Door, fields_of


def _problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = orjson.loads(response.content)
    assert set(body) >= {"type", "title", "status", "detail", "code"}
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"/api/v1/docs#{code}"
    return body


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"",
        b"   ",
        b"nope",
        b'{"model": "m",}',
        b'{"model": NaN}',
        b'{"model": Infinity}',
        b'{"model": "\\ud800"}',  # half a surrogate pair
        b'{"model": "\xff"}',  # not UTF-8
        b"\xef\xbb\xbf{}",  # a byte order mark
        b'{"model": "m", "usage": {"prompt_tokens": 1e999}}',
        b"[" * 5000 + b"]" * 5000,
        b'{"model": "m", "metadata": {"n": ' + b"9" * 6000 + b"}}",
    ],
)
def test_what_is_not_json_is_400(owner: Door, text: bytes) -> None:
    _problem(owner.post("/calls", text), 400, "malformed")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/calls"), ("GET", "/budgets/1"), ("POST", "/calls")]
)
def test_an_address_with_too_many_parameters_is_400_and_no_fault_of_ours(
    owner: Door, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = owner.send(
        method, f"{path}?{'a=1&' * 1001}", examples.CALL if method == "POST" else None
    )

    body = _problem(response, 400, "malformed")
    assert body["detail"] == "The address has more than 1,000 parameters. Send fewer at once."
    assert caplog.records == []


@pytest.mark.parametrize("text", [b"[]", b"5", b"null", b'"text"', b"true"])
def test_what_is_not_an_object_is_422(owner: Door, text: bytes) -> None:
    body = _problem(owner.post("/calls", text), 422, "invalid")

    assert body["errors"] == [{"field": "body", "message": "must be an object"}]


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/jsonp", "nonsense"],
)  # fmt: skip
def test_another_content_type_is_415(owner: Door, content_type: str) -> None:
    response = owner.send("POST", "/calls", examples.CALL, content_type=content_type)

    _problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON",
     "application/vnd.pack+json", ""],
)  # fmt: skip
def test_json_by_any_of_its_names_is_read(owner: Door, content_type: str) -> None:
    response = owner.send("POST", "/calls", examples.CALL, content_type=content_type)

    assert response.status_code == 201


def test_a_compressed_body_is_415(owner: Door) -> None:
    response = owner.send("POST", "/calls", b"\x1f\x8b", content_encoding="gzip")

    _problem(response, 415, "unsupported_media_type")


def test_a_body_that_is_too_large_is_413(owner: Door) -> None:
    limit = conf.env().max_body_bytes
    text = b'{"model":"m","content":"' + b"x" * limit + b'"}'

    body = _problem(owner.post("/calls", text), 413, "body_too_large")

    assert str(limit) in body["detail"]


def test_a_body_that_lies_about_its_length_is_413(owner: Door) -> None:
    limit = conf.env().max_body_bytes

    response = Client().generic(
        "POST",
        f"{PREFIX}/calls",
        b"x" * 10,
        "application/json",
        headers={"Authorization": f"Bearer {owner.key}"},
        CONTENT_LENGTH=str(limit + 1),
    )

    _problem(response, 413, "body_too_large")


@pytest.mark.one_database
@pytest.mark.parametrize("path", ["/calls", "/budgets/resolve?model=m", "/openapi.json", "/none"])
def test_what_answers_get_answers_head(owner: Door, path: str) -> None:
    got = owner.get(path)

    headed = owner.send("HEAD", path, b"")

    assert headed.status_code == got.status_code
    assert headed["Content-Type"] == got["Content-Type"]
    assert headed.content == b""


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/calls", "GET, HEAD, POST"),
        ("PUT", "/calls", "GET, HEAD, POST"),
        ("GET", "/calls/batch", "POST"),
        ("GET", "/fit", "POST"),
        ("POST", "/conversations", "GET, HEAD"),
        ("PUT", "/budgets/1", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
        ("TRACE", "/calls", "GET, HEAD, POST"),
        ("OPTIONS", "/calls", "GET, HEAD, POST"),
    ],
)
def test_another_method_is_405_and_told_which(
    owner: Door, method: str, path: str, allow: str
) -> None:
    response = owner.send(method, path, b"")

    _problem(response, 405, "method_not_allowed")
    assert response["Allow"] == allow


@pytest.mark.parametrize("path", ["/", "/nothing", "/calls/", "/budgets/1/x", "/budgets/-1"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_address_is_404(owner: Door, method: str, path: str) -> None:
    _problem(owner.send(method, path, b""), 404, "not_found")


@pytest.fixture
def broken(owner: Door, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes the list of calls raise."""

    def breaks(error: Exception) -> Door:
        def page(**_: object) -> None:
            raise error

        monkeypatch.setattr(call_listing, "page", page)
        return owner

    return breaks


def test_a_database_that_is_away_is_503_with_a_time(broken: Any, caplog: Any) -> None:
    door = broken(OperationalError("connection to server at db.internal failed"))

    response = door.get("/calls")

    body = _problem(response, 503, "unavailable")
    assert response["Retry-After"] == "5"
    assert "db.internal" not in str(body)
    assert "db.internal" in caplog.text


def test_a_fault_of_ours_is_500_and_stays_inside(broken: Any, caplog: Any) -> None:
    door = broken(RuntimeError("secret sauce"))

    response = door.get("/calls")

    body = _problem(response, 500, "internal")
    assert "sauce" not in str(body)
    assert "sauce" in caplog.text


def test_errors_are_not_cached(project: ProjectInfo) -> None:
    assert Client().get(f"{PREFIX}/calls")["Cache-Control"] == "no-store"


def test_a_detail_is_short_however_many_faults_there_are(owner: Door) -> None:
    body = _problem(owner.post("/calls", {f"x{n}": n for n in range(500)}), 422, "invalid")

    assert len(body["detail"]) < 400
    assert len(body["errors"]) <= 50


def test_no_operation_passes_over_a_parameter_that_it_does_not_know(owner: Door) -> None:
    for path, methods in document()["paths"].items():
        address = re.sub(r"{(budget|suggestion)_id}", "1", path.removeprefix(PREFIX))
        address = re.sub(r"{\w+}", "x", address)
        for method in methods:
            response = owner.send(method.upper(), f"{address}?colour=red", {})

            assert response.status_code == 422, (method, path)
            assert "colour" in fields_of(response), (method, path)
