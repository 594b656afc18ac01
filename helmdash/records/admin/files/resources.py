"""What budgets and aliases look like in an import or export file."""

from __future__ import annotations

from typing import Any

from import_export import widgets
from import_export.instance_loaders import BaseInstanceLoader

from helmdash.records.access.rights import person_of, visible_rows
from helmdash.records.admin.files.transfer import StrictResource, column
from helmdash.records.models import Budget, BudgetAlias, Project

# What is told of a row here alone. The window of one that a file brings is the word of whoever
# imports it.
_OWN = ("id", "window_copied_from", "created_at", "updated_at")


class ProjectSlug(widgets.Widget):  # type: ignore[misc]
    """In files a project is its slug; an empty cell means every project."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> Project | None:
        if value is None or value == "":
            return None
        known = visible_rows(Project.objects.all(), person_of(kwargs["user"]))
        found: Project | None = known.filter(slug=str(value)).first()
        if found is None:
            raise ValueError(
                f"there is no project with the slug {value!r}. Add it first, or leave this empty."
            )
        return found

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return value.slug if value else ""


class ByKey(BaseInstanceLoader):  # type: ignore[misc]
    """Finds the row of the same project and key; keys compare without regard to case. Those of
    projects that whoever imports does not see are not there: what is wrong would tell of them."""

    def get_instance(self, row: Any) -> Budget | None:
        project = row.get("project") or None
        rows = visible_rows(Budget.objects.all(), self.resource.person)
        found = rows.filter(key__iexact=str(row.get("key") or "").strip())
        scope = found.filter(project__slug=project) if project else found.filter(project=None)
        return scope.select_related("project").first()


class ByPrefix(BaseInstanceLoader):  # type: ignore[misc]
    """Finds the alias of the same prefix."""

    def get_instance(self, row: Any) -> BudgetAlias | None:
        return BudgetAlias.objects.filter(prefix__iexact=str(row.get("prefix") or "")).first()


class BudgetResource(StrictResource):
    """Every column of a budget that somebody edits; `project` and `key` say which row it is, here
    and elsewhere."""

    project = column("project", ProjectSlug())

    class Meta(StrictResource.Meta):
        model = Budget
        name = "Budgets"
        import_id_fields = ["project", "key"]
        instance_loader_class = ByKey
        exclude = _OWN

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        """A file without a project column is about the global rows."""
        super().before_import(dataset, **kwargs)
        if "project" not in (dataset.headers or ()):
            dataset.append_col([""] * len(dataset), header="project")


class AliasResource(StrictResource):
    """Both columns of an alias; its prefix says which one it is."""

    class Meta(StrictResource.Meta):
        model = BudgetAlias
        name = "Aliases"
        import_id_fields = ["prefix"]
        instance_loader_class = ByPrefix
        fields = ("prefix", "target")
