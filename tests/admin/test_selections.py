"""Rows that an action is for, named by a form that is not ours."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from helmdash.records.models import Budget
from tests.admin.forms import text_of

# None, half a number, and more than any number of a row.
ODD = ["x", "1.5", "", "%00", "2026-13-45", "é", str(10**30)]


@pytest.mark.parametrize("selected", ODD)
def test_a_selection_that_is_no_row_is_told_on_every_list(operator: Client, selected: str) -> None:
    before = (Budget.objects.count(), get_user_model().objects.count())
    for model, table in admin.site._registry.items():
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for action in table.get_action_choices(operator.get(url).wsgi_request):
            sent = {"action": action[0], "_selected_action": [selected]}

            page = operator.post(url, sent, follow=True)

            assert page.status_code == 200, (url, action)
            if action[0]:
                assert "no row of this list" in text_of(page), (url, action)
    assert (Budget.objects.count(), get_user_model().objects.count()) == before
