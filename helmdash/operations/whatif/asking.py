"""What people and programs ask of what-ifs: to make one, to end it, and to make its edits real."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db.models import QuerySet

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.whatif.edits import RowEdit, edited_rows, read_edits
from helmdash.core.whatif.snapshot import plain, table_to_json
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.operations.database.transactions import write
from helmdash.operations.ids import new_id
from helmdash.queries.budgets import budgets
from helmdash.queries.line_edits import OwnEdit
from helmdash.queries.whatif.what_ifs import WhatIfView, find
from helmdash.records import audit
from helmdash.records.models import WhatIf
from helmdash.records.statements.locking import lock_project

# Each may take minutes, and they are run one after the other.
MOST_WAITING: Final = 5
# Those that ended last are kept: a link in a message leads somewhere for months of ordinary use.
MOST_KEPT: Final = 100
# What is looked at where nobody says.
LOOKS_BACK: Final = timedelta(days=7)
UNDER_WAY: Final = ("waiting", "running")
# As much as a budget's evidence may be (core.budgets.budgets).
_EVIDENCE_CHARS: Final = 20_000


class NoSuchWhatIf(Exception):
    """The project has no what-if with this id."""


class BadWhatIf(Exception):
    """It cannot be asked so; `field` names the member."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class WhatIfConflict(Exception):
    """It is not in a state for this: too many wait, or the budgets were edited since."""


def ask(
    *,
    actor: Actor,
    project_id: int,
    edits: Iterable[Mapping[str, Any]],
    title: str,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    is_whole: bool = False,
) -> WhatIfView:
    """Keep a question, with the budgets of this moment, for a server to answer.

    edits: objects of `key` and `changes` (core.whatif.edits). since None: LOOKS_BACK before
    `until`, or from the first call where is_whole; until None: now. No budget changes.
    Raises Forbidden, BadEdits, BadWhatIf, and WhatIfConflict where too many wait.
    """
    require(actor, Right.FIT, project_id=project_id)
    end = min(until or now, now)
    begin = since if since is not None or is_whole else end - LOOKS_BACK
    if begin is not None and begin >= end:
        raise BadWhatIf("since", "must be before `until`, and before now")
    read = read_edits(edits)
    table = budgets.table(project_id=project_id)
    edited_rows(table, read, project=str(project_id))
    row = WhatIf(
        project_id=project_id,
        name=new_id("whatif", now),
        title=title.strip()[:200],
        edits=[each.to_json() for each in read],
        today=_today(table, read, project_id),
        rules=json.dumps(table_to_json(table), separators=(",", ":")),
        since=begin,
        until=end,
        made_by=str(actor)[:150],
        made_at=now,
    )
    write(partial(_keep, row, actor))
    return _told(project_id, row.name)


def cancel(*, actor: Actor, project_id: int, name: str, now: datetime) -> WhatIfView:
    """End one that waits or runs; what it has counted stays. Nothing for one that has ended.

    Raises Forbidden and NoSuchWhatIf.
    """
    require(actor, Right.FIT, project_id=project_id)

    def work() -> None:
        rows = WhatIf.objects.filter(project_id=project_id, name=name, state__in=UNDER_WAY)
        if rows.update(state="cancelled", ended_at=now, cancel_by=str(actor)[:150]):
            _note(actor, project_id, name, "cancelled")

    write(work)
    return _told(project_id, name)


def apply(*, actor: Actor, project_id: int, name: str, now: datetime) -> WhatIfView:
    """Make the edits of a what-if: ordinary edits of rows of this project alone, all or none.

    Raises Forbidden, NoSuchWhatIf, BudgetProblems, NoSuchBudget, and WhatIfConflict where it was
    applied already or somebody has edited one of its figures since.
    """
    require(actor, Right.CHANGE_BUDGETS, project_id=project_id)
    write(partial(_apply, actor, project_id, name, now))
    return _told(project_id, name)


def _keep(row: WhatIf, actor: Actor) -> None:
    lock_project(row.project_id)
    own = WhatIf.objects.filter(project_id=row.project_id)
    if own.filter(state__in=UNDER_WAY).count() >= MOST_WAITING:
        raise WhatIfConflict(
            f"{MOST_WAITING} what-ifs of this project wait or run already; cancel one, or wait."
        )
    row.save(force_insert=True)
    _forget_oldest(own)
    _note(actor, row.project_id, row.name, "asked")


def _forget_oldest(own: QuerySet[WhatIf]) -> None:
    ended = own.exclude(state__in=UNDER_WAY).order_by("-id")
    too_old = list(ended.values_list("id", flat=True)[MOST_KEPT : MOST_KEPT + 100])
    if too_old:
        own.filter(id__in=too_old).delete()


def _apply(actor: Actor, project_id: int, name: str, now: datetime) -> None:
    row = WhatIf.objects.select_for_update().filter(project_id=project_id, name=name).first()
    if row is None:
        raise NoSuchWhatIf(f"There is no what-if {name}.")
    if row.applied_at is not None:
        raise WhatIfConflict(f"{row.applied_by} applied it already.")
    table = budgets.table(project_id=project_id)
    edits = read_edits(row.edits)
    if _today(table, edits, project_id) != row.today:
        raise WhatIfConflict(
            "Somebody has edited one of these figures since; make a what-if of today's budgets."
        )
    edited_rows(table, edits, project=str(project_id))
    said = f"{now:%Y-%m-%d}: what-if {name}"
    for edit in edits:
        base = table.row_to_edit(edit.key, project=str(project_id))
        told = ", ".join(f"{field} {value}" for field, value in edit.changes.items())
        evidence = f"{said}: {told}.\n{base.evidence}".strip()[:_EVIDENCE_CHARS]
        store_own_edit(
            actor=actor,
            project_id=project_id,
            edit=OwnEdit(row=base, changes={**edit.changes, "evidence": evidence}),
        )
    row.applied_at, row.applied_by = now, str(actor)[:150]
    row.save(update_fields=["applied_at", "applied_by"])
    _note(actor, project_id, name, "applied")


def _today(table: BudgetTable, edits: Iterable[RowEdit], project_id: int) -> list[dict[str, Any]]:
    """Of each edit the same figures as they are."""
    found = []
    for edit in edits:
        row = table.row_to_edit(edit.key, project=str(project_id))
        found.append({field: plain(getattr(row, field)) for field in edit.changes})
    return found


def _told(project_id: int, name: str) -> WhatIfView:
    found = find(project_id=project_id, name=name)
    if found is None:
        raise NoSuchWhatIf(f"There is no what-if {name}.")
    return found


def _note(actor: Actor, project_id: int, name: str, action: str) -> None:
    audit.note(actor=actor, project_id=project_id, kind="what-if", action=action, subject=name)
