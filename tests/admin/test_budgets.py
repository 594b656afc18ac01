from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.admin.budgets.budget_admin import BudgetAdmin
from helmdash.records.models import Budget, Project
from tests.admin.forms import filled, text_of
from tests.admin.house import make_project, record
from tests.factories import make_capture

LIST = "/admin/records/budget/"
ADD = LIST + "add/"
NUMBERS = {"input_tokens": 50_000, "output_tokens": 2_000, "tier": "B"}


def change(row: Budget) -> str:
    return f"{LIST}{row.pk}/change/"


def fallback() -> Budget:
    return Budget.objects.get(key="", project=None)


def add(**over: Any) -> Budget:
    return Budget.objects.create(**{**NUMBERS, **over})


def test_an_edit_in_the_admin_rules_the_very_next_lookup(
    operator: Client, project: ProjectInfo
) -> None:
    row = add(key="acme/one")
    assert budgets.table(project_id=project.id).lookup("acme/one").input_tokens == 50_000

    operator.post(change(row), filled(operator, change(row), input_tokens=41_000))

    assert budgets.table(project_id=project.id).lookup("acme/one").input_tokens == 41_000


def test_each_field_that_core_declares_has_its_column_and_its_place_in_the_form() -> None:
    columns = {each.name for each in Budget._meta.fields if each.editable} - {"id", "project"}
    places = [name for _, part in BudgetAdmin.fieldsets for name in part["fields"]]

    assert columns == {each.name for each in STORED_FIELDS}
    assert sorted(places) == sorted({*columns, "project", "created_at", "updated_at"})


def test_the_form_calls_its_fields_as_the_pages_do(operator: Client) -> None:
    page = text_of(operator.get(ADD))

    for label in (
        "LLM filter",
        "Strict JSON",
        "Caution above, tokens:",
        "Cached input, USD per million tokens:",
    ):
        assert label in page
    assert "mtok" not in page


def test_the_list_names_the_fallback_and_shows_numbers_with_their_flags(operator: Client) -> None:
    add(key="acme/one", max_catalog_bytes=12_345, wants_strict_json=True)

    page = text_of(operator.get(LIST))

    assert "(fallback)" in page
    assert "50,000" in page
    assert "12,345" in page
    assert "strict JSON" in page


def test_the_list_says_which_models_each_row_governed_lately(operator: Client) -> None:
    add(key="acme/")
    record(make_capture(model="acme/large"), make_capture(model="nobody/knows-me"))

    rows = {row.key: row for row in operator.get(LIST).context["cl"].result_list}

    assert list(rows["acme/"].models_seen) == ["acme/large"]
    assert list(rows[""].models_seen) == ["nobody/knows-me"]


def test_a_projects_own_row_governs_its_models_and_the_global_row_those_of_the_others(
    operator: Client, project: ProjectInfo
) -> None:
    other = make_project(slug="other")
    shared, own = add(key="acme/"), add(key="acme/", project_id=other.id)
    record(make_capture(model="acme/a"))
    record(make_capture(model="acme/b"), project=other)

    rows = {row.pk: row for row in operator.get(LIST).context["cl"].result_list}

    assert list(rows[shared.pk].models_seen) == ["acme/a"]
    assert list(rows[own.pk].models_seen) == ["acme/b"]


