"""Which upstreams a project's calls may go to: rows, global rows and the environment together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helmdash import conf
from helmdash.core.access.permissions import SHELL
from helmdash.core.upstreams.endpoints import EndpointSource
from helmdash.core.upstreams.upstream_variables import VARIABLES
from helmdash.operations.access import project_settings
from helmdash.queries import upstreams
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import Project, Upstream

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    # Other tests leave it unread, and read first in one of these it would be refused.
    conf.env()
    upstreams.forget_cache()


@pytest.fixture
def project() -> int:
    return project_settings.ensure_project().id


def add(name: str, **over: Any) -> Upstream:
    values = {"kind": "openai", "base_url": f"https://{name}.test/v1"}
    return Upstream.objects.create(name=name, **{**values, **over})


def switch_off(row: Upstream) -> None:
    row.enabled = False
    row.save(update_fields=["enabled", "updated_at"])


def names(project_id: int | None) -> list[str]:
    return [endpoint.name for endpoint in upstreams.endpoints(project_id=project_id)]


def test_a_project_sees_its_own_upstreams_and_those_of_everybody(project: int) -> None:
    other = Project.objects.create(slug="other", name="Other")
    add("shared")
    add("mine", project_id=project)
    add("theirs", project=other)
    add("resting", enabled=False)

    assert names(project) == ["mine", "shared"]
    assert names(other.pk) == ["theirs", "shared"]
    assert names(None) == ["shared"]


@pytest.mark.parametrize("own_first", [True, False])
def test_a_project_s_own_row_comes_before_the_global_one(project: int, own_first: bool) -> None:
    def own() -> None:
        add("acme", project_id=project, base_url="https://own.test/v1")

    if own_first:
        own()
    add("acme", base_url="https://global.test/v1")
    if not own_first:
        own()

    (found,) = upstreams.endpoints(project_id=project)
    assert found.base_url == "https://own.test/v1"


def test_a_disabled_row_hides_what_it_stands_before(
    project: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    monkeypatch.setenv("GROQ_API_KEY", "sk-groq")
    add("openai", enabled=False)
    add("acme")
    add("acme", project_id=project, enabled=False)

    assert names(project) == ["groq"]
    shown = {
        (info.name, info.project): (info.enabled, info.shadowed)
        for info in upstreams.listing(project_id=project)
        if info.source is EndpointSource.ADMIN
    }
    slug = Project.objects.get(pk=project).slug
    assert shown == {
        ("openai", None): (False, False),
        ("acme", None): (True, True),
        ("acme", slug): (False, False),
    }
    environment = {
        info.name: info.shadowed
        for info in upstreams.listing(project_id=project)
        if info.source is EndpointSource.ENVIRONMENT
    }
    assert environment == {"openai": True, "groq": False}


@pytest.mark.parametrize(
    "edit",
    [
        # gone
        lambda row: row.delete(),
        # one more
        lambda row: Upstream.objects.create(name="new", kind="openai", base_url="https://n.test"),
        # switched off
        switch_off,
    ],
)
def test_an_edit_rules_the_very_next_call(project: int, edit: Callable[[Upstream], Any]) -> None:
    row = add("acme")
    before = names(project)

    edit(row)

    assert names(project) != before


def test_reading_again_costs_one_query(
    project: int,
    django_assert_num_queries: Callable[[int], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # However long it takes to read them again.
    monkeypatch.setattr(upstreams, "_MAX_AGE_SECONDS", float("inf"))
    add("acme")
    with django_assert_num_queries(2):
        names(project)

    with django_assert_num_queries(1):
        names(project)


def test_no_listing_and_no_repr_holds_a_key(project: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-by-variable")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-by-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://me:sk-in-url@llm.test")
    row = add("stored", key_encrypted=seal("sk-by-row"))
    add("named", key_variable="ACME_API_KEY")

    keys = {each.name: each.api_key for each in upstreams.endpoints(project_id=project)}
    said = repr(
        [
            upstreams.listing(project_id=project),
            upstreams.find(upstream_id=row.pk),
            upstreams.find_endpoint(actor=SHELL, project_id=project, upstream_id=row.pk),
        ]
    )

    assert keys == {
        "anthropic": None,
        "named": "sk-by-variable",
        "openai": "sk-by-environment",
        "stored": "sk-by-row",
    }
    assert "sk-" not in said


def test_pages_learn_where_each_key_comes_from_and_what_is_wrong(
    project: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.1/v1")
    add("unset", key_variable="MISSING_API_KEY")
    add("open")

    told = {
        info.name: (info.key_place.value, info.key_variable, info.has_key, info.problem)
        for info in upstreams.listing(project_id=project)
    }

    assert told["open"] == ("none", "", False, None)
    assert told["unset"][:3] == ("variable", "MISSING_API_KEY", False)
    assert "MISSING_API_KEY is not set" in (told["unset"][3] or "")
    assert told["openai"][:3] == ("variable", "OPENAI_API_KEY", True)
    assert "HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1" in (told["openai"][3] or "")


def test_a_row_that_names_a_variable_which_may_not_be_sent_has_no_key(project: int) -> None:
    row = add("thief", key_variable="HELMDASH_SECRET_KEY")

    endpoint = upstreams.find_endpoint(actor=SHELL, project_id=project, upstream_id=row.pk)

    assert conf.env().secret_key
    assert endpoint is not None
    assert endpoint.api_key is None


def test_an_upstream_that_is_not_there_is_not_found(project: int) -> None:
    assert upstreams.find(upstream_id=1) is None
    assert upstreams.find_endpoint(actor=SHELL, project_id=project, upstream_id=1) is None


def test_a_sealed_key_tells_nothing_and_damage_is_noticed() -> None:
    sealed = seal("sk-äöü-secret")

    assert "secret" not in sealed
    assert sealed != seal("sk-äöü-secret")
    assert unseal(sealed) == "sk-äöü-secret"
    assert unseal(sealed[:-4] + "AAA=") is None
    assert unseal("") is None
    assert unseal("ä") is None
