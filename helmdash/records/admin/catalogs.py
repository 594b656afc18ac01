"""Catalogs in the admin: revisions to look at, and a form to import the next one."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from helmdash import conf
from helmdash.core.catalog.catalog import CatalogError
from helmdash.core.text.encodings import encoding_fault
from helmdash.core.text.jsontext import is_too_deep
from helmdash.records.access.rights import person_of
from helmdash.records.admin.clock import now
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.admin.typed import ModelForm
from helmdash.records.audit import note_row
from helmdash.records.models import CatalogRevision, Project
from helmdash.records.revisions import add_revision, storable_catalog

# A page is for reading: the whole of a large catalog is the API's to give.
_SHOWN_CHARS = 50_000
# Sentences about faults shown at once; with more, the file is another kind of file.
_MOST_FAULTS = 20


class CatalogForm(ModelForm[CatalogRevision]):
    """One catalog, as a file or pasted."""

    file = forms.FileField(required=False, help_text="A JSON file with packs and pipelines.")
    text = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text='The same, pasted: {"packs": […], "pipelines": […]}.',
    )
    make_current = forms.BooleanField(
        required=False,
        initial=True,
        help_text="Fits that name no catalog use this one from now on.",
    )

    class Meta:
        model = CatalogRevision
        fields = ("project", "name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "project" in self.fields:  # absent where a revision is only shown
            self.fields["project"].initial = Project.objects.filter(is_default=True).first()
            self.fields["name"].help_text = "A name in use gets its next revision."

    def clean(self) -> dict[str, Any]:
        """Read and check the catalog; each fault is said beside the field it came in by."""
        cleaned = super().clean() or self.cleaned_data
        file, text = cleaned.get("file"), cleaned.get("text") or ""
        if bool(file) == bool(text.strip()):
            self.add_error("file", "Give a file or paste the text: one of them.")
            return cleaned
        try:
            raw = _file_text(file) if file else text
            cleaned["body"] = _read_catalog(raw)
        except ValidationError as error:
            self.add_error("file" if file else "text", error)
        return cleaned


@admin.register(CatalogRevision)
class CatalogRevisionAdmin(ScopedModelAdmin[CatalogRevision]):
    """A revision never changes: another catalog is another revision."""

    form = CatalogForm
    actions = None
    list_display = [
        "__str__",
        "project",
        "is_current",
        "size",
        "packs",
        "pipelines",
        "short_digest",
        "created_at",
    ]
    list_filter = ["project"]
    list_select_related = ["project"]
    ordering = ["-created_at", "-id"]
    search_fields = ["name", "digest"]
    search_help_text = "Part of a name or of a digest."

    def get_fields(self, request: HttpRequest, obj: CatalogRevision | None = None) -> Any:
        """The import form, or what a revision is."""
        if obj is None:
            return ["project", "name", "file", "text", "make_current"]
        known = ["project", "name", "number", "is_current", "size", "packs", "pipelines"]
        return [*known, "digest", "created_at", "catalog"]

    def get_readonly_fields(self, request: HttpRequest, obj: CatalogRevision | None = None) -> Any:
        """Every field of a stored revision: it is never edited, since fits name it."""
        return [] if obj is None else self.get_fields(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[CatalogRevision]:
        """Without the bodies; the page of one revision reads its own."""
        return super().get_queryset(request).defer("body")

    @admin.display(boolean=True, description="in force")
    def is_current(self, row: CatalogRevision) -> bool:
        """Whether fits that name no catalog use it."""
        return row.project.current_catalog_id == row.pk

    @admin.display(description="bytes", ordering="bytes")
    def size(self, row: CatalogRevision) -> str:
        """UTF-8 bytes of the compact JSON, with their thousands apart."""
        return f"{row.bytes:,}"

    @admin.display(description="digest")
    def short_digest(self, row: CatalogRevision) -> str:
        """Enough of it to compare by eye."""
        return row.digest[:12]

    @admin.display(description="catalog")
    def catalog(self, row: CatalogRevision) -> str:
        """The beginning of the JSON, for a look."""
        text = json.dumps(json.loads(row.body), ensure_ascii=False, indent=1)
        rest = len(text) - _SHOWN_CHARS
        return text if rest <= 0 else f"{text[:_SHOWN_CHARS]}\n… and {rest:,} more characters"

    def has_change_permission(
        self, request: HttpRequest, obj: CatalogRevision | None = None
    ) -> bool:
        """Nobody changes a revision."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: CatalogRevision | None = None
    ) -> bool:
        """Recorded fits name their revision."""
        return False

    def save_model(
        self, request: HttpRequest, obj: CatalogRevision, form: Any, change: bool
    ) -> None:
        """Store the revision, or find that the newest one is the same."""
        row, is_new = add_revision(
            project_id=obj.project_id,
            name=obj.name,
            body=form.cleaned_data["body"],
            now=now(),
            make_current=form.cleaned_data["make_current"],
        )
        obj.__dict__.update(row.__dict__)
        obj._is_new = is_new  # type: ignore[attr-defined]
        if is_new:
            note_row(actor=person_of(request.user), row=row, before=None)

    def response_add(self, request: HttpRequest, obj: CatalogRevision, *args: Any) -> HttpResponse:
        """Say so when nothing was new."""
        if not obj._is_new:  # type: ignore[attr-defined]
            messages.info(request, f"The same catalog is there already, as {obj}.")
        return super().response_add(request, obj, *args)


def _file_text(file: Any) -> str:
    most = conf.env().max_body_bytes
    if file.size > most:
        raise ValidationError(f"The file has {file.size:,} bytes; at most {most:,} are read.")
    content = file.read()
    if fault := encoding_fault(content):
        raise ValidationError(f"The file cannot be read: {fault}; save it in UTF-8.")
    return str(content.decode("utf-8-sig"))


def _read_catalog(text: str) -> object:
    if is_too_deep(text):
        raise ValidationError("This is nested too deeply.")
    try:
        body = json.loads(text)
        storable_catalog(body)
    except json.JSONDecodeError as error:
        raise ValidationError(
            f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except CatalogError as error:
        said = [f"{fault.field} {fault.message}." for fault in error.errors[:_MOST_FAULTS]]
        rest = len(error.errors) - _MOST_FAULTS
        raise ValidationError([*said, *([f"And {rest} more."] if rest > 0 else [])]) from None
    except ValueError:  # Python's bound for numbers
        raise ValidationError("A number in it has thousands of digits. Correct it.") from None
    return body
