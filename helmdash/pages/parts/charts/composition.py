"""What fills a prompt: as columns over the generations, and as a table with what changed.

An image takes room by its size in pixels, which its base64 says nothing of: it counts here as the
bytes of text that take as many tokens (core.text.tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from helmdash.core.calls.composition import MOST_RESULT_TOOLS, Composition
from helmdash.core.calls.tool_schemas import OfferedTools
from helmdash.core.text.tokens import TOKENS_PER_IMAGE, Estimator
from helmdash.pages.parts import words
from helmdash.pages.parts.charts.axes import Frame, Tick, ticks, x_ticks
from helmdash.pages.parts.charts.drawings import short
from helmdash.queries.conversations.curve import CurvePoint

IMAGE_WEIGHT = int(TOKENS_PER_IMAGE * Estimator().chars_per_token)
# Kinds by the names of Composition, from the bottom of a column to its top.
KINDS: Mapping[str, str] = {
    "system": "System",
    "tools": "Tool schemas",
    "user": "User",
    "assistant": "Assistant",
    "tool_results": "Tool results",
    "images": "Images",
    "other": "Files and other",
}
# Columns narrower than some pixels show nothing more, and would be most of the page's bytes.
_COLUMN_WIDTH = 6.0
# Tools that are seen at once.
_FIRST_TOOLS = 10
# What a sentence names: the changes that matter, not all.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One kind through all columns. label_y: where its name stands at the right edge; None: it is
    too thin there to be named."""

    kind: str
    name: str
    path: str
    label_y: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Where somebody points at, and what is told there."""

    at: float
    width: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Frame):
    """Columns laid out for one width (px). gaps: where nothing is known. per_column: generations
    that one column stands for, of which the newest is drawn."""

    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    layers: tuple[Layer, ...]
    gaps: tuple[tuple[float, float], ...]
    columns: tuple[Column, ...]
    per_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRow:
    """One kind of what fills a prompt, or a tool's part of the results (`is_part`).

    size: bytes, an image weighed; share: of all that is known; change: against the call before.
    None: not known.
    """

    kind: str
    name: str
    size: int | None
    share: float | None
    change: int | None
    is_part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRows:
    """Tools that a call sent, of `count`: those that are shown, those behind them, and how many
    more there are, which take `rest` bytes together."""

    first: tuple[FillRow, ...]
    more: tuple[FillRow, ...]
    count: int
    left_out: int
    rest: int

    @property
    def behind(self) -> int:
        """How many are not seen at once."""
        return self.count - len(self.first)


def stack(points: Sequence[CurvePoint], *, width: int, height: int, as_share: bool) -> Stack | None:
    """Columns by generation, in bytes or as shares; None where no point tells what fills it."""
    frame = Frame(width=width, height=height, top=8.0)
    per_column = max(1, -(-len(points) // int(frame.across / _COLUMN_WIDTH)))
    # The newest of each, so that the last column is the newest call.
    shown = list(points[::-1][::per_column])[::-1]
    weights = [weights_of(point.composition, point.images) for point in shown]
    if not any(weights):
        return None
    totals = [sum(each.values()) for each in weights]
    y_max = 1.0 if as_share else max(totals) * 1.05 or 1.0
    y = frame.y_scale(y_max)

    def x(column: float) -> float:
        return round(frame.left + frame.across * column / len(shown), 1)

    columns = [
        _edges(each, total, as_share=as_share, y=y)
        for each, total in zip(weights, totals, strict=True)
    ]
    places = {point.generation: number for number, point in enumerate(shown)}
    return Stack(
        width=width,
        height=height,
        top=frame.top,
        y_ticks=_y_ticks(y, y_max, as_share=as_share),
        x_ticks=x_ticks(shown, lambda g: x(places[int(g)] + 0.5), most=frame.most_ticks),
        layers=tuple(_layers(columns, x)),
        gaps=tuple(
            (x(run[0]), round(x(run[-1] + 1) - x(run[0]), 1))
            for run in _runs(range(len(shown)), lambda number: not weights[number])
        ),
        columns=tuple(
            Column(
                at=x(number),
                width=round(x(number + 1) - x(number), 1),
                text=f"Generation {point.generation:,}: {_told(weights[number])}",
            )
            for number, point in enumerate(shown)
        ),
        per_column=per_column,
    )


def fill_rows(
    now: Composition | None,
    images: int | None,
    before: Composition | None = None,
    images_before: int | None = None,
) -> tuple[FillRow, ...]:
    """What fills a prompt, and how it differs from the call before (None: not known).

    images: how many each holds. Nothing where nothing is known.
    """
    if now is None:
        return ()
    weights, old = weights_of(now, images), weights_of(before, images_before)
    total = sum(weights.values())
    rows: list[FillRow] = []
    for kind, name in KINDS.items():
        size, was = weights.get(kind), old.get(kind)
        rows.append(_row(kind, name, size, was, total))
        if kind == "tool_results":
            rows += _tool_rows(now, before, total)
    return tuple(rows)


def growth(rows: Iterable[FillRow]) -> str:
    """A sentence about the largest changes; "" where none is known."""
    changes = [row for row in rows if row.change is not None]
    kinds = [row for row in changes if not row.is_part]
    if not kinds:
        return ""
    total = sum(row.change or 0 for row in kinds)
    largest = sorted(kinds, key=lambda row: -abs(row.change or 0))[:_MOST_NAMED]
    named = [f"{row.name.lower()} {words.signed(row.change)}{_of_tools(row, changes)}"
             for row in largest if row.change]  # fmt: skip
    if not named:
        return "As large as the call before."
    return f"{words.signed(total)} bytes: {', '.join(named)}."


def tool_rows(
    offered: OfferedTools | None, tools_bytes: int | None, fills: Iterable[FillRow]
) -> ToolRows | None:
    """The tools of a call, the largest first, as shares of all that is known of its prompt; None
    where they are not told. tools_bytes: of all their schemas."""
    if offered is None:
        return None
    total = sum(row.size or 0 for row in fills if not row.is_part)
    rows = [
        _row("tools", name or "without a name", size, None, total, is_part=True)
        for name, size in offered.by_name.items()
    ]
    left_out = offered.count - len(rows)
    rest = max(0, (tools_bytes or 0) - sum(offered.by_name.values())) if left_out else 0
    return ToolRows(
        first=tuple(rows[:_FIRST_TOOLS]),
        more=tuple(rows[_FIRST_TOOLS:]),
        count=offered.count,
        left_out=left_out,
        rest=rest,
    )


def by_kind(told: Composition) -> tuple[tuple[str, int | None], ...]:
    """The bytes of each kind with its name, in the order of KINDS; None: not known."""
    return tuple(zip(KINDS.values(), told.counts, strict=True))


def weights_of(told: Composition | None, images: int | None) -> dict[str, int]:
    """The bytes of each known kind; images by their number, and at least one where they have
    bytes."""
    if told is None:
        return {}
    sizes = dict(zip(KINDS, told.counts, strict=True))
    if images is not None or sizes["images"]:
        sizes["images"] = IMAGE_WEIGHT * (images if images is not None else 1)
    return {kind: size for kind, size in sizes.items() if size is not None}


def _row(
    kind: str, name: str, size: int | None, was: int | None, total: int, *, is_part: bool = False
) -> FillRow:
    return FillRow(
        kind=kind,
        name=name,
        size=size,
        share=size / total if size is not None and total else None,
        change=size - was if size is not None and was is not None else None,
        is_part=is_part,
    )


def _tool_rows(now: Composition, before: Composition | None, total: int) -> Iterator[FillRow]:
    old = before.results_by_tool if before is not None else {}
    # Only the largest are kept: a tool that is missing among fewer had no results.
    is_whole = before is not None and len(old) < MOST_RESULT_TOOLS
    for name, size in now.results_by_tool.items():
        was = old.get(name, 0 if is_whole else None)
        yield _row("tool_results", name, size, was, total, is_part=True)


def _edges(
    weights: Mapping[str, int], total: int, *, as_share: bool, y: Callable[[float], float]
) -> dict[str, tuple[float, float]]:
    """The lower and the upper end of each kind in a column (px)."""
    edges: dict[str, tuple[float, float]] = {}
    below, scale = 0.0, (total or 1) if as_share else 1
    for kind in KINDS:
        above = below + weights.get(kind, 0) / scale
        edges[kind] = (y(below), y(above))
        below = above
    return edges if weights else {}


def _layers(
    columns: Sequence[Mapping[str, tuple[float, float]]], x: Callable[[float], float]
) -> Iterator[Layer]:
    for kind, name in KINDS.items():
        ends = [each.get(kind) for each in columns]
        runs = _runs(range(len(ends)), lambda number: _is_thick(ends[number]))  # noqa: B023
        path = " ".join(
            _outline([(number, *end) for number in run if (end := ends[number])], x) for run in runs
        )
        if path:
            newest = ends[-1]
            is_named = newest is not None and newest[0] - newest[1] >= 11
            middle = round(sum(newest) / 2 + 4, 1) if newest is not None and is_named else None
            yield Layer(kind=kind, name=name, path=path, label_y=middle)


def _is_thick(ends: tuple[float, float] | None) -> bool:
    return ends is not None and ends[0] > ends[1]


def _runs(numbers: Iterable[int], is_in: Callable[[int], bool]) -> list[list[int]]:
    return [list(run) for inside, run in groupby(numbers, key=is_in) if inside]


def _outline(run: Sequence[tuple[int, float, float]], x: Callable[[float], float]) -> str:
    """Steps along the upper ends to the right, and along the lower ones back."""
    there = "".join(f"V{above}H{x(number + 1)}" for number, _, above in run)
    back = "".join(f"V{below}H{x(number)}" for number, below, _ in reversed(run))
    return f"M{x(run[0][0])},{run[0][1]}{there}{back}z"


def _y_ticks(y: Callable[[float], float], y_max: float, *, as_share: bool) -> tuple[Tick, ...]:
    if as_share:
        return tuple(Tick(at=y(part), label=f"{part:.0%}") for part in (0.0, 0.5, 1.0))
    return tuple(Tick(at=y(value), label=short(value)) for value in ticks(y_max))


def _told(weights: Mapping[str, int]) -> str:
    total = sum(weights.values())
    if not weights:
        return "not reported"
    largest = sorted(weights.items(), key=lambda item: -item[1])[:_MOST_NAMED]
    shares = [f"{KINDS[kind].lower()} {words.percent(size / total)}" for kind, size in largest
              if size]  # fmt: skip
    return f"{total:,} bytes; {', '.join(shares)}"


def _of_tools(row: FillRow, changes: Iterable[FillRow]) -> str:
    if row.kind != "tool_results":
        return ""
    parts = [each for each in changes if each.is_part and each.change]
    if not parts:
        return ""
    largest = max(parts, key=lambda each: abs(each.change or 0))
    return f" ({largest.name} {words.signed(largest.change or 0)})"
