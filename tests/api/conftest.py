"""What the tests of the API share: a client that presents a key, and the cast of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from django.http import HttpResponse
from django.test import Client

from helmdash.queries import budgets
from helmdash.queries.access import ProjectInfo
from tests import factories

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Door:
    """A client of the API with one key (or none)."""

    key: str | None

    def get(self, path: str, query: Mapping[str, str] | None = None, **headers: str) -> Any:
        return self._client().get(PREFIX + path, query or {}, headers=self._headers(headers))

    def post(self, path: str, body: object, **headers: str) -> Any:
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: object) -> Any:
        return self.send("PATCH", path, body)

    def put(self, path: str, body: object) -> Any:
        return self.send("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self._client().delete(PREFIX + path, headers=self._headers({}))

    def send(
        self,
        method: str,
        path: str,
        body: object,
        *,
        content_type: str = "application/json",
        **headers: str,
    ) -> Any:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return self._client().generic(
            method, PREFIX + path, raw, content_type, headers=self._headers(headers)
        )

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Authorization": f"Bearer {self.key}", **named} if self.key else named

    def _client(self) -> Client:
        return Client(raise_request_exception=True)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """The default project with the shipped budgets."""
    budgets.forget_cache()
    return factories.make_project()


@pytest.fixture
def owner(project: ProjectInfo) -> Door:
    """Somebody who may do everything in the default project."""
    return Door(factories.make_key(name="owner", scopes=("admin",)))


@pytest.fixture
def stranger(project: ProjectInfo) -> Door:
    """Somebody who may do everything in another project."""
    factories.make_project(slug="elsewhere")
    return Door(factories.make_key(name="stranger", scopes=("admin",), project="elsewhere"))


@pytest.fixture
def door(project: ProjectInfo) -> Callable[..., Door]:
    """A function that makes a door with some scopes."""

    def make(*scopes: str) -> Door:
        return Door(factories.make_key(name=f"key of {'-'.join(scopes)}", scopes=scopes))

    return make


def fields_of(response: HttpResponse) -> list[str]:
    """The fields a 422 (or 409) names."""
    body = orjson.loads(response.content)
    assert response["Content-Type"] == "application/problem+json"
    return [item["field"] for item in body["errors"]]
