"""An edit of a budget rules the very next lookup, in this process and in every other."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, BudgetAlias
from tests.recording.support import make_ruled_project
from tests.support.processes import run_python
from tests.support.server import Served

# Runs in a process of its own on the server's data, as an edit in the admin of another worker.
EDIT = """
import json, sys
import django
django.setup()
from helmdash.records.models import Budget
key, values = sys.argv[1], json.loads(sys.argv[2])
row = Budget.objects.filter(project=None, key=key).first()
if values is None:
    row.delete()
else:
    row = row or Budget(key=key)
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
"""


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def limit(project: ProjectInfo, model: str = "openai/gpt-4o") -> int:
    return budgets.table(project_id=project.id).lookup(model).input_tokens


def test_an_edit_rules_the_next_lookup(project: ProjectInfo) -> None:
    before = limit(project)
    row = Budget.objects.get(key="openai/gpt-4o")
    row.input_tokens = 7_000
    row.save()
    after_edit = limit(project)
    row.delete()

    assert (before, after_edit, limit(project)) == (100_000, 7_000, 16_000)


def test_a_new_row_and_a_new_alias_rule_the_next_lookup(project: ProjectInfo) -> None:
    before = limit(project, "resold/gpt-4o")
    BudgetAlias.objects.create(prefix="resold/", target="openai/")
    with_alias = limit(project, "resold/gpt-4o")
    Budget.objects.create(key="resold/", input_tokens=5_000, output_tokens=500, tier="C")

    assert (before, with_alias, limit(project, "resold/gpt-4o")) == (16_000, 100_000, 5_000)


def test_a_disabled_row_no_longer_rules(project: ProjectInfo) -> None:
    limit(project)
    row = Budget.objects.get(key="openai/gpt-4o")
    row.enabled = False
    row.save()

    assert limit(project) == 16_000


def test_a_lookup_without_an_edit_costs_one_query(project: ProjectInfo) -> None:
    limit(project)

    with CaptureQueriesContext(connection) as queries:
        limit(project)

    assert len(queries) == 1


def test_an_edit_by_another_process_rules_the_next_fit_of_the_server(served: Served) -> None:
    with httpx.Client(
        base_url=f"{served.base_url}/api/v1", headers=served.headers, timeout=60, trust_env=False
    ) as api:
        shipped = _fit(api)
        rows = []
        for size in (3_000, 4_000, 5_000):
            _edit(
                served,
                "acme/",
                {"input_tokens": 90_000, "output_tokens": 500, "tier": "C"}
                | {"max_catalog_bytes": size},
            )
            rows.append(_fit(api)["budget"]["max_catalog_bytes"])
        _edit(served, "acme/", None)
        after = _fit(api)

    assert rows == [3_000, 4_000, 5_000]
    assert after["budget"] == shipped["budget"]


def _fit(api: httpx.Client) -> Any:
    packs = [{"name": f"pack-{n}", "description": "Does one thing, and well."} for n in range(60)]
    body = {"model": "acme/large", "intent": "do one thing", "catalog": {"packs": packs}}
    response = api.post("/fit", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def _edit(server: Served, key: str, values: dict[str, Any] | None) -> None:
    env = {**server.environment(), "DJANGO_SETTINGS_MODULE": "helmdash.settings"}
    run_python("-c", EDIT, key, json.dumps(values), env=env, timeout=60).check_returncode()
