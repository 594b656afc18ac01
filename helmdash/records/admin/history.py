"""History pages of the admin: every edit with its difference, and one click to go back to it.

The rows come from django-simple-history. Its own pages show one form for each version and cannot
bring a deleted row back in one step, so the pages are ours.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format

from helmdash.records.access.rights import person_of, visible_rows
from helmdash.records.admin.edits import edits
from helmdash.records.audit import note_row, values_of
from helmdash.records.models.budgets import REVERTED_REASON

_PER_PAGE = 50
_MOST_DELETED = 100


class HistoryMixin:
    """For a ModelAdmin of a model with `history = HistoricalRecords()`."""

    model: Any
    admin_site: Any
    opts: Any

    def revert_problem(self, current: Any | None, version: Any) -> str | None:
        """Why a version must not come back, beyond what its own validation says; None: it may.
        current None: the row was deleted."""
        return None

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path("deleted/", wrap(self.deleted_view), name=f"{name}_deleted"),
            path(
                "<int:object_id>/history/<int:history_id>/revert/",
                wrap(self.revert_view),
                name=f"{name}_revert",
            ),
        ]
        urls: list[URLPattern] = super().get_urls()  # type: ignore[misc]
        return own + urls

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Every version of one row, newest first, each with a button to go back to it. Raises
        Http404 for a row that never was."""
        rows = self._history(request, object_id)
        newest = rows.first()
        current = self.model.objects.filter(pk=object_id).first() if newest else None
        self._require_view(request, current)
        if newest is None:
            raise Http404("There is no such row, and there was none.")
        page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("p"))
        shown = list(page.object_list)
        older = rows[page.end_index() : page.end_index() + 1].first() if page.has_next() else None
        context = self._context(
            request,
            title=f"History of {newest.instance}",
            edits=edits(self.model, shown, older),
            page=page,
            object_id=object_id,
            current=current,
            newest_id=newest.history_id,
            may_revert=self._may_change(request, current, newest.instance),
            **(extra_context or {}),
        )
        return TemplateResponse(request, "admin/helmdash/history.html", context)

    def deleted_view(self, request: HttpRequest) -> HttpResponse:
        """Rows that are gone, newest deletion first, each with a button to bring it back."""
        self._require_view(request, None)
        gone = (
            self._all_history(request)
            .filter(history_type="-")
            .exclude(id__in=self.model.objects.values("pk"))
            .order_by("-history_date", "-history_id")[:_MOST_DELETED]
        )
        newest = {record.id: record for record in reversed(list(gone))}
        shown = sorted(newest.values(), key=lambda record: -record.history_id)
        described = edits(self.model, shown, None)
        context = self._context(
            request,
            title=f"Deleted {self.opts.verbose_name_plural}",
            rows=[
                {
                    "edit": edit,
                    "object_id": record.id,
                    "may_restore": self._may_change(request, None, record.instance),
                }
                for edit, record in zip(described, shown, strict=True)
            ],
        )
        return TemplateResponse(request, "admin/helmdash/deleted.html", context)

    def revert_view(self, request: HttpRequest, object_id: int, history_id: int) -> HttpResponse:
        """Bring one version back: checked like any edit, and recorded as one. Raises
        PermissionDenied where the person may not edit the row."""
        back = reverse(self._url_name("history"), args=[object_id])
        if request.method != "POST":
            return HttpResponseRedirect(back)
        record = get_object_or_404(self._all_history(request), id=object_id, history_id=history_id)
        with transaction.atomic():
            current = self.model.objects.select_for_update().filter(pk=object_id).first()
            if not self._may_change(request, current, record.instance):
                raise PermissionDenied
            before = values_of(current) if current is not None else None
            level, sentence = self._revert(record, current)
            if level == messages.SUCCESS:
                row = self.model.objects.get(pk=object_id)
                note_row(actor=person_of(request.user), row=row, before=before)
        messages.add_message(request, level, sentence)
        if current is None and level != messages.SUCCESS:
            back = reverse(self._url_name("deleted"))
        return HttpResponseRedirect(back)

    def _revert(self, record: Any, current: Any | None) -> tuple[int, str]:
        version = record.instance
        version._state.adding = current is None
        when = date_format(record.history_date, "DATETIME_FORMAT")
        if current is not None and _same(current, version):
            return messages.INFO, "Nothing was changed: this is the version in force."
        problem = self.revert_problem(current, version) or _problems(version)
        if problem:
            return messages.ERROR, f"The version of {when} was not brought back: {problem}"
        version._change_reason = f"{REVERTED_REASON} to the version of {when}"
        version.save(force_insert=current is None)
        done = "Restored {} as it was at" if current is None else "Reverted {} to the version of"
        return messages.SUCCESS, f"{done.format(version)} {when}."

    def _history(self, request: HttpRequest, object_id: str) -> models.QuerySet[Any]:
        try:
            pk = int(object_id)
        except ValueError:
            raise Http404("Rows are found by number.") from None
        return self._all_history(request).filter(id=pk).order_by("-history_date", "-history_id")

    def _all_history(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Versions in which the row belonged to a project that the person may read."""
        rows: models.QuerySet[Any] = self.model.history.select_related("history_user")
        return visible_rows(rows, person_of(request.user))

    def _context(self, request: HttpRequest, **more: Any) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        names = {
            "changelist_url": reverse(self._url_name("changelist")),
            "revert_url_name": self._url_name("revert"),
            "change_url_name": self._url_name("change"),
            "history_url_name": self._url_name("history"),
        }
        return {**self.admin_site.each_context(request), "opts": self.opts, **names, **more}

    def _url_name(self, view: str) -> str:
        return f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{view}"

    def _require_view(self, request: HttpRequest, current: Any | None) -> None:
        if not self.has_view_or_change_permission(request, current):  # type: ignore[attr-defined]
            raise PermissionDenied

    def _may_change(self, request: HttpRequest, current: Any | None, version: Any) -> bool:
        """Whether the row may be edited as it is, and as it would be: that may be another's."""
        if current is None:
            return bool(self.has_add_permission(request, version))  # type: ignore[attr-defined]
        return all(
            self.has_change_permission(request, row)  # type: ignore[attr-defined]
            for row in (current, version)
        )


def _same(current: models.Model, version: models.Model) -> bool:
    fields = [f.attname for f in current._meta.concrete_fields if f.name != "updated_at"]
    return all(getattr(current, name) == getattr(version, name) for name in fields)


def _problems(version: models.Model) -> str | None:
    """What validation says against a version, in one line; None when it is sound."""
    try:
        version.full_clean()
    except ValidationError as error:
        said = error.message_dict
        return " ".join(
            text if field == "__all__" else f"{field}: {text}"
            for field, texts in said.items()
            for text in texts
        )
    return None
