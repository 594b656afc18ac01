"""How well entries are ranked and fitted, on public tool-selection data.

    make bench ARGS="ranking --data DIR"        or with RANKBENCH_DATA=DIR in the environment

DIR holds the evaluator (`eval.py`) and its `dev` part; neither is part of this project. Goals are
what was reached when the ranking was chosen; "aim" is what the next version should reach. Takes
some two minutes, and counts CPU time, so that a busy machine changes little.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from bench.rank_adapter import BenchEntry, BenchPlan, fitted, rank
from bench.table import Row

_RANKER = "bench.rank_adapter:rank"
_TOP = 12  # entries, whatever their size: what fitting is compared with (helmdeck ADR 050, tier C)
_MARGIN = 0.10  # how much further fitting must reach than that
_HEADLINE = "headline"

Result = Mapping[str, Any]


def rows() -> list[Row]:
    """Measure the DEV part; one row that says what is missing where there is no data."""
    folder = os.environ.get("RANKBENCH_DATA", "")
    script = Path(folder) / "eval.py"
    if not folder or not script.is_file():
        where = f"no eval.py in {folder}" if folder else "no data"
        return [_missing(f"{where}: give --data DIR or set RANKBENCH_DATA")]
    evaluator = _load(script)
    # First, in a process that holds nothing else yet.
    timing = _run(evaluator, folder, suites="^$", timing="75,10000")["timing"]
    cold = _run(evaluator, folder, check=True)
    half = _run(evaluator, folder, history="half")
    ten = _run(evaluator, folder, history="half", hist_size=10)
    noisy = _run(evaluator, folder, history="half", hist_noise=0.4)
    return [
        *_cold_rows(cold),
        *_history_rows(cold, half, ten, noisy),
        *_fit_rows(evaluator, folder, "none"),
        *_fit_rows(evaluator, folder, "half"),
        *_time_rows(timing),
    ]


def _missing(reason: str) -> Row:
    return Row(name="ranking", figure="not measured", against="", ratio=None, goal=reason, ok=None)


def _load(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("ranking_evaluator", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(evaluator: ModuleType, folder: str, **options: object) -> Result:
    given = ", ".join(f"{name} {value}" for name, value in options.items())
    print(f"  ranking: {given} ...", file=sys.stderr, flush=True)
    asked: dict[str, object] = {
        "ranker": _RANKER,
        "data": folder,
        "split": "dev",
        "history": "none",
        "hist_size": None,
        "hist_noise": 0.0,
        "suites": None,
        "max_queries": None,
        "fresh": False,
        "check": False,
        "timing": None,
    }
    found: Result = evaluator.run(SimpleNamespace(**{**asked, **options}))
    return found


def _cold_rows(cold: Result) -> list[Row]:
    check = cold["check"]
    return [
        _at_least("r@15, no history", _of(cold, "r15"), must=0.775, aim=0.80),
        _at_least("MRR, no history", _of(cold, "mrr"), must=0.65, aim=0.67),
        _at_least("r@15 paste, no history", _of(cold, "r15", "paste"), must=0.66, aim=0.70),
        _at_least("r@15 native, no history", _of(cold, "r15", "native"), must=0.77),
        _at_least("MRR native, no history", _of(cold, "mrr", "native"), must=0.71),
        Row(
            name="another order on a second call or a shuffled catalog",
            figure=str(check["unstable"]),
            against=f"{check['calls']} calls",
            ratio=None,
            goal="0",
            ok=check["unstable"] == 0,
        ),
    ]


def _history_rows(cold: Result, half: Result, ten: Result, noisy: Result) -> list[Row]:
    before = _of(cold, "r15")
    return [
        _at_least("r@15, half as history", _of(half, "r15"), must=0.87, aim=0.885),
        _at_least("all@15, half as history", _of(half, "all15"), must=0.78, aim=0.81),
        _at_least("MRR, half as history", _of(half, "mrr"), must=0.72, aim=0.735),
        _at_least("r@15 native, half as history", _of(half, "r15", "native"), must=0.89),
        _at_least("MRR native, half as history", _of(half, "mrr", "native"), must=0.73),
        _at_least("r@15 gained by 10 plans", _of(ten, "r15") - before, must=0.04, aim=0.05),
        _at_least("r@15 gained, 40 % wrong picks", _of(noisy, "r15") - before, must=0.05, aim=0.07),
        _at_least("r@15, worst family by history", _worst(cold, half, "r15"), must=-0.01, aim=0.0),
        _at_least("MRR, worst family by history", _worst(cold, half, "mrr"), must=-0.03, aim=0.0),
    ]


def _of(result: Result, metric: str, group: str = _HEADLINE) -> float:
    means = result[_HEADLINE] if group == _HEADLINE else result["groups"][group]
    return float(means[metric][0])


def _worst(before: Result, after: Result, metric: str) -> float:
    return float(
        min(
            means[metric][0] - before["families"][family][metric][0]
            for family, means in after["families"].items()
        )
    )


def _fit_rows(evaluator: ModuleType, folder: str, history: str) -> list[Row]:
    """All needed tools in the fitted catalog, and within a fixed number of the best-ranked."""
    print(f"  ranking: all@fit, history {history} ...", file=sys.stderr, flush=True)
    shown = _share_with_all(evaluator, folder, history, fitted)
    top = _share_with_all(evaluator, folder, history, lambda *given: rank(*given)[:_TOP])
    label = "no history" if history == "none" else "half as history"
    goal = top + _MARGIN
    return [
        Row(
            name=f"all@fit, tier C 10,000 bytes, {label}",
            figure=f"{shown:.3f}",
            against=f"top {_TOP}: {top:.3f}",
            ratio=shown / top if top else None,
            goal=f">= {goal:.3f}",
            ok=shown >= goal,
        )
    ]


def _share_with_all(
    evaluator: ModuleType,
    folder: str,
    history: str,
    choose: Callable[[Sequence[BenchEntry], str, Sequence[BenchPlan]], Sequence[str]],
) -> float:
    """The headline (mean of the groups) of the share of queries all of whose tools are chosen."""
    part = Path(folder) / "dev"
    asked = SimpleNamespace(history=history, hist_size=None, hist_noise=0.0)
    per = {}
    for suite in sorted(path.stem for path in (part / "queries").glob("*.jsonl")):
        entries, queries = evaluator.load(str(part), suite)
        past = evaluator.histories(queries, entries, asked)
        scored = []
        for query in queries:
            names = set(choose(entries, query["intent"], past[query["fold"]]))
            has_all = all(any(name in names for name in slot) for slot in query["gold"])
            scored.append(dict.fromkeys(evaluator.METRICS, float(has_all)))
        per[suite] = {"group": evaluator.group(suite, len(entries)), "rows": scored}
    _, _, headline = evaluator.aggregate(per)
    return float(headline["all15"][0])


def _time_rows(found: Mapping[int, Mapping[str, float]]) -> list[Row]:
    small, large = found[75], found[10_000]
    return [
        _at_most("p95 a call, 75 entries, 300 plans", small["hist300_p95"], must=2, aim=1),
        _at_most("p95 a call, 10,000 entries, 300 plans", large["hist300_p95"], must=60, aim=30),
        _at_most("first call (index build), 75 entries", small["cold_cpu_ms"], must=18, aim=8),
        _at_most(
            "first call (index build), 10,000 entries", large["cold_cpu_ms"], must=2_000, aim=1_000
        ),
    ]


def _at_least(name: str, value: float, *, must: float, aim: float | None = None) -> Row:
    return _row(name, f"{value:.3f}", ">=", must, aim, is_met=_rounded(value) >= must)


def _at_most(name: str, value_ms: float, *, must: float, aim: float) -> Row:
    return _row(name, f"{value_ms:.1f} ms", "<=", must, aim, is_met=value_ms <= must)


def _row(name: str, figure: str, sign: str, must: float, aim: float | None, *, is_met: bool) -> Row:
    against = "" if aim is None else f"aim {sign} {aim:g}"
    return Row(
        name=name, figure=figure, against=against, ratio=None, goal=f"{sign} {must:g}", ok=is_met
    )


def _rounded(value: float) -> float:
    """To what the table shows, down: 0.0399 is not 0.04."""
    return math.floor(value * 10_000 + 0.5) / 10_000
