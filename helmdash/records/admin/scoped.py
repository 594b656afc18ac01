"""The admin's base classes: everybody sees and edits the rows of their own projects, and no others.

Which rights somebody has in which project says core.access.permissions, through Django's
permissions (records.backend). Here they are asked for each row, where Django by itself asks only
for each table. Rows without a project concern every project, and are the superusers'.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import BaseInlineFormSet, Media, ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.utils.html import escape
from django.utils.safestring import mark_safe

from helmdash.core.access.permissions import Person
from helmdash.records.access.rights import has_permission, person_of, projects_with, visible_rows
from helmdash.records.admin import typed
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import Project

_M = TypeVar("_M", bound=Model)
_P = TypeVar("_P", bound=Model)


# Escaped before: a backtick is an entity in no text of HTML.
_CODE = re.compile("`([^`]+)`")
_NO_ROWS = "Nothing was done: what was selected is no row of this list."


class OwnProjects(admin.RelatedFieldListFilter):
    """A filter by project that names only the projects one may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """Projects that the person may read."""
        rows = visible_rows(Project.objects.order_by("name"), person_of(request.user))
        return [(str(row.pk), str(row)) for row in rows]


class Noted:
    """For a ModelAdmin: whatever is written through it stands in the audit log."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and note what changed."""
        before = _stored_values(type(obj), [obj.pk]).get(obj.pk) if change else None
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        note_row(actor=person_of(request.user), row=obj, before=before)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Save rows below another, and note each."""
        actor = person_of(request.user)
        stored = _stored_values(formset.model, [each.instance.pk for each in formset.initial_forms])
        super().save_formset(request, form, formset, change)  # type: ignore[misc]
        for row in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
            note_row(actor=actor, row=row, before=stored.get(row.pk))
        for row in formset.deleted_objects:
            note_row(actor=actor, row=row, before=values_of(row), is_gone=True)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete, and note it."""
        note_row(actor=person_of(request.user), row=obj, before=values_of(obj), is_gone=True)
        super().delete_model(request, obj)  # type: ignore[misc]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete rows, and note each."""
        with transaction.atomic():
            for row in queryset:
                actor = person_of(request.user)
                note_row(actor=actor, row=row, before=values_of(row), is_gone=True)
            super().delete_queryset(request, queryset)  # type: ignore[misc]


def _stored_values(model: type[Model], keys: Collection[Any]) -> dict[Any, dict[str, object]]:
    rows = model._default_manager.filter(pk__in=keys)
    return {row.pk: values_of(row) for row in rows}


class _RowPermissions:
    """Permissions of Django's, asked for the row, and for what a row hangs on."""

    opts: Any
    model: Any

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may change a row may look at it."""
        return self._has("view", request, obj) or self._has("change", request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether somebody may add rows: to the project of `obj`, or to any at all."""
        return self._has("add", request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether somebody may edit the row, or any at all."""
        return self._has("change", request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether somebody may delete the row, or any at all."""
        return self._has("delete", request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Rows of projects that the person may read; for superusers, all."""
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        return visible_rows(rows, person_of(request.user))

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        """Offer, and take, only projects in which the person may write such rows.

        For others than superusers a row has a project: without one it would be everybody's.
        """
        person = person_of(request.user)
        if db_field.related_model is Project:
            kwargs["queryset"] = projects_with(person, self._name("add"), self._name("change"))
        field: ModelChoiceField[Any] | None = super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **kwargs
        )
        if field is not None and db_field.related_model is Project and not person.is_superuser:
            field.required = True
        return field

    def _has(self, action: str, request: HttpRequest, row: Model | None) -> bool:
        user = request.user
        if row is None:
            return bool(user.has_perm(self._name(action)))
        return bool(user.has_perm(self._name(action), row))

    def _name(self, action: str) -> str:
        return f"{self.opts.app_label}.{get_permission_codename(action, self.opts)}"


class Light:
    """For a ModelAdmin: its pages without the scripts that fill a slug in while a name is typed,
    which no form of ours does. They were 49 of the 105 kB of a list."""

    @property
    def media(self) -> Media:
        """Django's scripts but those."""
        return Media(js=[f"admin/js/{name}" for name in _SCRIPTS])


# Of django.contrib.admin.ModelAdmin.media.
_SCRIPTS: Final = (
    "vendor/jquery/jquery.min.js",
    "jquery.init.js",
    "core.js",
    "admin/RelatedObjectLookups.js",
    "actions.js",
)


class SoundSelection:
    """For a ModelAdmin: an action on rows whose numbers are none is told, where Django fails."""

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """What an action answers; None: the list is shown again."""
        number = queryset.model._meta.pk
        try:
            for each in request.POST.getlist(ACTION_CHECKBOX_NAME):
                number.clean(each, None)
        except ValidationError:
            self.message_user(request, _NO_ROWS, messages.WARNING)  # type: ignore[attr-defined]
            return None
        answer: HttpResponse | None = super().response_action(  # type: ignore[misc]
            request, queryset, *args, **kwargs
        )
        return answer


class ScopedModelAdmin(Light, SoundSelection, Noted, _RowPermissions, typed.ModelAdmin[_M]):
    """For every table of ours. A form finds out who fills it in by its attribute `person`."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Django asks without a row; the history, for one that may come back."""
        return self._has("add", request, obj)

    def get_list_filter(self, request: HttpRequest) -> Any:
        """`project` names one's own projects only."""
        named: Iterable[Any] = super().get_list_filter(request)
        return [(each, OwnProjects) if each == "project" else each for each in named]

    def get_form(
        self, request: HttpRequest, obj: Any | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form class, with the person beside it."""
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"person": person_of(request.user)})

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """What to type is set apart in a help text, which is a model's and has it in backticks."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and "`" in field.help_text:
            field.help_text = mark_safe(_CODE.sub(r"<code>\1</code>", escape(field.help_text)))  # noqa: S308
        return field


class NamedCells(BaseInlineFormSet):  # type: ignore[type-arg]  # cannot be subscripted
    """Rows of fields in a table: each has a name, which is seen in the head of its column alone."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Those of a row; index is None for the one that scripts copy."""
        super().add_fields(form, index)
        for field in form.fields.values():
            # The buttons that Django puts beside a choice are a widget around it.
            widget = getattr(field.widget, "widget", field.widget)
            if field.label:
                widget.attrs["aria-label"] = field.label


class ScopedTabularInline(_RowPermissions, typed.TabularInline[_M, _P]):
    """For rows below another; that one decides, since theirs is its project."""

    formset = NamedCells
    template = "admin/helmdash/inline.html"


def may(person: Person, action: str, row: Model) -> bool:
    """Whether somebody has one of Django's four permissions for a row."""
    name = f"{row._meta.app_label}.{get_permission_codename(action, row._meta)}"
    return has_permission(person, name, row)
