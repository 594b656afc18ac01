"""Calls: how they are looked for, and what becomes of reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.answers import Doc
from helmdash.api.fields import QUERY, Cursor, Limit, ListText, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.trials import TRIAL_PATTERN
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.doors.bodies.fields import LARGEST
from helmdash.doors.problems import FieldFault


class ExportQuery(TypedDict, total=False):
    """Filters of calls."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    conversation: QueryText
    model: Annotated[QueryText, Field(description="In any spelling.")]
    client: Annotated[
        QueryText, Field(description="Name of the program that made the call: claude-code, curl …")
    ]
    level: Level
    cause: FailureCause
    finish_reason: FinishReason
    purpose: QueryText
    pack: QueryText
    tokens_over: Annotated[
        int, Field(ge=0, le=LARGEST, description="Prompts that were reported with more tokens.")
    ]
    trial: Annotated[
        str,
        StringConstraints(max_length=32, pattern=TRIAL_PATTERN),
        Field(
            description="Ruled in this trial of a suggestion; with `:today` or `:suggested` behind "
            "its number in that arm."
        ),
    ]
    since: Annotated[TimeBound, Field(description="Started at this time or later.")]
    until: Annotated[TimeBound, Field(description="Started before this time.")]
    q: Annotated[
        ListText,
        Field(
            description="A query, as above the list of calls: `level:critical -cause:timeout "
            "latency:>2s`. Words without a field are the beginning of a call's, a conversation's "
            "or a correlation id."
        ),
    ]


class ListQuery(ExportQuery, total=False):
    """Filters of calls, and the place in the list."""

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


EXPORT_QUERY = Shape(ExportQuery)
LIST_QUERY = Shape(ListQuery)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A call of a batch that was not stored, by its place in the batch, and why."""

    index: int
    is_too_old: Annotated[
        bool,
        Doc(
            "A transcript told of it, and it is older than the project keeps its calls: it need "
            "not be sent again."
        ),
    ] = False
    errors: tuple[FieldFault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """A stored call of a batch."""

    index: int
    id: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """What became of a batch."""

    stored: int
    duplicates: int
    rejected: tuple[Rejected, ...]
    results: tuple[BatchResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """Which ids are recorded and which are not, each in the order asked."""

    stored: tuple[str, ...]
    missing: tuple[str, ...]
