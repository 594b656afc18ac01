"""The fill curve: numbers into the places and sizes of an SVG. Templates only write them down.

No style is set here: shapes carry classes, so that both schemes and the CSP are served.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from helmdash.core.budgets.levels import BY_SEVERITY, HELD, LEVELS, Glyph, Level, line_of
from helmdash.core.budgets.projection import Projection
from helmdash.pages.parts.charts.axes import Frame, Tick, ticks, x_scale, x_step, x_ticks
from helmdash.pages.parts.charts.clear_markers import NO_NOTES, ClearMarker, clear_markers
from helmdash.pages.parts.charts.curve_events import generation_before, unexplained_falls
from helmdash.pages.parts.charts.drawings import outline, short
from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CurvePoint
from helmdash.queries.marks import Mark

# A line this many times above the highest prompt would press the curve flat; it is told in words.
_LINES_UP_TO = 4.0
_HEADROOM = 1.1
# Of the drawing, what is left for where the curve goes next.
_AHEAD_SHARE = 0.2
# Points closer than this (px) are thinned to those that say something.
_POINT_SPACING = 9.0
# Tokens whose digits are longer than the room for the names of lines.
_LONG_FROM = 10_000_000

ValueOf = Callable[[CurvePoint], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A threshold: where it runs, and its newest value. label_y: None where that lies above the
    drawing."""

    name: str
    path: str
    value: int
    label_y: float | None

    @property
    def short_value(self) -> str:
        """The value as the drawing has room for it: 115,200, and 1.89G instead of ten digits."""
        return f"{self.value:,}" if self.value < _LONG_FROM else short(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """All generations of a level that have a sign: outlines that say the level, and the class that
    has its colour."""

    css_class: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Frame):
    """A fill curve, laid out for one width (px).

    first_x, step: where its first generation stands, and how far it is to the next. most: the
    tokens at the top. ahead: where it goes next; "" where nothing says so. edits: of the budget.
    """

    first_x: float
    step: float
    most: float
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    above: tuple[tuple[str, int], ...]
    segments: tuple[str, ...]
    areas: tuple[str, ...]
    signs: tuple[Signs, ...]
    trims: tuple[str, ...]
    clear_markers: tuple[ClearMarker, ...]
    failures: tuple[str, ...] = ()
    falls: tuple[Tick, ...] = ()
    ahead: str = ""
    edits: tuple[Tick, ...] = ()
    has_untrusted: bool = False

    @property
    def has_values(self) -> bool:
        """False when no generation reported its usage: there is nothing to draw."""
        return bool(self.segments) or self.has_untrusted


def curve(
    points: Sequence[CurvePoint],
    *,
    width: int,
    height: int,
    rounds: Sequence[RoundView] = (),
    windows: Mapping[str, int] | None = None,
    ahead: Projection | None = None,
    edits: Sequence[Mark] = (),
    notes: Mapping[int, str] = NO_NOTES,
) -> Curve:
    """Lay out prompt tokens by generation, with the lines they are judged by.

    rounds: what opened them is told where they begin; one without a call yet stands at the end.
    windows: lines of one height besides those of the calls, by their names (tokens); None: none.
    ahead: the next line, towards which a dashed line goes on; edits: of the budget. notes:
    what is said at the marker of a fresh start, by the number of the round it opened.
    """
    frame = Frame(width=width, height=height, top=16.0)
    top, bottom = frame.top, frame.bottom
    levels = {**_LINES, **{name: _flat(value) for name, value in (windows or {}).items()}}
    shown, above = _lines_in_view(points, levels)
    y_max = _y_max(points, shown)
    is_open = _has_open_end(points, rounds)
    extra = int(is_open) or (_room_ahead(points, ahead) if ahead else 0)
    x = x_scale(points, frame.left, frame.right, extra=extra)
    y = frame.y_scale(y_max)
    runs = _runs(points, x, y)
    lines_end = frame.right if ahead and _is_drawn(ahead, shown, points) else None
    return Curve(
        width=width,
        height=height,
        top=top,
        first_x=x(points[0].generation) if points else frame.left,
        step=x_step(points, frame.left, frame.right, extra=extra),
        most=y_max,
        y_ticks=tuple(Tick(at=y(value), label=short(value)) for value in ticks(y_max)),
        x_ticks=x_ticks(points, x, most=frame.most_ticks),
        lines=_spread(
            tuple(
                _line(name, of, points, x, y, y_max=y_max, end=lines_end)
                for name, of in shown.items()
            )
        ),
        above=above,
        segments=tuple("M" + " L".join(f"{a},{b}" for a, b in run) for run in runs),
        areas=tuple(_area(run, bottom) for run in runs),
        signs=_signs(points, x, y, bottom, spacing=frame.across / max(len(points), 1)),
        trims=tuple(f"M{x(p.generation) - 4},{top - 8} h8 l-4,6 z" for p in points if p.is_trimmed),
        has_untrusted=any(p.prompt_tokens is not None and not p.is_trusted for p in points),
        failures=tuple(_cross(x(p.generation), _height(p, y, bottom)) for p in points if p.cause),
        falls=tuple(
            Tick(
                at=x(each.generation),
                label=f"Generation {each.generation:,}: {each.gone:,} tokens fewer",
            )
            for each in unexplained_falls(points)
        ),
        ahead=_path_ahead(points, ahead, extra, x, y, y_max=y_max) if ahead and extra else "",
        edits=tuple(
            Tick(
                at=min(x(generation_before(edit.at, points) + 0.5), frame.right),
                label=edit.text,
            )
            for edit in edits
        ),
        clear_markers=clear_markers(
            points, rounds, x=x, y=y, top=top, bottom=bottom, right=frame.right, notes=notes
        ),
    )


