"""The form of one budget: sentences beside their fields, and the fallback kept a fallback."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.records.admin.typed import ModelForm
from helmdash.records.models import Budget

PREVIEW = "_preview"
# The database's rules speak about a row; each belongs to the field a person would change.
_FIELD_OF_CONSTRAINT = {
    "budget_one_global_row_per_key": "key",
    "budget_one_row_per_project_and_key": "key",
    "budget_fallback_stays_enabled": "enabled",
    "budget_optimal_below_critical": "optimal_max_tokens",
}
_SECOND_FALLBACK = (
    "There is a fallback already, and there can be only one. Give this row a key, "
    "or edit the fallback."
)
_OF_THE_FALLBACK = {
    "key": "Empty: this is the fallback, which governs every model without a row of its own.",
    "project": "Empty: the fallback is for every project. Add a row with an empty key to a "
    "project to give that project another one.",
    "enabled": "The fallback cannot be disabled.",
}


def is_fallback(budget: Budget | None) -> bool:
    """Whether it is the row that every table needs: the global one with the empty key. None is
    not."""
    return budget is not None and budget.key == "" and budget.project_id is None


class BudgetForm(ModelForm[Budget]):
    """A bound form that was sent for a preview is complete, but never valid for saving."""

    class Meta:
        model = Budget
        exclude: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in STORED_FIELDS:
            if each.name in self.fields:
                self.fields[each.name].label = each.words[:1].upper() + each.words[1:]
        if self.instance.pk and is_fallback(self.instance):
            for name, help_text in _OF_THE_FALLBACK.items():
                # A disabled field keeps its value whatever a request says.
                if name in self.fields:
                    self.fields[name].disabled = True
                    self.fields[name].help_text = help_text

    def is_valid(self) -> bool:
        """False for a preview, so that the admin shows the form again instead of saving it."""
        return super().is_valid() and PREVIEW not in self.data

    def _update_errors(self, errors: ValidationError) -> None:
        super()._update_errors(beside_fields(errors, self.instance))  # type: ignore[misc]


def beside_fields(errors: ValidationError, budget: Budget) -> ValidationError:
    """Move what the constraints say to the fields they are about."""
    if not hasattr(errors, "error_dict") or NON_FIELD_ERRORS not in errors.error_dict:
        return errors
    moved = {name: list(found) for name, found in errors.error_dict.items()}
    for error in moved.pop(NON_FIELD_ERRORS):
        field = _field_of(error)
        if field == "key" and is_fallback(budget):
            error = ValidationError(_SECOND_FALLBACK)
        moved.setdefault(field, []).append(error)
    return ValidationError(moved)


def _field_of(error: ValidationError) -> str:
    said = str(error.message)
    for constraint in Budget._meta.constraints:
        if said == constraint.violation_error_message:
            return _FIELD_OF_CONSTRAINT.get(constraint.name, NON_FIELD_ERRORS)
    return NON_FIELD_ERRORS
