"""Loading the shipped budgets: what is missing comes, what people did stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from helmdash.operations.budgets.shipped import Difference, compare_budgets, load_budgets
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, BudgetAlias
from tests.recording.support import make_ruled_project

pytestmark = pytest.mark.django_db

ROW = """
input_tokens = 20_000
output_tokens = 1_000
max_catalog_bytes = 10_000
tier = "B"
allows_llm_filter = true
is_hybrid_reasoning = false
wants_strict_json = false
supports_prefix_cache = false
"""
FIRST = f"""
[fallback]{ROW}
[[budget]]
key = "acme/small"{ROW}
[[budget]]
key = "acme/Large"{ROW}
[[alias]]
prefix = "resold/acme/"
target = "acme/"
"""
SECOND = (
    FIRST
    + f"""
[[budget]]
key = "acme/new"{ROW}
[[alias]]
prefix = "also/acme/"
target = "acme/"
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "budgets.toml"
    file.write_text(FIRST)
    return file


def test_the_first_load_adds_every_row_and_alias(path: Path) -> None:
    loaded = load_budgets(path=path)

    assert loaded.added == ("", "acme/small", "acme/Large")
    assert loaded.aliases_added == ("resold/acme/",)
    assert budgets.table(project_id=None).lookup("resold/acme/small").input_tokens == 20_000


def test_a_second_load_changes_nothing(path: Path) -> None:
    load_budgets(path=path)
    edits = (Budget.history.count(), BudgetAlias.history.count())

    again = load_budgets(path=path)

    assert (again.added, again.aliases_added, again.differences) == ((), (), ())
    assert (Budget.history.count(), BudgetAlias.history.count()) == edits


def test_a_newer_file_adds_only_what_is_new(path: Path) -> None:
    load_budgets(path=path)
    path.write_text(SECOND)

    loaded = load_budgets(path=path)

    assert (loaded.added, loaded.aliases_added) == (("acme/new",), ("also/acme/",))


def test_an_edited_row_survives_and_the_difference_is_told(path: Path) -> None:
    load_budgets(path=path)
    row = Budget.objects.get(key="acme/small")
    row.input_tokens = 7
    row.save()

    loaded = load_budgets(path=path)

    told = Difference(key="acme/small", field="input_tokens", stored=7, shipped=20_000)
    assert loaded.differences == compare_budgets(path=path) == (told,)
    assert Budget.objects.get(key="acme/small").input_tokens == 7


def test_a_key_whose_letters_were_edited_is_still_the_same_row(path: Path) -> None:
    load_budgets(path=path)
    row = Budget.objects.get(key="acme/Large")
    row.key = "ACME/large"
    row.save()

    loaded = load_budgets(path=path)

    assert loaded.added == ()
    assert Budget.objects.filter(key__iexact="acme/large").count() == 1


def test_a_deleted_row_stays_deleted(path: Path) -> None:
    load_budgets(path=path)
    Budget.objects.get(key="acme/small").delete()
    BudgetAlias.objects.all()[0].delete()

    loaded = load_budgets(path=path)

    assert loaded.left_deleted == ("acme/small",)
    assert loaded.aliases_added == ()
    assert not Budget.objects.filter(key="acme/small").exists()
    assert not BudgetAlias.objects.exists()


def test_a_deleted_fallback_comes_back(path: Path) -> None:
    # Nothing can be looked up without it, so this is no choice that anybody can have made.
    load_budgets(path=path)
    Budget.objects.get(key="").delete()

    loaded = load_budgets(path=path)

    assert loaded.added == ("",)
    assert budgets.table(project_id=None).lookup("nobody/knows").input_tokens == 20_000


def test_an_update_resets_what_differs_and_nothing_else(path: Path) -> None:
    load_budgets(path=path)
    Budget.objects.create(key="mine/", input_tokens=9, output_tokens=9, tier="C")
    row = Budget.objects.get(key="acme/small")
    row.tier = "A"
    row.save()
    edits = Budget.history.count()

    load_budgets(path=path, update=True)

    assert compare_budgets(path=path) == ()
    assert Budget.objects.get(key="mine/").input_tokens == 9
    assert Budget.history.count() == edits + 1


def test_a_row_of_a_project_is_none_of_its_business(path: Path) -> None:
    project = make_ruled_project()
    Budget.objects.all().delete()
    Budget.objects.create(
        project_id=project.id, key="acme/small", input_tokens=7, output_tokens=7, tier="C"
    )

    load_budgets(path=path)

    assert Budget.objects.filter(key="acme/small").count() == 2
    assert budgets.table(project_id=project.id).lookup("acme/small").input_tokens == 7
    assert budgets.table(project_id=None).lookup("acme/small").input_tokens == 20_000