def _room_ahead(points: Sequence[CurvePoint], ahead: Projection) -> int:
    """Generations left free for what comes: up to the line, as far as that presses nothing."""
    return min(ahead.generations, max(2, round(len(points) * _AHEAD_SHARE)))


def _is_drawn(
    ahead: Projection, shown: Mapping[str, ValueOf], points: Sequence[CurvePoint]
) -> bool:
    """Whether the line that comes next is one of those that the newest call was judged by: a budget
    may have been edited since."""
    value_of = shown.get(ahead.level)
    return value_of is not None and value_of(points[-1]) == ahead.line


def _path_ahead(
    points: Sequence[CurvePoint],
    ahead: Projection,
    extra: int,
    x: Callable[[float], float],
    y: Callable[[float], float],
    *,
    y_max: float,
) -> str:
    """From the newest prompt towards the line, as far as there is room."""
    newest = points[-1]
    tokens = newest.prompt_tokens or 0
    rise = ahead.line - tokens
    part = min(extra / ahead.generations, (y_max - tokens) / rise if rise else 1.0)
    end = newest.generation + ahead.generations * part
    return f"M{x(newest.generation)},{y(tokens)} L{x(end)},{y(tokens + rise * part)}"


def _level_line(point: CurvePoint, level: Level) -> int | None:
    """The line of a level; None where a worse one comes first, as in a small model's window."""
    at = line_of(level, point)
    worse = BY_SEVERITY[: BY_SEVERITY.index(level)]
    lines = [line for each in worse if (line := line_of(each, point)) is not None]
    return None if at is None or any(at >= line for line in lines) else at


_LINES: dict[str, ValueOf] = {
    **{level.value: partial(_level_line, level=level) for level in reversed(HELD)},
    "limit": lambda point: point.limit_tokens,
}


def _flat(value: int) -> ValueOf:
    return lambda _: value


def _has_open_end(points: Sequence[CurvePoint], rounds: Sequence[RoundView]) -> bool:
    """Whether a clear has opened a round that has no call yet."""
    return bool(points) and any(each.number > points[-1].round_number for each in rounds)


def _lines_in_view(
    points: Sequence[CurvePoint], levels: Mapping[str, ValueOf]
) -> tuple[dict[str, ValueOf], tuple[tuple[str, int], ...]]:
    """Which lines are drawn, and which lie too far above to be drawn (with their value)."""
    peak = max((p.prompt_tokens or 0 for p in points), default=0)
    shown: dict[str, ValueOf] = {}
    above: list[tuple[str, int]] = []
    for name, value_of in levels.items():
        values = [value for p in points if (value := value_of(p)) is not None]
        if not values:
            continue
        if min(values) <= peak * _LINES_UP_TO:
            shown[name] = value_of
        else:
            above.append((name, values[-1]))
    return shown, tuple(above)


