"""Import with a preview, and export, as CSV and JSON: what every kind of row shares.

django-import-export does the work. Three of its habits are replaced: its difference is HTML with
inline styles, which our Content-Security-Policy forbids; an upload waiting for its confirmation
lies in a temporary file, which another machine does not have; and odd values are bent into shape
instead of being refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core import signing
from django.core.exceptions import FieldError, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from import_export import fields, resources, widgets
from import_export.admin import ImportExportMixin
from import_export.forms import ExportForm
from import_export.tmp_storages import BaseStorage

from helmdash.records.access.rights import person_of
from helmdash.records.admin.files.table_files import (
    ABSENT,
    SHOWN_CHARS,
    BoundedCSV,
    NoTable,
    StrictJSON,
    why_unreadable,
)
from helmdash.records.admin.scoped import may
from helmdash.records.audit import note_row, values_of

_SALT = "helmdash.import"
# Long enough to read a preview, short enough that the rows are still as the preview saw them.
_PREVIEW_SECONDS = 3600
_SHOWN_COLUMNS = 5
_CHANGE_REASON_CHARS = 100  # the column of django-simple-history
_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One value that an import would change."""

    field: str
    before: str
    after: str


class ChangedFields:
    """The difference of one imported row: only what changed, as values, not as HTML."""

    def __init__(self, resource: Any, instance: Any, new: bool) -> None:
        self.before = {} if new else self._values(resource, instance)
        self.after: Mapping[str, str] = {}

    def compare_with(self, resource: Any, instance: Any) -> None:
        """Take the row as it is after the import."""
        self.after = self._values(resource, instance) if instance is not None else {}

    def as_html(self) -> list[FieldChange]:
        """The changes, in the order of the columns. The template escapes them."""
        return [
            FieldChange(field=name, before=self.before.get(name, ""), after=after)
            for name, after in self.after.items()
            if after != self.before.get(name, "")
        ]

    def _values(self, resource: Any, instance: Any) -> dict[str, str]:
        told = ((f.column_name, f.export(instance)) for f in resource.get_import_fields())
        return {name: "" if value is None else str(value) for name, value in told}


class StrictWidget(widgets.Widget):  # type: ignore[misc]
    """Takes and ignores the options that the library passes by the kind of field."""

    def __init__(self, **_options: Any) -> None:
        super().__init__()


class TextWidget(StrictWidget):
    """Text as it is; numbers and lists of a JSON file are refused."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ValueError(f"must be text, not {value!r}.")
        return value


class WholeNumber(StrictWidget):
    """A count; empty means none given."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> int | None:
        if _is_empty(value):
            return None
        number = None if isinstance(value, bool) else _number(value)
        if number is None or number != int(number):
            raise ValueError(f"must be a whole number, not {value!r}.")
        return int(str(value)) if _is_digits(value) else int(number)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> Any:
        return value


class Number(StrictWidget):
    """A finite number; empty means none given."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> float | None:
        if _is_empty(value):
            return None
        number = None if isinstance(value, bool) else _number(value)
        if number is None:
            raise ValueError(f"must be a number, not {value!r}.")
        return number

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> Any:
        return value


class YesNo(StrictWidget):
    """True or false, in the words of either format."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> bool:
        word = str(value).strip().lower()
        if word in _YES or word in _NO:
            return word in _YES
        raise ValueError(f"must be true or false, not {value!r}.")

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> Any:
        return value


class SignedUpload(BaseStorage):  # type: ignore[misc]
    """Keeps an upload in the confirmation form itself, compressed and signed.

    So nothing is left behind when nobody confirms, and any process on any machine can go on.
    """

    def save(self, data: bytes) -> None:
        """Keep the bytes in `name`, which the form carries."""
        # Each byte as one character: the signer takes text only.
        self.name = signing.dumps(data.decode("latin-1"), salt=_SALT, compress=True)

    def read(self) -> str:
        """Give the text back.

        Raises BadSignature when it is not what was uploaded, UnicodeDecodeError when it is no text.
        """
        bytes_as_text: str = signing.loads(self.name, salt=_SALT, max_age=_PREVIEW_SECONDS)
        return bytes_as_text.encode("latin-1").decode(self.encoding or "utf-8-sig")

    def remove(self) -> None:
        """Nothing was stored."""


