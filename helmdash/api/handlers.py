"""One handler for each kind of exception: what a client is told, and what only the log says."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError
from ninja.errors import ValidationError as NinjaValidationError

from helmdash.api.auth import forbidden_problem
from helmdash.api.problems import (
    Code,
    FieldFault,
    Problem,
    invalid,
    invalid_field,
    not_found,
    problem_response,
    unavailable,
)
from helmdash.core.access.permissions import Forbidden
from helmdash.core.assembly.assembly import OverBudget
from helmdash.core.assembly.chunks import ChunkProblem
from helmdash.core.calls.completion import UnknownModel
from helmdash.core.catalog.catalog import CatalogError
from helmdash.core.decoding.decoding import Undecodable
from helmdash.core.whatif.edits import BadEdits
from helmdash.doors.too_many import too_many_parameters
from helmdash.operations.budgets.editing import BudgetConflict, BudgetProblems, NoSuchBudget
from helmdash.operations.care import CareProblem, NoConversation, NoReminder
from helmdash.operations.database.replica import is_on_replica
from helmdash.operations.evidence.deciding import NoSuchSuggestion, SuggestionDecided
from helmdash.operations.evidence.trialling import TrialConflict
from helmdash.operations.fitting.assembly import NoPromptBudget
from helmdash.operations.planning import AskProblem, PlanFailed
from helmdash.operations.recorder import RecorderFull
from helmdash.operations.whatif.asking import BadWhatIf, NoSuchWhatIf, WhatIfConflict
from helmdash.queries.lists.paging import BadCursor
from helmdash.upstream.sharing import Stopping

logger = logging.getLogger(__name__)


def _same(error: Problem) -> Problem:
    return error


def _bad_cursor(error: BadCursor) -> Problem:
    return invalid_field("cursor", "is not one that a list gave out; start again without it")


def _bad_catalog(error: CatalogError) -> Problem:
    return invalid(FieldFault(fault.field, fault.message) for fault in error.errors)


def _bad_budget(error: BudgetProblems | BadEdits) -> Problem:
    return invalid(FieldFault(fault.field, fault.message) for fault in error.errors)


def _budget_conflict(error: BudgetConflict) -> Problem:
    problem = _bad_budget(error)
    return Problem(code=Code.CONFLICT, detail=problem.detail, faults=problem.faults)


def _no_budget(error: NoSuchBudget) -> Problem:
    return not_found(f"{str(error).capitalize()}.")


def _no_suggestion(error: NoSuchSuggestion) -> Problem:
    return not_found(str(error))


def _decided(error: SuggestionDecided | TrialConflict) -> Problem:
    return Problem(code=Code.CONFLICT, detail=str(error))


def _no_what_if(error: NoSuchWhatIf) -> Problem:
    return not_found(str(error))


def _bad_what_if(error: BadWhatIf) -> Problem:
    return invalid_field(error.field, str(error))


def _what_if_conflict(error: WhatIfConflict) -> Problem:
    return Problem(code=Code.CONFLICT, detail=str(error))


def _no_conversation(error: NoConversation) -> Problem:
    return not_found("No conversation of the key's project has this id.")


def _no_reminder(error: NoReminder) -> Problem:
    return not_found("The conversation has no reminder with this id.")


def _bad_care(error: CareProblem) -> Problem:
    return invalid_field(error.field, error.message)


def _undecodable(error: Undecodable) -> Problem:
    return Problem(
        code=Code.UNDECODABLE,
        detail=error.cause.detail,
        extra={"cause": error.cause},
    )


def _bad_ask(error: AskProblem | ChunkProblem | NoPromptBudget) -> Problem:
    return invalid_field(error.field, error.message)


def _over_budget(error: OverBudget) -> Problem:
    return Problem(
        code=Code.OVER_BUDGET,
        detail=str(error),
        extra={
            "estimated_tokens": error.estimated_tokens,
            "budget_tokens": error.budget_tokens,
            "over_by": error.over_by,
            "manifest": error.manifest,
        },
    )


def _unknown_model(error: UnknownModel) -> Problem:
    return invalid_field("model", str(error))


def _plan_failed(error: PlanFailed) -> Problem:
    return Problem(code=Code.PLAN_FAILED, detail=error.cause.detail, extra=error.told)


def _stopping(error: Stopping) -> Problem:
    return unavailable("HelmDash is stopping.")


def _gone(error: Http404) -> Problem:
    return not_found("There is nothing at this address.")


def _too_big(error: RequestDataTooBig) -> Problem:
    return Problem(code=Code.TOO_LARGE, detail="The body is too large.")


def _too_many(error: TooManyFieldsSent) -> Problem:
    return Problem(code=Code.MALFORMED, detail=too_many_parameters())


def _ninja(error: HttpError | NinjaValidationError) -> Problem:
    """Never met: our routes authenticate and validate themselves."""
    return Problem(code=Code.MALFORMED, detail="The request cannot be read.")


def _database_away(error: Exception) -> Problem:
    if is_on_replica():
        # Nobody hears of this answer: the request is done again on the primary (doors.replica).
        logger.warning("a read failed on the replica (%s)", type(error).__name__)
        return unavailable()
    # The exact error may name hosts and users: into the log, not into the answer.
    logger.exception("the database does not respond", exc_info=error)
    return unavailable()


def _database_refused(error: DatabaseError) -> Problem:
    # The replica may refuse what the primary does not: who reads there may have fewer rights.
    return _database_away(error) if is_on_replica() else _unexpected(error)


def _recorder_full(error: RecorderFull) -> Problem:
    return unavailable(str(error))


def _unexpected(error: Exception) -> Problem:
    logger.exception("an API request failed", exc_info=error)
    return Problem(
        code=Code.INTERNAL, detail="Something went wrong in HelmDash; its log has the details."
    )


_HANDLERS: dict[type[Exception], Callable[..., Problem]] = {
    Problem: _same,
    Forbidden: forbidden_problem,
    BadCursor: _bad_cursor,
    CatalogError: _bad_catalog,
    BudgetProblems: _bad_budget,
    BudgetConflict: _budget_conflict,
    NoSuchBudget: _no_budget,
    NoSuchSuggestion: _no_suggestion,
    SuggestionDecided: _decided,
    BadEdits: _bad_budget,
    NoSuchWhatIf: _no_what_if,
    BadWhatIf: _bad_what_if,
    WhatIfConflict: _what_if_conflict,
    TrialConflict: _decided,
    NoConversation: _no_conversation,
    NoReminder: _no_reminder,
    CareProblem: _bad_care,
    Undecodable: _undecodable,
    AskProblem: _bad_ask,
    ChunkProblem: _bad_ask,
    NoPromptBudget: _bad_ask,
    OverBudget: _over_budget,
    UnknownModel: _unknown_model,
    PlanFailed: _plan_failed,
    Stopping: _stopping,
    Http404: _gone,
    RequestDataTooBig: _too_big,
    TooManyFieldsSent: _too_many,
    RecorderFull: _recorder_full,
    DatabaseError: _database_refused,
    OperationalError: _database_away,
    InterfaceError: _database_away,
    AuthenticationError: _ninja,
    HttpError: _ninja,
    NinjaValidationError: _ninja,
    Exception: _unexpected,
}


def problem_of(error: Exception) -> Problem:
    """What a client is told of an exception, by the nearest kind in the table."""
    for kind in type(error).__mro__:
        if kind in _HANDLERS:
            return _HANDLERS[kind](error)
    return _unexpected(error)


def add_handlers(api: NinjaAPI) -> None:
    """Translate every exception that can leave a view."""
    for kind, to_problem in _HANDLERS.items():
        api.add_exception_handler(kind, _handler(to_problem))


def _handler(
    to_problem: Callable[..., Problem],
) -> Callable[[HttpRequest, Exception | type[Exception]], HttpResponse]:
    def handle(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
        return problem_response(request, to_problem(error))

    return handle