def _y_max(points: Sequence[CurvePoint], shown: Mapping[str, ValueOf]) -> float:
    peak = max((p.prompt_tokens or 0 for p in points), default=0)
    values = [float(peak)]
    for value_of in shown.values():
        line = [value for p in points if (value := value_of(p)) is not None]
        values.extend(value for value in line if value <= peak * _LINES_UP_TO)
    return max(values) * _HEADROOM or 1.0


def _runs(
    points: Sequence[CurvePoint], x: Callable[[float], float], y: Callable[[float], float]
) -> list[list[tuple[float, float]]]:
    """Stretches of trusted values within a round; any other one leaves a gap, never a zero."""
    runs: list[list[tuple[float, float]]] = []
    by_round = groupby(points, key=lambda p: (p.is_trusted, p.round_number))
    for (known, _), group in by_round:
        if known:
            runs.append([(x(p.generation), y(p.prompt_tokens or 0)) for p in group])
    return runs


def _area(run: Sequence[tuple[float, float]], bottom: float) -> str:
    ridge = " L".join(f"{a},{b}" for a, b in run)
    return f"M{run[0][0]},{bottom} L{ridge} L{run[-1][0]},{bottom} z"


def _line(
    name: str,
    value_of: ValueOf,
    points: Sequence[CurvePoint],
    x: Callable[[float], float],
    y: Callable[[float], float],
    *,
    y_max: float,
    end: float | None,
) -> Line:
    """A threshold as steps, since a change of model moves it; broken off where it is not known, and
    where it lies above the drawing. end: where it goes on to if it holds of the newest call (px);
    None: no further than that."""
    runs = groupby(points, key=lambda p: (v := value_of(p)) is not None and v <= y_max)
    drawn = [_steps(list(run), value_of, x, y) for is_drawn, run in runs if is_drawn]
    newest = next(value for p in reversed(points) if (value := value_of(p)) is not None)
    is_drawn = newest <= y_max
    if end is not None and value_of(points[-1]) is not None and is_drawn:
        drawn.append(f"H{end}")
    path = " ".join(drawn)
    return Line(name=name, path=path, value=newest, label_y=y(newest) if is_drawn else None)


def _steps(
    run: Sequence[CurvePoint],
    value_of: ValueOf,
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> str:
    path: list[str] = []
    height = 0.0
    for point in run:
        at, before, height = x(point.generation), height, y(value_of(point) or 0)
        if not path:
            path.append(f"M{at - 8},{height} L{at},{height}")
        elif height != before:
            path.append(f"H{at} V{height}")
    path.append(f"H{x(run[-1].generation) + 8}")
    return " ".join(path)


def _spread(lines: tuple[Line, ...], gap: float = 13.0) -> tuple[Line, ...]:
    """Labels of neighbouring lines, moved apart so that each can be read."""
    placed: list[Line] = []
    below = math.inf
    for line in sorted(lines, key=lambda line: -(line.label_y or 0.0)):
        if line.label_y is not None:
            below = min(line.label_y, below - gap)
            placed.append(replace(line, label_y=round(below, 1)))
        else:
            placed.append(line)
    return tuple(placed)


def _signs(
    points: Sequence[CurvePoint],
    x: Callable[[float], float],
    y: Callable[[float], float],
    bottom: float,
    *,
    spacing: float,
) -> tuple[Signs, ...]:
    step = max(1, round(_POINT_SPACING / spacing)) if spacing < _POINT_SPACING else 1
    paths: dict[Level, list[str]] = {}
    for index, point in enumerate(points):
        is_edge = index in (0, len(points) - 1) or point.level is not points[index - 1].level
        if is_edge or index % step == 0 or point.cause:
            sign = outline(
                LEVELS[point.level].glyph, x(point.generation), _height(point, y, bottom)
            )
            paths.setdefault(point.level, []).append(sign)
    return tuple(
        Signs(
            css_class="ring"
            if LEVELS[level].glyph is Glyph.RING
            else f"point {LEVELS[level].css_class}",
            path=" ".join(found),
        )
        for level, found in paths.items()
    )


def _height(point: CurvePoint, y: Callable[[float], float], bottom: float) -> float:
    return bottom if point.prompt_tokens is None else y(point.prompt_tokens)


def _cross(at: float, height: float) -> str:
    return f"M{at - 5:.1f},{height - 5:.1f} l10,10 m0,-10 l-10,10"
