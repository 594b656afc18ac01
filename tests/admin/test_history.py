from __future__ import annotations

import pytest
from django.test import Client

from helmdash.core.access.permissions import MemberRole
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, BudgetAlias
from tests.admin.forms import filled, text_of
from tests.admin.test_budgets import LIST, add, change, fallback
from tests.factories import sign_in

ALIASES = "/admin/records/budgetalias/"


def history(row: Budget) -> str:
    return f"{LIST}{row.pk}/history/"


def revert(row: Budget, version: int) -> str:
    """Address that brings the n-th version back, 0 for the oldest."""
    ids = list(row.history.order_by("history_id").values_list("history_id", flat=True))
    return f"{LIST}{row.pk}/history/{ids[version]}/revert/"


def test_each_edit_is_shown_with_who_when_and_before_and_after(operator: Client) -> None:
    row = add(key="acme/one")
    operator.post(
        change(row), filled(operator, change(row), input_tokens=41_000, enabled=None, tier="C")
    )

    page = text_of(operator.get(history(row)))

    assert "operator" in page
    assert "input tokens: 50000 → 41000" in page
    assert "enabled: yes → no" in page
    assert "tier: B → C" in page
    assert "the API or the command line" in page
    assert "updated at" not in page
    newest = row.history.first()
    assert newest is not None
    assert f"{newest.history_date:%Y-%m-%d %H:%M:%S} UTC" in page


def test_one_click_brings_a_version_back_and_is_an_edit_itself(
    operator: Client, project: ProjectInfo
) -> None:
    row = add(key="acme/one")
    operator.post(change(row), filled(operator, change(row), input_tokens=41_000))

    response = operator.post(revert(row, 0), follow=True)

    assert "Reverted acme/one to the version of" in text_of(response)
    newest = row.history.first()
    assert newest is not None
    assert newest.history_change_reason.startswith("reverted to the version of")
    assert str(newest.history_user) == "operator"
    assert row.history.count() == 3
    assert budgets.table(project_id=project.id).lookup("acme/one").input_tokens == 50_000


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_version_that_comes_back_brings_its_word_on_the_window(
    operator: Client, project: ProjectInfo, is_deleted: bool
) -> None:
    """A copy of the fallback's figures has none, and its ceiling was the limit instead."""
    row = add(key="acme/one", project_id=project.id, window_copied_from="fallback")
    operator.post(change(row), filled(operator, change(row), context_length=41_000))
    assert budgets.table(project_id=project.id).lookup("acme/one").limit_tokens == 41_000
    address = revert(row, 0)
    if is_deleted:
        Budget.objects.get(pk=row.pk).delete()

    operator.post(address)

    assert budgets.table(project_id=project.id).lookup("acme/one").limit_tokens is None


def test_reverting_to_the_version_in_force_changes_nothing(operator: Client) -> None:
    row = add(key="acme/one")

    response = operator.post(revert(row, 0), follow=True)

    assert "Nothing was changed" in text_of(response)
    assert row.history.count() == 1


def test_looking_at_the_address_of_a_revert_changes_nothing(operator: Client) -> None:
    row = add(key="acme/one")
    operator.post(change(row), filled(operator, change(row), input_tokens=41_000))

    operator.get(revert(row, 0))

    row.refresh_from_db()
    assert row.input_tokens == 41_000


def test_a_version_that_is_no_longer_valid_is_refused_with_the_reason(operator: Client) -> None:
    row = add(key="acme/one")
    operator.post(change(row), filled(operator, change(row), key="acme/renamed"))
    add(key="acme/one")

    response = operator.post(revert(row, 0), follow=True)

    assert "was not brought back: A global budget with this key exists already" in text_of(response)
    row.refresh_from_db()
    assert row.key == "acme/renamed"


def test_a_deleted_budget_is_listed_and_restored_with_its_number(
    operator: Client, project: ProjectInfo
) -> None:
    row = add(key="acme/one")
    pk = row.pk
    operator.post(f"{LIST}{pk}/delete/", {"post": "yes"})
    page = operator.get(LIST + "deleted/")
    assert "acme/one" in text_of(page)
    gone = Budget.history.filter(id=pk, history_type="-").get()

    response = operator.post(f"{LIST}{pk}/history/{gone.history_id}/revert/", follow=True)

    assert "Restored acme/one as it was" in text_of(response)
    assert Budget.objects.get(key="acme/one").pk == pk
    assert "acme/one" not in text_of(operator.get(LIST + "deleted/"))
    assert budgets.table(project_id=project.id).lookup("acme/one").input_tokens == 50_000


def test_a_deleted_budget_whose_key_is_taken_stays_deleted_and_listed(operator: Client) -> None:
    row = add(key="acme/one")
    pk = row.pk
    operator.post(f"{LIST}{pk}/delete/", {"post": "yes"})
    add(key="acme/one")
    gone = Budget.history.filter(id=pk, history_type="-").get()

    response = operator.post(f"{LIST}{pk}/history/{gone.history_id}/revert/", follow=True)

    assert "was not brought back" in text_of(response)
    assert response.redirect_chain[-1][0] == LIST + "deleted/"


def test_rows_deleted_together_each_have_a_history_row(operator: Client) -> None:
    rows = [add(key="acme/one"), add(key="acme/two")]
    sent = {
        "action": "delete_selected",
        "_selected_action": [row.pk for row in rows],
        "post": "yes",
    }

    operator.post(LIST, sent)

    deleted = Budget.history.filter(history_type="-")
    assert {record.key for record in deleted} == {"acme/one", "acme/two"}
    assert {str(record.history_user) for record in deleted} == {"operator"}


def test_the_fallback_cannot_be_reverted_into_another_row(operator: Client) -> None:
    row = fallback()
    Budget.history.filter(id=row.pk).update(key="once-named")
    Budget.objects.filter(pk=row.pk).update(input_tokens=17_000)

    response = operator.post(revert(row, 0), follow=True)

    assert "the fallback's key must stay empty" in text_of(response)
    assert fallback().pk == row.pk


def test_an_alias_has_a_history_and_can_be_reverted(operator: Client) -> None:
    alias = BudgetAlias.objects.create(prefix="zz/", target="acme/")
    url = f"{ALIASES}{alias.pk}/change/"
    operator.post(url, filled(operator, url, target="other/"))
    assert "target: acme/ → other/" in text_of(operator.get(f"{ALIASES}{alias.pk}/history/"))
    oldest = alias.history.last()
    assert oldest is not None

    operator.post(f"{ALIASES}{alias.pk}/history/{oldest.history_id}/revert/")

    alias.refresh_from_db()
    assert alias.target == "acme/"


@pytest.mark.parametrize("address", ["999999/history/", "abc/history/"])
def test_the_history_of_a_row_that_never_was_is_not_found(operator: Client, address: str) -> None:
    assert operator.get(LIST + address).status_code == 404


def test_a_teammate_who_may_only_look_cannot_revert(operator: Client, project: ProjectInfo) -> None:
    row = add(key="acme/one", project_id=project.id)
    operator.post(change(row), filled(operator, change(row), input_tokens=41_000))
    client = sign_in("teammate", project=project, role=MemberRole.VIEWER)

    page = client.get(history(row))

    assert "Revert to this" not in text_of(page)
    assert client.post(revert(row, 0)).status_code == 403
    row.refresh_from_db()
    assert row.input_tokens == 41_000