class StrictResource(resources.ModelResource):  # type: ignore[misc]
    """Rows found by a natural key, checked like the form checks them, saved one by one.

    One by one, because only then does each change get its history row.
    """

    WIDGETS_MAP = {
        "BooleanField": YesNo,
        "CharField": TextWidget,
        "FloatField": Number,
        "PositiveBigIntegerField": WholeNumber,
        "PositiveIntegerField": WholeNumber,
        "TextField": TextWidget,
    }

    class Meta:
        clean_model_instances = True
        skip_unchanged = True
        report_skipped = True
        store_instance = True
        use_transactions = True

    @classmethod
    def get_diff_class(cls) -> type[ChangedFields]:
        return ChangedFields

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        """Refuse columns nobody knows, by FieldError: a misspelled one would be ignored without a
        word. Note who imports."""
        self.person = person_of(kwargs["user"])
        known = {field.column_name for field in self.get_import_fields()}
        unknown = [name for name in dataset.headers or () if name not in known]
        if unknown:
            shown = [str(name)[:SHOWN_CHARS] for name in unknown[:_SHOWN_COLUMNS]]
            shown += ["…"] if len(unknown) > _SHOWN_COLUMNS else []
            raise FieldError(
                f"Unknown column: {', '.join(shown)}. Known are: {', '.join(sorted(known))}."
            )

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        """Leave alone what a JSON object does not mention."""
        for name in [name for name, value in row.items() if value is ABSENT]:
            del row[name]

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:
        """A row that is there already must be the person's to change."""
        if not new:
            _require(kwargs.get("user"), "change", instance)

    def before_save_instance(self, instance: Any, row: Any, **kwargs: Any) -> None:
        """The row as it will be must be the person's, too; and its history says whence it came."""
        _require(kwargs.get("user"), "add" if instance._state.adding else "change", instance)
        reason = f"imported from {kwargs.get('file_name') or 'a file'}"
        instance._change_reason = reason[:_CHANGE_REASON_CHARS]
        stored = type(instance).objects.filter(pk=instance.pk).first()
        instance._before = values_of(stored) if stored is not None else None

    def after_save_instance(self, instance: Any, row: Any, **kwargs: Any) -> None:
        """Note it; what a preview writes is rolled back with the rest."""
        note_row(actor=person_of(kwargs["user"]), row=instance, before=instance._before)


class TransferMixin(ImportExportMixin):  # type: ignore[misc]
    """For a ModelAdmin: Import and Export above the list. Set `resource_classes`."""

    formats = [BoundedCSV, StrictJSON]
    import_export_change_list_template = "admin/helmdash/managed_list.html"
    import_template_name = "admin/helmdash/import.html"
    export_template_name = "admin/helmdash/export.html"
    export_form_class = ExportForm
    tmp_storage_class = SignedUpload

    def export_action(self, request: HttpRequest) -> HttpResponse:
        """Export; a filter that is none is dropped, as the list does."""
        try:
            done: HttpResponse = super().export_action(request)
            return done
        except IncorrectLookupParameters:
            return HttpResponseRedirect(request.path)

    def has_import_permission(self, request: HttpRequest) -> bool:
        """An import may add and change."""
        return bool(self.has_add_permission(request) and self.has_change_permission(request))

    def has_export_permission(self, request: HttpRequest) -> bool:
        """An export shows every row."""
        return bool(self.has_view_permission(request))

    def get_import_data_kwargs(self, **kwargs: Any) -> dict[str, Any]:
        """All or nothing, also when rows changed between the preview and its confirmation."""
        given: dict[str, Any] = super().get_import_data_kwargs(**kwargs)
        return {**given, "rollback_on_validation_errors": True}

    def process_import(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        """Store the rows that were previewed and confirmed."""
        if request.method == "POST" and not self._is_whole(request):
            return self._again(request, "The confirmation is not complete. Upload the file again.")
        try:
            done: HttpResponse = super().process_import(request, **kwargs)
            return done
        except (signing.BadSignature, NoTable):
            return self._again(request, "The preview is too old. Upload the file again.")

    def _is_whole(self, request: HttpRequest) -> bool:
        """Whether the form is one that a preview gave. The library takes the numbers of the format
        and of the kind of rows as they come."""
        form = self.create_confirm_form(request)
        if not form.is_valid():
            return False
        formats = {str(number) for number in range(len(self.get_import_formats()))}
        kinds = {str(number) for number in range(len(self.get_import_resource_classes(request)))}
        given = form.cleaned_data
        return given["format"] in formats and (given.get("resource") or "0") in kinds

    def process_result(self, result: Any, request: HttpRequest) -> HttpResponse:
        """Say what was done; nothing was when a row no longer fitted."""
        if result.has_errors() or result.has_validation_errors():
            return self._again(
                request, "Nothing was imported: the rows changed since the preview. Upload again."
            )
        done: HttpResponse = super().process_result(result, request)
        return done

    def add_success_message(self, result: Any, request: HttpRequest) -> None:
        """Counts, in words."""
        new, changed, same = (result.totals[kind] for kind in ("new", "update", "skip"))
        messages.success(
            request, f"Import finished: {new} new, {changed} changed, {same} left as they were."
        )

    def add_data_read_fail_error_to_form(self, form: Any, e: Exception) -> None:
        """A sentence in place of the exception's name."""
        why = why_unreadable(e)
        form.add_error("import_file", f"The file cannot be read in this format: {why}.")

    def _again(self, request: HttpRequest, sentence: str) -> HttpResponse:
        messages.error(request, sentence)
        name = f"{self.opts.app_label}_{self.opts.model_name}_import"
        return HttpResponseRedirect(reverse(f"admin:{name}"))


def _require(user: Any, action: str, row: Any) -> None:
    """Raises ValidationError where the person has no right to write such a row.

    The preview of an import and the import itself ask alike.
    """
    if user is None or not may(person_of(user), action, row):
        raise ValidationError(
            {"project": "not a project whose rows you may write; empty is for superusers."}
            if hasattr(row, "project_id")
            else "Only a superuser may write these rows."
        )


def column(name: str, widget: widgets.Widget) -> fields.Field:
    """A column of the file that is the field of the same name."""
    return fields.Field(attribute=name, column_name=name, widget=widget)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _is_digits(value: Any) -> bool:
    return isinstance(value, int) or str(value).strip().isdecimal()


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
