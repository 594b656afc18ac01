"""CSV that a spreadsheet opens as text: no cell of it is a formula (core.text.formulas)."""

from __future__ import annotations

from typing import Any

from import_export.formats import base_formats
from tablib import Dataset  # type: ignore[import-untyped]

from helmdash.core.text.formulas import defused, restored


class SafeCSV(base_formats.CSV):  # type: ignore[misc]
    """CSV whose text cells no spreadsheet runs, there and back again."""

    def export_data(self, dataset: Any, **kwargs: Any) -> Any:
        """The file's text."""
        return super().export_data(_each_cell(dataset, defused), **kwargs)

    def create_dataset(self, in_stream: Any, **kwargs: Any) -> Dataset:
        """The rows of a file."""
        return _each_cell(super().create_dataset(in_stream, **kwargs), restored)


def _each_cell(dataset: Any, change: Any) -> Dataset:
    rows = [[change(cell) for cell in row] for row in dataset]
    return Dataset(*rows, headers=dataset.headers, title=dataset.title)
