"""The form of a what-if: lines of a row's key, a figure and its new value, as many as anybody
needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final

from django.http import QueryDict

from helmdash.core.text.time_ranges import BadRange, parse_range
from helmdash.core.whatif.edits import EDITABLE, MOST_EDITS, BadEdits, read_edits, read_value

# Blank lines that are shown below the filled ones.
_BLANK: Final = 2
_MOST_LINES: Final = 5 * MOST_EDITS
_WORDS: Final = {"yes": True, "true": True, "no": False, "false": False}
DEFAULT_RANGE: Final = "7d"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of one row as it was typed. problem: what is wrong with it; "" nothing."""

    key: str = ""
    figure: str = ""
    value: str = ""
    problem: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nobody has typed anything."""
        return not (self.key.strip() or self.figure or self.value.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the form says. edits: for core.whatif.edits, None where something is wrong."""

    lines: tuple[Line, ...]
    title: str
    range: str
    edits: list[dict[str, Any]] | None
    since: datetime | None
    until: datetime | None
    is_whole: bool
    problems: tuple[str, ...]


def lines_of(edits: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    """Lines that say these edits."""
    return tuple(
        Line(each["key"], figure, _text(value))
        for each in edits
        for figure, value in each["changes"].items()
    )


def with_blanks(lines: Sequence[Line], more: int = 0) -> tuple[Line, ...]:
    """The lines with some to type into. more: so many besides."""
    return (*lines, *[Line()] * (_BLANK + more))[:_MOST_LINES]


def read_form(data: QueryDict, *, now: datetime, zone: tzinfo) -> Asked:
    """What was typed; never raises."""
    typed = zip(data.getlist("key"), data.getlist("figure"), data.getlist("value"), strict=False)
    lines = [Line(key, figure, value) for key, figure, value in typed][:_MOST_LINES]
    lines = [line for line in lines if not line.is_blank]
    problems: list[str] = []
    edits: dict[str, dict[str, Any]] = {}
    for at, line in enumerate(lines):
        try:
            value = _read(line)
        except ValueError as error:
            lines[at] = Line(line.key, line.figure, line.value, str(error))
            continue
        row = edits.setdefault(line.key.strip().lower(), {"key": line.key.strip(), "changes": {}})
        row["changes"][line.figure] = value
    since, until, is_whole = _range(data.get("range", DEFAULT_RANGE), now, zone, problems)
    title = data.get("title", "")[:200]
    if "\x00" in title:
        problems.append("title: must have no NUL character")
    found = list(edits.values())
    if not any(line.problem for line in lines):
        try:
            read_edits(found)
        except BadEdits as error:
            problems += [each.message for each in error.errors]
    is_sound = not problems and not any(line.problem for line in lines)
    return Asked(
        lines=tuple(lines),
        title=title,
        range=data.get("range", DEFAULT_RANGE)[:100],
        edits=found if is_sound else None,
        since=since,
        until=until,
        is_whole=is_whole,
        problems=tuple(problems),
    )


def _range(
    text: str, now: datetime, zone: tzinfo, problems: list[str]
) -> tuple[datetime | None, datetime | None, bool]:
    text = text.strip()[:100] or DEFAULT_RANGE
    if text == "all":
        return None, None, True
    try:
        found = parse_range(text, now=now, zone=zone)
    except BadRange as error:
        problems.append(f"range: {error}")
        return None, None, False
    return found.since, found.until, found.since is None


def _read(line: Line) -> object:
    """The value as its field has it. Raises ValueError with a sentence."""
    if "\x00" in line.key + line.value:
        raise ValueError("must have no NUL character")
    field = EDITABLE.get(line.figure)
    if field is None:
        raise ValueError("choose a figure")
    text = line.value.strip()
    if field.kind is str:
        return read_value(line.figure, text)
    if not text:
        if not field.may_be_none:
            raise ValueError("write its new value")
        return None
    if field.kind is bool:
        if text.lower() not in _WORDS:
            raise ValueError("write yes or no")
        return _WORDS[text.lower()]
    if field.kind in (int, float):
        try:
            number = float(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise ValueError("must be a number") from None
        return read_value(line.figure, int(number) if number.is_integer() else number)
    return read_value(line.figure, text)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
