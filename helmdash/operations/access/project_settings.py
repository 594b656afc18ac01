"""The first project, and what the gateway does for one: budget mode, default upstream, care."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.care.guidance import DEFAULT_TEXTS, text_problems
from helmdash.core.care.remediation import Strength
from helmdash.operations.database.transactions import write
from helmdash.queries import upstreams
from helmdash.queries.access.access import BUDGET_MODES, ProjectInfo, project_info
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import Project


class ProjectError(Exception):
    """The setting cannot be made; `field` is the one to blame, and the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def ensure_project() -> ProjectInfo:
    """The default project, made when there is none yet."""
    project = Project.objects.filter(is_default=True).first()
    if project is None:
        project = Project.objects.create(slug="default", name="Default", is_default=True)
    return project_info(project)


def set_gateway_policy(
    *, actor: Actor, project_id: int, budget_mode: str, default_upstream: str
) -> None:
    """Say what happens to requests that are larger than their budget, and to unlisted models.

    budget_mode: `observe`, `warn` or `enforce`. default_upstream: the name of an upstream the
    project may use; empty for none. The gateway goes by it within a second.
    Raises Forbidden; ProjectError when either is unknown, or the project holds demo data.
    """
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    if budget_mode not in BUDGET_MODES:
        raise ProjectError("budget_mode", f"choose one of {', '.join(BUDGET_MODES)}")
    names = {endpoint.name for endpoint in upstreams.endpoints(project_id=project_id)}
    if default_upstream and default_upstream not in names:
        known = f"choose one of {', '.join(sorted(names))}" if names else "add one first"
        raise ProjectError(
            "default_upstream",
            f"no enabled upstream is called {default_upstream[:64]!r}; {known}, or leave it empty",
        )
    _change(actor, project_id, {"budget_mode": budget_mode, "default_upstream": default_upstream})


def set_care_settings(
    *,
    actor: Actor,
    project_id: int,
    remediation: bool,
    soft_text: str,
    hard_text: str,
    critical_text: str,
) -> None:
    """Say whether the gateway cares for conversations, and in which words guidance is given.

    A text that is empty, or the shipped one, leaves it to the shipped text, also in later versions.
    The switch is for the gateway only; whoever asks `advance` gets guidance in any case.
    Raises Forbidden; ProjectError for a text that cannot be used, or when the project holds demo
    data.
    """
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    given = {Strength.SOFT: soft_text, Strength.HARD: hard_text, Strength.CRITICAL: critical_text}
    own = {strength: own_text(strength, text) for strength, text in given.items()}
    for strength, text in own.items():
        problems = text_problems(text) if text else ()
        if problems:
            raise ProjectError(f"{strength.value}_text", "; ".join(problems))
    texts = {f"{strength.value}_text": text for strength, text in own.items()}
    _change(actor, project_id, {"remediation": remediation, **texts})


def own_text(strength: Strength, text: str) -> str:
    """A text as it is stored: with plain line ends, and empty where it is the shipped one."""
    plain = text.replace("\r\n", "\n").strip()
    return "" if plain == DEFAULT_TEXTS[strength].strip() else plain


def _change(actor: Actor, project_id: int, values: Mapping[str, object]) -> None:
    def work() -> None:
        rows = Project.objects.select_for_update().filter(pk=project_id, is_demo=False)
        row = rows.first()
        if row is None:
            raise ProjectError("project", "demo data is loaded and removed as a whole")
        before = values_of(row)
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=list(values))
        note_row(actor=actor, row=row, before=before)

    write(work)