def test_the_list_costs_the_same_number_of_queries_whatever_was_recorded(
    operator: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    operator.get(LIST)  # content types are read once in a process
    # session, user; count, count, rows; the project filter; budgets, aliases, projects, models
    with django_assert_num_queries(10):
        operator.get(LIST)

    record(*(make_capture(model=f"acme/{n}", conversation=f"c{n}") for n in range(20)))

    with django_assert_num_queries(10):
        operator.get(LIST)


@pytest.mark.parametrize(
    ("over", "field", "sentence"),
    [
        # optimal above critical
        (
            {
                "optimal_max_tokens": 90_000,
                "critical_max_tokens": 80_000,
                "context_length": 128_000,
            },
            "optimal_max_tokens",
            "must be below critical_max_tokens",
        ),
        # critical above the limit
        (
            {"critical_max_tokens": 200_000, "context_length": 128_000},
            "critical_max_tokens",
            "above the limit",
        ),
        # the same key in other letters
        ({"key": "ACME/one"}, "key", "exists already"),
        # a second fallback
        ({"key": ""}, "key", "There is a fallback already"),
        # a tier nobody knows
        ({"tier": "Z"}, "tier", "not one of the available choices"),
        # no tier at all
        ({"tier": None}, "tier", "required"),
        # not a number
        ({"input_tokens": "many"}, "input_tokens", "whole number"),
        # zero is not a size
        ({"output_tokens": 0}, "output_tokens", "greater than or equal to 1"),
        # not finite
        ({"chars_per_token": "nan"}, "chars_per_token", "number"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    operator: Client, over: dict[str, Any], field: str, sentence: str
) -> None:
    add(key="acme/one")

    response = operator.post(ADD, filled(operator, ADD, **{**NUMBERS, "key": "acme/two", **over}))

    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert sentence in errors[field][0]
    assert sentence in text_of(response)


def test_an_input_longer_than_the_window_is_pointed_out_and_saved(operator: Client) -> None:
    lengths = {"context_length": 8_000, "input_length": 9_000, "critical_max_tokens": 7_000}
    given = {**NUMBERS, **lengths, "optimal_max_tokens": 6_000, "key": "acme/one"}

    response = operator.post(ADD, filled(operator, ADD, **given), follow=True)

    assert Budget.objects.get(key="acme/one").input_length == 9_000
    note = "The input_length (9000) is larger than the context_length (8000)"
    assert note in text_of(response)


def test_a_prefix_that_shadows_another_row_is_pointed_out_and_saved(operator: Client) -> None:
    add(key="acme/")

    response = operator.post(ADD, filled(operator, ADD, **NUMBERS, key="acme/large"), follow=True)

    assert Budget.objects.filter(key="acme/large").exists()
    assert "The key acme/large shadows acme/: without this row" in text_of(response)


def test_a_prefix_whose_models_longer_keys_take_is_pointed_out(operator: Client) -> None:
    add(key="acme/large")

    response = operator.post(ADD, filled(operator, ADD, **NUMBERS, key="acme/"), follow=True)

    note = "models that start with acme/large are governed by those rows"
    assert note in text_of(response)
    assert note in text_of(operator.get(change(Budget.objects.get(key="acme/"))))


def test_a_disabled_neighbour_and_another_projects_row_shadow_nothing(operator: Client) -> None:
    add(key="acme/large", enabled=False)
    add(key="acme/small", project_id=make_project(slug="other").id)

    response = operator.post(ADD, filled(operator, ADD, **NUMBERS, key="acme/"), follow=True)

    assert "Longer keys" not in text_of(response)


def test_the_fallback_has_no_delete_button_and_says_why_when_asked_by_address(
    operator: Client,
) -> None:
    row = fallback()
    assert "deletelink" not in operator.get(change(row)).content.decode()

    response = operator.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}, follow=True)

    assert "The fallback was not deleted" in text_of(response)
    assert Budget.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("confirmed", [{}, {"post": "yes"}])
def test_deleting_a_selection_leaves_the_fallback_out(
    operator: Client, confirmed: dict[str, str]
) -> None:
    row, other = fallback(), add(key="acme/one")
    sent = {"action": "delete_selected", "_selected_action": [row.pk, other.pk], **confirmed}

    response = operator.post(LIST, sent, follow=True)

    assert "The fallback was not deleted" in text_of(response)
    assert Budget.objects.filter(pk=row.pk).exists()
    assert Budget.objects.filter(pk=other.pk).exists() is (confirmed == {})


def test_deleting_only_the_fallback_asks_for_no_confirmation(operator: Client) -> None:
    sent = {"action": "delete_selected", "_selected_action": [fallback().pk]}

    response = operator.post(LIST, sent, follow=True)

    assert "The fallback was not deleted" in text_of(response)
    assert "Are you sure" not in text_of(response)


def test_a_projects_own_fallback_may_be_deleted(operator: Client) -> None:
    own = add(key="", project_id=make_project(slug="other").id)

    operator.post(f"{LIST}{own.pk}/delete/", {"post": "yes"})

    assert not Budget.objects.filter(pk=own.pk).exists()
    assert fallback().enabled


def test_no_request_can_name_disable_or_move_the_fallback(
    operator: Client, project: ProjectInfo
) -> None:
    row = fallback()
    sent = filled(operator, change(row), key="named", project=project.id, input_tokens=17_000)
    sent.pop("enabled", None)

    operator.post(change(row), sent)

    row.refresh_from_db()
    assert (row.key, row.project_id, row.enabled, row.input_tokens) == ("", None, True, 17_000)


def test_filters_and_search_narrow_the_list(operator: Client) -> None:
    add(key="acme/one", tier="C", evidence="measured by hand")
    add(key="acme/two", tier="A", enabled=False)

    def keys(query: str) -> set[str]:
        found = operator.get(f"{LIST}?{query}").context["cl"].result_list
        return {row.key for row in found if row.key.startswith("acme/")}

    assert keys("q=by+hand") == {"acme/one"}
    assert keys("tier__exact=C") == {"acme/one"}
    assert keys("enabled__exact=0") == {"acme/two"}
    assert keys("project__isnull=True") == {"acme/one", "acme/two"}


def test_a_preview_counts_what_would_change_and_saves_nothing(operator: Client) -> None:
    row = add(key="acme/", context_length=100_000, tier="B")
    record(
        *(
            make_capture(model="acme/large", conversation=f"c{n}", usage={"prompt_tokens": tokens})
            for n, tokens in enumerate([10_000, 60_000, 95_000])
        )
    )
    assert 'name="_preview"' in operator.get(change(row)).content.decode()
    sent = filled(
        operator, change(row), input_tokens=9_000, context_length=50_000, tier="C", _preview="1"
    )

    response = operator.post(change(row), sent)

    preview = response.context["preview"]
    shifts = {(s.before, s.after): s.calls for s in preview.shifts}
    assert shifts == {("healthy", "critical"): 1}
    assert (preview.calls, preview.over_before, preview.over_after) == (3, 2, 3)
    assert preview.other_variant == 3
    assert "nothing is saved yet" in text_of(response)
    assert 'value="9000"' in response.content.decode()
    row.refresh_from_db()
    assert row.input_tokens == 50_000
    assert row.history.count() == 1


def test_a_preview_of_wrong_numbers_says_what_is_wrong(operator: Client) -> None:
    row = add(key="acme/")
    sent = filled(operator, change(row), input_tokens=-1, _preview="1")

    response = operator.post(change(row), sent)

    assert "preview" not in response.context
    assert response.context["adminform"].form.errors


def test_a_preview_of_a_new_row_counts_the_models_it_would_take(operator: Client) -> None:
    record(make_capture(model="brand/new", usage={"prompt_tokens": 5_000}))
    sent = filled(operator, ADD, **NUMBERS, key="brand/", context_length=4_000, _preview="1")

    preview = operator.post(ADD, sent).context["preview"]

    assert preview.calls == 1
    assert [(s.before, s.after) for s in preview.shifts] == [("unknown", "critical")]
    assert not Budget.objects.filter(key="brand/").exists()


def test_a_stranger_to_the_admin_sees_none_of_it(client: Client, project: ProjectInfo) -> None:
    response = client.get(LIST)

    assert response.status_code == 302
    assert Project.objects.filter(pk=project.id).exists()
