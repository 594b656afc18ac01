"""What the gateway does for a project: its budget mode and its default upstream."""

from __future__ import annotations

from helmdash.queries import upstreams
from helmdash.queries.access import BUDGET_MODES
from helmdash.records.models import Project


class ProjectError(Exception):
    """The setting cannot be made; `field` is the one to blame, and the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def set_gateway_policy(*, project_id: int, budget_mode: str, default_upstream: str) -> None:
    """Say what happens to requests that are larger than their budget, and to unlisted models.

    budget_mode: `observe`, `warn` or `enforce`. default_upstream: the name of an upstream the
    project may use; empty for none. The gateway goes by it within a second.
    Raises ProjectError when either is unknown, or the project holds demo data.
    """
    if budget_mode not in BUDGET_MODES:
        raise ProjectError("budget_mode", f"choose one of {', '.join(BUDGET_MODES)}")
    names = {endpoint.name for endpoint in upstreams.endpoints(project_id=project_id)}
    if default_upstream and default_upstream not in names:
        known = f"choose one of {', '.join(sorted(names))}" if names else "add one first"
        raise ProjectError(
            "default_upstream",
            f"no enabled upstream is called {default_upstream[:64]!r}; {known}, or leave it empty",
        )
    changed = Project.objects.filter(pk=project_id, is_demo=False).update(
        budget_mode=budget_mode, default_upstream=default_upstream
    )
    if not changed:
        raise ProjectError("project", "demo data is loaded and removed as a whole")
