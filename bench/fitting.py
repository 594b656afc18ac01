"""How long fitting and ranking take: medians of repeated, interleaved runs in CPU time.

    python -m bench.fitting

Goals: `select` on the demo catalog for tier C costs at most 12 times one json.dumps of it; an
index of 75 and of 10,000 entries is built in 18 ms and 2 s; 10,000 entries are ranked in 100 ms.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.table import Row, print_table
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.catalog.catalog import Catalog, parse_catalog
from helmdash.core.fitting.selection import PreparedCatalog, prepare, select
from helmdash.core.ranking.ranking import Index, order_entries, prepare_index
from tests.builders import make_budget

_DEMO = Path(__file__).parents[1] / "fixtures" / "demo_catalog.json"
_INTENTS = (
    "fact check my notes and add citations",
    "remember this fact, then blog, then image",
    "make a blog post from this PDF",
    "narrated presentation about this repo",
    "take a screenshot of github.com",
    (
        "Read the open issues of our repository, fix the two easiest, open a pull request for "
        "each, and then write a short post for our users about what is better now, with a picture."
    ),
)
_RUNS = 25


def rows() -> list[Row]:
    """Measure everything; takes about half a minute."""
    return [_select_row(), *_ranking_rows(75, 18.0, 2.0), *_ranking_rows(10_000, 2_000.0, 100.0)]


def _select_row() -> Row:
    raw = json.loads(_DEMO.read_text(encoding="utf-8"))
    prepared, budget = prepare(parse_catalog(raw)), _tier_c()
    dump_ms, select_ms = _medians(
        lambda: json.dumps(raw), lambda: _select_all(prepared, budget), runs=_RUNS
    )
    select_ms /= len(_INTENTS)
    ratio = select_ms / dump_ms
    return Row(
        name="select, demo catalog, tier C",
        figure=f"{select_ms:.2f} ms",
        against=f"one json.dumps {dump_ms:.2f} ms",
        ratio=ratio,
        goal="<= 12x",
        ok=ratio <= 12,
    )


def _ranking_rows(entries: int, build_goal_ms: float, rank_goal_ms: float) -> list[Row]:
    catalog = _synthetic(entries)
    index = prepare_index(catalog)
    runs = _RUNS if entries < 1_000 else 3
    demo = json.loads(_DEMO.read_text(encoding="utf-8"))
    dump_ms, build_ms, rank_ms = _medians(
        lambda: json.dumps(demo),
        lambda: prepare_index(catalog),
        lambda: _rank_all(index),
        runs=runs,
    )
    rank_ms /= len(_INTENTS)
    return [
        _timed_row(f"index build, {entries:,} entries", build_ms, dump_ms, build_goal_ms),
        _timed_row(f"ranking, {entries:,} entries", rank_ms, dump_ms, rank_goal_ms),
    ]


def _timed_row(name: str, figure_ms: float, dump_ms: float, goal_ms: float) -> Row:
    """A row with a goal in milliseconds; the dump beside it tells how busy the machine was."""
    return Row(
        name=name,
        figure=f"{figure_ms:.2f} ms",
        against=f"one json.dumps {dump_ms:.2f} ms",
        ratio=figure_ms / dump_ms,
        goal=f"<= {goal_ms:g} ms",
        ok=figure_ms <= goal_ms,
    )


def _select_all(prepared: PreparedCatalog, budget: EffectiveBudget) -> None:
    for intent in _INTENTS:
        select(prepared, intent=intent, budget=budget)


def _rank_all(index: Index) -> None:
    for intent in _INTENTS:
        order_entries(index, intent)


def _medians(*subjects: Callable[[], object], runs: int) -> list[float]:
    """Milliseconds of CPU each, the subjects taking turns so that a busy machine hits all."""
    took: list[list[float]] = [[] for _ in subjects]
    for _ in range(runs):
        for subject, times in zip(subjects, took, strict=True):
            started = time.process_time_ns()
            subject()
            times.append((time.process_time_ns() - started) / 1e6)
    return [statistics.median(times) for times in took]


def _tier_c() -> EffectiveBudget:
    return make_budget(allows_llm_filter=False)


def _synthetic(entries: int) -> Catalog:
    """A catalog of made-up tools whose texts are put together from the demo catalog's words."""
    demo = parse_catalog(json.loads(_DEMO.read_text(encoding="utf-8")))
    words = " ".join(entry.description for entry in demo.entries).split()
    chance = random.Random(7)
    packs = [_synthetic_pack(number, words, chance) for number in range(entries)]
    return parse_catalog({"packs": packs})


def _synthetic_pack(number: int, words: Sequence[str], chance: random.Random) -> dict[str, object]:
    # Every twentieth word is the entry's own, so that the vocabulary grows with the catalog.
    text = [
        f"{chance.choice(words).strip('.,')}{number}" if chance.random() < 0.05 else word
        for word in chance.choices(words, k=25)
    ]
    return {
        "name": f"{chance.choice(words).strip('.,').lower()}.verb{number}",
        "description": " ".join(text),
        "metadata": {"intent_keywords": [" ".join(chance.choices(words, k=2)) for _ in range(3)]},
    }


if __name__ == "__main__":
    print_table(rows())
