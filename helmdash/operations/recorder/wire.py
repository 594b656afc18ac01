"""What a server process and the host's writer process say to each other, as bytes.

A frame is one letter, a length of four bytes, and so many bytes. Asked is a group: one line of JSON
that tells of its units, then their captures, each as it waits in a spool. Answered is what became
of them, transaction by transaction, and last what was learned for the gateway to go by. Only the
captures' texts are long, and those are never written anew where the spool has them already.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from typing import Any, Final

import orjson

from helmdash import __version__
from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.truncation.calibration import Band
from helmdash.operations.recorder.capture_json import dump_capture, load_capture
from helmdash.operations.recorder.files.units import Outcome, Unit
from helmdash.operations.recorder.group_commit import RefusedElsewhere, reason
from helmdash.operations.recorder.terms import Counts
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.truncation import LearnedBand
from helmdash.queries.access.access import ProjectInfo

# Said first, by the writer: who is of another release is not asked.
HELLO = b"helmdash writer %s\n" % __version__.encode()

GROUP = b"G"
# What became of some units; the same, and nothing more is to come; nothing could be stored.
STORED, LAST, UNAVAILABLE = b"S", b"L", b"U"

_HEAD = struct.Struct(">cI")
_REPORT, _ADOPTED, _BARE, _IN_DOUBT = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What is asked for: to store these units, and to keep the books of who asks.

    spool_bytes: of its spool. counts: its own, without these units.
    """

    process: str
    started_at: datetime
    spool_bytes: int
    counts: Counts
    units: list[Unit]


def send_frame(to: socket.socket, kind: bytes, *parts: bytes) -> None:
    """Send a frame whole. Raises OSError."""
    to.sendall(frame(kind, *parts))


def frame(kind: bytes, *parts: bytes) -> bytes:
    """A frame as it is sent."""
    return b"".join((_HEAD.pack(kind, sum(map(len, parts))), *parts))


def read_frame(stream: BufferedReader) -> tuple[bytes, bytes]:
    """The next frame. Raises OSError when the other end is gone."""
    kind, size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    return kind, _exactly(stream, size)


