"""The forms in which rows of budgets are edited: one for each row, one for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import QueryDict

from helmdash.core.budgets.budgets import BudgetSpec
from helmdash.operations.budgets.editing import MOST_WHY
from helmdash.pages.forms.forms import WholeNumber
from helmdash.queries.budgets.budgets import BudgetRow

# As many as one looks through before saving; a table has some seventy.
MOST_ROWS: Final = 100
# A thousand times what the largest windows hold.
_MOST: Final = 1_000_000_000
# column -> its name on the page, the least, whether it may be left to the default.
COLUMNS: Final[Mapping[str, tuple[str, int, bool]]] = {
    "input_tokens": ("Input, tokens", 1, False),
    "output_tokens": ("Output, tokens", 1, False),
    "max_catalog_bytes": ("Catalog, bytes", 0, False),
    "optimal_max_tokens": ("Caution above", 1, True),
    "critical_max_tokens": ("Critical above", 1, True),
    "context_length": ("Window, tokens", 1, True),
}


def _number(label: str, least: int, *, is_required: bool, placeholder: str) -> WholeNumber:
    return WholeNumber(
        required=is_required,
        min_value=least,
        max_value=_MOST,
        label=label,
        widget=forms.NumberInput(attrs={"placeholder": placeholder, "inputmode": "numeric"}),
    )


class RowForm(forms.Form):
    """The figures of one row; empty where it may be: as the default has it."""

    seen_at = forms.DateTimeField(
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid": "reload this page: it does not tell when it was made"},
    )

    def __init__(self, row: BudgetRow, data: Mapping[str, Any] | None = None) -> None:
        values = {name: getattr(row.budget, name) for name in COLUMNS}
        super().__init__(
            data,
            prefix=str(row.id),
            initial={**values, "seen_at": row.updated_at.isoformat()},
        )
        self.row = row
        for name, (label, least, may_be_empty) in COLUMNS.items():
            hint = "default" if may_be_empty else ""
            self.fields[name] = _number(
                label, least, is_required=not may_be_empty, placeholder=hint
            )

    def spec(self, project_id: int, *, is_own: bool) -> BudgetSpec:
        """The row as it would be stored; only after is_valid(). is_own: it is edited as it is; else
        the project gets one of its own beside it."""
        edited = replace(self.row.budget, **self.changes())
        return edited if is_own else replace(edited, budget_id=None, project=str(project_id))

    def clean(self) -> None:
        # Kept apart: Django drops what was read of a field that is found to be wrong later.
        self._read = {name: self.cleaned_data.get(name) for name in COLUMNS}

    def changes(self) -> dict[str, Any]:
        """The figures by column; only after is_valid()."""
        return dict(self._read)

    def tell(self, problems: Iterable[tuple[str, str]]) -> None:
        """Say what is wrong with the row, beside its column where the form has it."""
        for name, said in problems:
            field = name if name in self.fields else None
            if said not in self.errors.get(field or NON_FIELD_ERRORS, ()):
                self.add_error(field, said)

    @property
    def numbers(self) -> list[Any]:
        """The fields that are typed in."""
        return [self[name] for name in COLUMNS]

    @property
    def told(self) -> list[tuple[str, str]]:
        """Label and sentence for each thing wrong; the label "" where it is of none."""
        return [
            (str(self.fields[name].label) if name in self.fields else "", str(message))
            for name, found in self.errors.items()
            for message in found
        ]


class FillForm(forms.Form):
    """Figures for all rows at once; empty: each keeps its own."""

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, prefix="all")
        for name, (label, least, _) in COLUMNS.items():
            self.fields[name] = _number(label, least, is_required=False, placeholder="as it is")


class WhyForm(forms.Form):
    """Words for the history of each row."""

    why = forms.CharField(required=False, max_length=MOST_WHY, label="Why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All forms of the page that edits rows."""

    rows: tuple[RowForm, ...]
    fill: FillForm
    why: WhyForm

    @property
    def is_valid(self) -> bool:
        """Whether all can be read."""
        # All are looked at, so that all faults are told at once.
        wrong = [form for form in (*self.rows, self.fill, self.why) if not form.is_valid()]
        return not wrong


def sheet_of(rows: Sequence[BudgetRow], data: QueryDict | None) -> Sheet:
    """The forms of some rows; data None: before anybody typed. What is typed for all rows stands in
    each of them, and is gone above them."""
    if data is not None:
        filling = FillForm(data)
        if filling.is_valid():
            data = _filled(rows, data, filling.cleaned_data)
    return Sheet(
        rows=tuple(RowForm(row, data) for row in rows),
        fill=FillForm(data),
        why=WhyForm(data),
    )


def _filled(
    rows: Sequence[BudgetRow], data: QueryDict, values: Mapping[str, int | None]
) -> QueryDict:
    filled = data.copy()
    for name, value in values.items():
        if value is not None:
            filled[f"all-{name}"] = ""
            for row in rows:
                filled[f"{row.id}-{name}"] = str(value)
    return filled
