"""What the tests of the API share: a client that presents a key, and the cast of keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from django.http import HttpResponse
from django.test import Client

from helmdash.operations.access import project_settings
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.budgets import budgets
from helmdash.records.models import Project, Upstream
from tests import factories
from tests.api.planner import NAME, Planner, run_planner
from tests.support.shipped_rows import load_without_history

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
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
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
    """The default project with the shipped budgets, put there without their history: quickly."""
    budgets.forget_cache()
    load_without_history()
    return project_settings.ensure_project()


@pytest.fixture
def quiet(project: ProjectInfo) -> ProjectInfo:
    """Another project, without calls."""
    return project_info(Project.objects.create(slug="elsewhere", name="Elsewhere"))


@pytest.fixture
def owner(project: ProjectInfo) -> Door:
    """Somebody who may do everything in the default project."""
    return Door(factories.make_key(name="owner", scopes=("admin",)))


@pytest.fixture
def stranger(quiet: ProjectInfo) -> Door:
    """Somebody who may do everything in another project."""
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


@pytest.fixture
def planner(project: ProjectInfo, planners: Planner) -> Planner:
    """Simulated models that plan, as the upstream `sim` of every project."""
    Upstream.objects.create(
        name=NAME,
        kind="openai",
        base_url=planners.base_url,
        models_served="gpt-plan*",
        allow_private=True,
    )
    return planners


@pytest.fixture(scope="session")
def planners() -> Iterator[Planner]:
    """The server behind it."""
    with run_planner() as running:
        yield running
