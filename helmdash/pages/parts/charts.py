"""The fill curve: numbers into the places and sizes of an SVG. Templates only write them down.

No style is set here: shapes carry classes, so that both schemes and the CSP are served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import BY_SEVERITY, HELD, LEVELS, Glyph, Level, line_of
from helmdash.pages.parts.axes import Frame, Tick, ticks, x_scale, x_ticks
from helmdash.pages.parts.clear_markers import ClearMarker, clear_markers
from helmdash.pages.parts.curve_events import unexplained_falls
from helmdash.pages.parts.drawings import outline, short
from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CurvePoint

# A line this many times above the highest prompt would press the curve flat; it is told in words.
_LINES_UP_TO = 4.0
_HEADROOM = 1.1
# Points closer than this (px) are thinned to those that say something.
_POINT_SPACING = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A threshold: where it runs, and its newest value."""

    name: str
    path: str
    value: int
    label_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One generation: its outline says the level, and its class the colour."""

    outline: str
    css_class: str
    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Frame):
    """A fill curve, laid out for one width (px)."""

    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    above: tuple[tuple[str, int], ...]
    segments: tuple[str, ...]
    areas: tuple[str, ...]
    markers: tuple[Marker, ...]
    trims: tuple[str, ...]
    clear_markers: tuple[ClearMarker, ...]
    failures: tuple[str, ...] = ()
    falls: tuple[Tick, ...] = ()
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
) -> Curve:
    """Lay out prompt tokens by generation, with the lines they are judged by.

    rounds: what opened them is told where they begin; one without a call yet stands at the end.
    windows: lines of one height besides those of the calls, by their names (tokens); None: none.
    """
    frame = Frame(width=width, height=height, top=16.0)
    top, bottom = frame.top, frame.bottom
    levels = {**_LINES, **{name: _flat(value) for name, value in (windows or {}).items()}}
    shown, above = _lines_in_view(points, levels)
    y_max = _y_max(points, shown)
    is_open = _has_open_end(points, rounds)
    x = x_scale(points, frame.left, frame.right, extra=int(is_open))
    y = frame.y_scale(y_max)
    runs = _runs(points, x, y)
    return Curve(
        width=width,
        height=height,
        top=top,
        y_ticks=tuple(Tick(at=y(value), label=short(value)) for value in ticks(y_max)),
        x_ticks=x_ticks(points, x, most=frame.most_ticks),
        lines=_spread(
            tuple(_line(name, of, points, x, y, y_max=y_max) for name, of in shown.items())
        ),
        above=above,
        segments=tuple("M" + " L".join(f"{a},{b}" for a, b in run) for run in runs),
        areas=tuple(_area(run, bottom) for run in runs),
        markers=_markers(points, x, y, bottom, spacing=frame.across / max(len(points), 1)),
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
        clear_markers=clear_markers(
            points, rounds, x=x, y=y, top=top, bottom=bottom, right=frame.right
        ),
    )


ValueOf = Callable[[CurvePoint], int | None]


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
) -> Line:
    """A threshold as steps, since a change of model moves it; broken off where it is not known, and
    where it lies above the drawing."""
    runs = groupby(points, key=lambda p: (v := value_of(p)) is not None and v <= y_max)
    path = " ".join(_steps(list(run), value_of, x, y) for is_drawn, run in runs if is_drawn)
    newest = next(value for p in reversed(points) if (value := value_of(p)) is not None)
    return Line(name=name, path=path, value=newest, label_y=max(y(newest), 8.0))


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
    for line in sorted(lines, key=lambda line: -line.label_y):
        at = line.label_y
        if placed:
            at = min(at, placed[-1].label_y - gap)
        placed.append(replace(line, label_y=round(at, 1)))
    return tuple(placed)


def _markers(
    points: Sequence[CurvePoint],
    x: Callable[[float], float],
    y: Callable[[float], float],
    bottom: float,
    *,
    spacing: float,
) -> tuple[Marker, ...]:
    step = max(1, round(_POINT_SPACING / spacing)) if spacing < _POINT_SPACING else 1
    found = []
    for index, point in enumerate(points):
        is_edge = index in (0, len(points) - 1) or point.level is not points[index - 1].level
        if not (is_edge or index % step == 0 or point.cause):
            continue
        height = _height(point, y, bottom)
        row = LEVELS[point.level]
        found.append(
            Marker(
                outline=outline(row.glyph, x(point.generation), height),
                css_class="ring" if row.glyph is Glyph.RING else f"point {row.css_class}",
                call_id=point.call_id,
                text=_text(point),
            )
        )
    return tuple(found)


def _height(point: CurvePoint, y: Callable[[float], float], bottom: float) -> float:
    return bottom if point.prompt_tokens is None else y(point.prompt_tokens)


def _cross(at: float, height: float) -> str:
    return f"M{at - 5:.1f},{height - 5:.1f} l10,10 m0,-10 l-10,10"


def _text(point: CurvePoint) -> str:
    tokens = (
        "usage not reported"
        if point.prompt_tokens is None
        else f"{point.prompt_tokens:,} prompt tokens"
    )
    if point.reason is HealthReason.SUSPECTED_CUT:
        tokens += " reported, probably cut upstream and not trusted"
    extra = ", trimmed" if point.is_trimmed else ""
    cause = f", {point.cause}" if point.cause else ""
    return f"Generation {point.generation}: {tokens}, {point.level.value}{extra}{cause}"
