"""Failures of tools and resources: a word, a sentence, and what a caller can do with it.

Nothing in them comes from inside: no stack, no text of a library or of the database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from django.db import InterfaceError, OperationalError

from helmdash.core.access.permissions import Forbidden
from helmdash.core.calls.completion import UnknownModel
from helmdash.core.catalog.catalog import CatalogError
from helmdash.doors.problems import FieldFault
from helmdash.operations.care import CareProblem, NoConversation, NoReminder
from helmdash.operations.planning import AskProblem, PlanFailed
from helmdash.operations.recorder import RecorderFull
from helmdash.upstream.sharing import Stopping

log = logging.getLogger(__name__)


class ToolProblem(Exception):
    """What a caller is told; `word` is the `error` of the result, `extra` further members."""

    def __init__(
        self, word: str, message: str, *, extra: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.word = word
        self.message = message
        self.extra = dict(extra or {})

    @property
    def body(self) -> dict[str, object]:
        """As it leaves: {"error", "message", ...}."""
        return {"error": self.word, "message": self.message, **self.extra}


def invalid(faults: Sequence[FieldFault]) -> ToolProblem:
    """The arguments are not what the tool takes."""
    told = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:3])
    errors = [{"field": fault.field, "message": fault.message} for fault in faults]
    return ToolProblem("invalid", told, extra={"errors": errors})


def invalid_field(field: str, message: str) -> ToolProblem:
    """`invalid`, with one argument named under `errors`."""
    return invalid([FieldFault(field, message)])


def forbidden(name: str, scope: str) -> ToolProblem:
    """`forbidden`: the message names the scope that the key lacks."""
    return ToolProblem(
        "forbidden", f"The key {name} lacks the scope {scope}.", extra={"scope": scope}
    )


def _forbidden(error: Forbidden) -> ToolProblem:
    return ToolProblem(
        "forbidden", str(error), extra={"scope": error.scope} if error.scope else None
    )


def not_found(message: str) -> ToolProblem:
    """There is nothing by this name, or not in the key's project."""
    return ToolProblem("not_found", message)


def problem_of(error: Exception) -> ToolProblem:
    """What a caller is told of an exception."""
    for kind, tell in _TOLD:
        if isinstance(error, kind):
            return tell(error)
    log.exception("an MCP request failed", exc_info=error)
    return ToolProblem("internal", "Something went wrong in HelmDash; its log has the details.")


def _same(error: ToolProblem) -> ToolProblem:
    return error


def _bad_catalog(error: CatalogError) -> ToolProblem:
    return invalid([FieldFault(each.field, each.message) for each in error.errors])


def _bad_ask(error: AskProblem) -> ToolProblem:
    return invalid_field(error.field, error.message)


def _no_conversation(error: NoConversation) -> ToolProblem:
    return not_found("No conversation of the key's project has this id. Record a call of it first.")


def _no_reminder(error: NoReminder) -> ToolProblem:
    return not_found(
        "The conversation has no reminder with this reminder_id; conversation_health lists them."
    )


def _bad_care(error: CareProblem) -> ToolProblem:
    return invalid_field(error.field, error.message)


def _unknown_model(error: UnknownModel) -> ToolProblem:
    return invalid_field("model", str(error))


def _plan_failed(error: PlanFailed) -> ToolProblem:
    return ToolProblem("plan_failed", error.cause.detail, extra=error.told)


def _busy(error: Exception) -> ToolProblem:
    return ToolProblem("unavailable", str(error))


def _database_away(error: Exception) -> ToolProblem:
    # The exact error may name hosts and users: into the log, not into the answer.
    log.error("the database does not respond", exc_info=error)
    return ToolProblem("unavailable", "The database is unavailable. Try again in a few seconds.")


_TOLD: tuple[tuple[type[Exception], Callable[..., ToolProblem]], ...] = (
    (ToolProblem, _same),
    (Forbidden, _forbidden),
    (CatalogError, _bad_catalog),
    (AskProblem, _bad_ask),
    (NoConversation, _no_conversation),
    (NoReminder, _no_reminder),
    (CareProblem, _bad_care),
    (UnknownModel, _unknown_model),
    (PlanFailed, _plan_failed),
    (RecorderFull, _busy),
    (Stopping, _busy),
    (OperationalError, _database_away),
    (InterfaceError, _database_away),
)
