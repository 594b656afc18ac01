"""Read-only admin lists that stay fast at a million rows.

Three things make Django's list slow on a large table: counting it, asking which values a column
has, and sorting by what no index serves. Here nothing is counted, filters offer fixed values or
those of a loose index scan, and a list shows one project in the order of that project's index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from helmdash.records.access.rights import person_of, visible_rows
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.models import Call, Project
from helmdash.records.querysets import Column, distinct_values, starts_with

_M = TypeVar("_M", bound=Model)
# Rows that paging may skip: a page costs what it skips, and nobody reads page 200.
_DEEPEST_ROW = 10_000
# Ids that one search looks up; with more, its text is too short to mean one of them.
_MOST_FOUND = 500


class UncountedPaginator(Paginator):  # type: ignore[type-arg]  # cannot be subscripted
    """Pages that know only whether there is a next one."""

    @cached_property
    def count(self) -> int:
        """A bound in place of a count: nothing here may cost more for a larger table."""
        return _DEEPEST_ROW


class UncountedChangeList(ChangeList):
    """Reads one row more than it shows, instead of counting them all."""

    has_next: bool
    is_deepest: bool

    def get_results(self, request: HttpRequest) -> None:
        """Read the page asked for. Raises IncorrectLookupParameters beyond the deepest page."""
        first = (self.page_num - 1) * self.list_per_page
        if self.page_num < 1 or first >= _DEEPEST_ROW:
            raise IncorrectLookupParameters
        rows = list(self.queryset[first : first + self.list_per_page + 1])
        self.has_next = len(rows) > self.list_per_page
        self.is_deepest = first + self.list_per_page >= _DEEPEST_ROW
        self.result_list = rows[: self.list_per_page]
        self.result_count = first + len(self.result_list)
        self.show_full_result_count = False
        self.full_result_count = None
        self.show_admin_actions = False
        self.can_show_all = False
        self.multi_page = self.page_num > 1 or self.has_next
        self.paginator = UncountedPaginator(self.queryset, self.list_per_page)

    @property
    def previous_url(self) -> str | None:
        """The address of the page with newer rows; None on the first page."""
        return self.get_query_string({"p": self.page_num - 1}) if self.page_num > 1 else None

    @property
    def next_url(self) -> str | None:
        """The address of the page with older rows; None on the last page."""
        more = self.has_next and not self.is_deepest
        return self.get_query_string({"p": self.page_num + 1}) if more else None

    @property
    def first_row(self) -> int:
        """Counts from 1 over all pages, as people count rows."""
        return (self.page_num - 1) * self.list_per_page + 1


class ProjectFilter(admin.SimpleListFilter):
    """One project at a time: the order of each list is that of an index that starts with it."""

    title = "project"
    parameter_name = "project"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, str]]:
        """Every project that the person may read, the default one first."""
        return [(str(row.pk), row.name) for row in _projects(request)]

    def has_output(self) -> bool:
        """Filter even when there is only one project, so that the index serves."""
        return True

    def value(self) -> str | None:
        """The primary key, as text, of the chosen project, else of the first one (the default,
        where it may be read); None where no project may be read."""
        chosen = super().value()
        known = [key for key, _ in self.lookup_choices]
        return chosen if chosen in known else (known[0] if known else None)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Only the rows of the project."""
        chosen = self.value()
        return queryset.filter(project_id=int(chosen)) if chosen else queryset.none()

    def choices(self, changelist: Any) -> Iterator[Any]:
        """No "all" among them: a list without a project would have to look at every row."""
        for key, name in self.lookup_choices:
            yield {
                "selected": self.value() == key,
                "query_string": changelist.get_query_string({self.parameter_name: key}),
                "display": name,
            }


def words_filter(
    column: str,
    words: Sequence[str],
    *,
    where: Callable[[str], Q] | None = None,
) -> type[admin.SimpleListFilter]:
    """A filter by a column that holds one of a few fixed words.

    `where` says the same of a word in terms of an index; None: the column itself has one.
    """
    return _column_filter(column, lambda _request: [(word, word) for word in words if word], where)


def seen_filter(column: Column, *, of: type[Model] = Call) -> type[admin.SimpleListFilter]:
    """A filter by the values that the project's calls (or `of`) have in an indexed column."""

    def values(request: HttpRequest) -> list[tuple[str, str]]:
        project = _project_in_force(request)
        return [(v, v) for v in distinct_values(project, column, of=of)] if project else []

    return _column_filter(column, values)


class ReadOnlyAdmin(ScopedModelAdmin[_M]):
    """Looks, never touches: these rows are recorded by programs and kept as they were."""

    actions = None
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a facet is a count for each value
    paginator = UncountedPaginator
    sortable_by = ()
    change_list_template = "admin/helmdash/big_list.html"
    # Column that the search field compares with; its beginning or all of it.
    searched = "name"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that does not count."""
        return UncountedChangeList

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        """Having any shows the search field; the search itself is `get_search_results`."""
        return [self.searched] if self.searched else []

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Rows whose id begins with the text.

        Looked up first and only so many: a beginning that fits a million ids would otherwise sort
        a million rows for one page.
        """
        text, project = search_term.strip(), _project_in_force(request)
        if not text or not self.searched:
            return queryset, False
        if project is None:
            return queryset.none(), False
        return self.beginning(queryset, project, text, _MOST_FOUND), False

    def beginning(
        self, queryset: QuerySet[Any], project_id: int, text: str, most: int
    ) -> QuerySet[Any]:
        """Those rows of a project whose id begins with the text, among the first `most` found."""
        fitting = self.model._default_manager.filter(
            starts_with(self.searched, text), project_id=project_id
        )
        # In no order: PostgreSQL's index for beginnings has none, and would sort them all.
        ids = fitting.order_by().values_list("pk", flat=True)[:most]
        return queryset.filter(pk__in=list(ids))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Old rows go by the project's retention."""
        return False


def _column_filter(
    column: str,
    values: Callable[[HttpRequest], Sequence[tuple[str, str]]],
    where: Callable[[str], Q] | None = None,
) -> type[admin.SimpleListFilter]:
    class ColumnFilter(admin.SimpleListFilter):
        title = column.replace("_", " ")
        parameter_name = column

        def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, str]]:
            return values(request)

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            chosen = self.value()
            if not chosen or chosen not in dict(self.lookup_choices):
                return queryset
            return queryset.filter(where(chosen) if where else Q(**{column: chosen}))

    return ColumnFilter


def _projects(request: HttpRequest) -> QuerySet[Project]:
    rows = Project.objects.order_by("-is_default", "is_demo", "name")
    return visible_rows(rows, person_of(request.user))


def _project_in_force(request: HttpRequest) -> int | None:
    chosen = request.GET.get(ProjectFilter.parameter_name, "")
    # Compared as text, as the filter does: what is no number is none of them.
    known = {str(pk): pk for pk in _projects(request).values_list("pk", flat=True)}
    return known.get(chosen, next(iter(known.values()), None))