def _exactly(stream: BufferedReader, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ConnectionResetError("the other end is gone")
    return found


def group_parts(group: Group) -> list[bytes]:
    """A group as the parts of a frame."""
    projects: dict[ProjectInfo, int] = {}
    bodies: list[bytes] = []
    told = []
    for unit in group.units:
        lines = _lines(unit)
        place = None
        if unit.project is not None:
            place = projects.setdefault(unit.project, len(projects))
        told.append((unit.project_id, place, _flags(unit), [len(line) for line in lines]))
        bodies += lines
    head = orjson.dumps(
        {
            "process": group.process,
            "started_at": group.started_at,
            "spool_bytes": group.spool_bytes,
            "counts": group.counts,
            "projects": list(projects),
            "units": told,
        }
    )
    return [head, b"\n", *bodies]


def read_group(data: bytes) -> Group:
    """Undo `group_parts`. Raises ValueError, TypeError or KeyError for what it has not made."""
    at = data.index(b"\n") + 1
    told = orjson.loads(data[:at])
    projects = [_project(each) for each in told["projects"]]
    units: list[Unit] = []
    for project_id, place, flags, sizes in told["units"]:
        captures = []
        for size in sizes:
            captures.append(load_capture(orjson.loads(data[at : at + size])))
            at += size
        units.append(
            Unit(
                project_id=project_id,
                project=projects[place] if place is not None else None,
                captures=tuple(captures),
                size=sum(sizes),
                answers=Future() if flags & _REPORT else None,
                is_adopted=bool(flags & _ADOPTED),
                is_bare=bool(flags & _BARE),
                is_in_doubt=bool(flags & _IN_DOUBT),
            )
        )
    return Group(
        process=told["process"],
        started_at=datetime.fromisoformat(told["started_at"]),
        spool_bytes=told["spool_bytes"],
        counts=Counts(**told["counts"]),
        units=units,
    )


def dump_outcomes(
    outcomes: Sequence[Outcome], places: Mapping[int, int], bands: Sequence[LearnedBand] = ()
) -> bytes:
    """What became of units, by their places in the group (of the ids of the units)."""
    return orjson.dumps(
        {
            "outcomes": [_told(outcome, places[id(outcome.unit)]) for outcome in outcomes],
            "bands": list(map(tuple, bands)),
        }
    )


def read_outcomes(
    data: bytes, units: Sequence[Unit]
) -> tuple[list[Outcome], tuple[LearnedBand, ...]]:
    """The same, of the units that were sent. Raises as `read_group` does."""
    told = orjson.loads(data)
    bands = tuple(map(_band, told["bands"]))
    return [_outcome(each, units) for each in told["outcomes"]], bands


def _told(outcome: Outcome, place: int) -> dict[str, object]:
    told: dict[str, object] = {"place": place, "repeats": outcome.repeats}
    if outcome.fault is not None:
        told["fault"] = reason(outcome.fault)
    elif outcome.unit.answers is not None:
        told["answers"] = outcome.answers
    if outcome.unit.is_bare:
        told["is_bare"] = True
    return told


def _outcome(told: Mapping[str, Any], units: Sequence[Unit]) -> Outcome:
    unit = units[told["place"]]
    unit.is_bare = unit.is_bare or "is_bare" in told
    if "fault" in told:
        return Outcome(unit, fault=RefusedElsewhere(told["fault"]))
    answers = tuple(map(_recorded, told.get("answers", ())))
    return Outcome(unit, answers, repeats=told["repeats"])


def _flags(unit: Unit) -> int:
    return (
        _REPORT * (unit.answers is not None)
        | _ADOPTED * unit.is_adopted
        | _BARE * unit.is_bare
        | _IN_DOUBT * unit.is_in_doubt
    )


def _lines(unit: Unit) -> list[bytes]:
    if unit.body is not None:
        return [unit.body]
    return [dump_capture(capture)[1] for capture in unit.captures]


def _project(told: Mapping[str, Any]) -> ProjectInfo:
    return ProjectInfo(**{**told, "redaction_patterns": tuple(told["redaction_patterns"])})


def _recorded(told: dict[str, Any]) -> Recorded:
    cause, finish = told["cause"], told["finish_reason"]
    if cause is not None:
        told["cause"] = Cause(
            name=FailureCause(cause["name"]),
            rule=cause["rule"],
            advice=Advice(cause["advice"]),
            detail=cause["detail"],
        )
    told["finish_reason"] = _FINISHES[finish]
    told["health"] = _health(told["health"])
    return Recorded(**told)


def _health(told: dict[str, Any]) -> Health:
    told["level"] = _LEVELS[told["level"]]
    told["reason"] = _REASONS[told["reason"]]
    told["limit_source"] = _SOURCES[told["limit_source"]]
    return Health(**told)


# Looked up, for a call of an enumeration costs ten times as much, and each call has four.
_LEVELS: Final[Mapping[str, Level]] = {each.value: each for each in Level}
_REASONS: Final[Mapping[str | None, HealthReason | None]] = {
    None: None,
    **{each.value: each for each in HealthReason},
}
_SOURCES: Final[Mapping[str | None, LimitSource | None]] = {
    None: None,
    **{each.value: each for each in LimitSource},
}
_FINISHES: Final[Mapping[str | None, FinishReason | None]] = {
    None: None,
    **{each.value: each for each in FinishReason},
}


def _band(told: Sequence[Any]) -> LearnedBand:
    project_id, model_key, upstream_model, band = told
    learned = Band(**{**band, "pins": tuple(band["pins"])})
    return LearnedBand(project_id, model_key, upstream_model, learned)
