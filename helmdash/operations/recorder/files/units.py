"""What is stored together or not at all, and what became of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from helmdash.core.calls.capture import Capture
from helmdash.core.values import changed
from helmdash.operations.ids import new_id
from helmdash.operations.recorder.capture_json import load_capture
from helmdash.operations.recorder.files.spool import Entry
from helmdash.operations.recorder.files.spool_lines import Line, Written
from helmdash.operations.recorder.kept_texts import opened
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo

Answers = Future[tuple[Recorded, ...]]
# What a call's figures take in memory, about.
FIGURES_BYTES = 1_000


@dataclass(slots=True, kw_only=True, eq=False)
class Unit:
    """Calls that are stored together or not at all: one of the gateway, or a report to the API.

    Every capture has its id, caller and start, so that a second try is the same call.
    """

    project_id: int
    project: ProjectInfo | None
    """None: read from a spool, to be looked up."""
    captures: tuple[Capture, ...]
    size: int
    """Bytes, about."""
    answers: Answers | None = None
    """Who waits for it; None for calls of the gateway, for which nobody does."""
    entry: Entry | None = None
    """Where it lies in the spool."""
    line: bytes | None = None
    """What stands there, without its line break, where it was read back."""
    is_queued: bool = False
    """It counts against the bound of the gateway's queue."""
    is_adopted: bool = False
    """Read back from what another process left."""
    is_settled: bool = False
    is_dropped: bool = False
    """Neither disk nor memory had room for it."""
    watchers: list[Callable[[], None]] = field(default_factory=list)
    """Told by the writer's thread when it is settled."""
    is_bare: bool = False
    """Only its figures are left, since no database or no disk took the rest."""
    body: bytes | None = None
    """All of its one capture as JSON, where that was written already."""
    is_in_doubt: bool = False
    """It was handed to the writer process, which ended and did not say what became of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a unit: stored with these answers, or refused for this fault.

    repeats: how many of its calls were known already.
    """

    unit: Unit
    answers: tuple[Recorded, ...] = ()
    fault: Exception | None = None
    repeats: int = 0


def stored(unit: Unit, answers: tuple[Recorded, ...]) -> Outcome:
    """The unit is stored, and these are the answers."""
    return Outcome(unit, answers, repeats=sum(answer.duplicate for answer in answers))


def completed(capture: Capture, *, caller: str, at: datetime) -> Capture:
    """The capture with an id, a caller and a start, so that a second try is the same call."""
    if capture.id and capture.caller and capture.started_at:
        return capture
    return changed(
        capture,
        id=capture.id or new_id("call", at),
        caller=capture.caller or caller,
        started_at=capture.started_at or at,
    )


def reported(
    project: ProjectInfo,
    caller: str,
    captures: Sequence[Capture],
    at: datetime,
    *,
    size: int | None,
) -> tuple[Answers, Unit]:
    """A promise of answers to a report, and the report as a unit that keeps it. size: bytes of its
    texts, about; None: to be measured."""
    whole = tuple(completed(capture, caller=caller, at=at) for capture in captures)
    answers: Answers = Future()
    return answers, Unit(
        project_id=project.id,
        project=project,
        captures=whole,
        size=sum(map(size_of, whole)) if size is None else size + FIGURES_BYTES * len(whole),
        answers=answers,
    )


def size_of(capture: Capture) -> int:
    """About how many bytes a report holds in memory: its texts, and a little for its figures."""
    size = FIGURES_BYTES + len(capture.content or "")
    if capture.messages:
        with contextlib.suppress(TypeError, orjson.JSONEncodeError):
            size += len(orjson.dumps(capture.messages))
    return size


def unit_of(told: Line | None, entry: Entry | None) -> Unit | None:
    """A call read back from a spool; its project is looked up when it is stored.

    entry: None when the spool is another process's. None for a line that is no call, as far as it
    can be read.
    """
    if not isinstance(told, Written):
        return None
    try:
        capture = load_capture(opened(told.capture))
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
    return Unit(
        project_id=told.project_id,
        project=None,
        captures=(capture,),
        size=size_of(capture),
        entry=entry,
        is_adopted=entry is None,
    )
