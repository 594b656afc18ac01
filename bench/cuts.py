"""Silent cuts: how many are found, and how many whole calls are suspected, on two corpora.

Not a matter of time: the figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.table import Row
from tests.support.cut_scores import Score, score
from tests.support.cut_talks import Talk, talks
from tests.support.real_talks import real_talks, tokenizers

# Seeds that neither the constants nor the tests have seen.
_SEEDS = range(100, 106)
_TALKS = 240


def rows() -> list[Row]:
    """One row for the drawn corpus, and one for each tokenizer of the real messages."""
    found = [_row("drawn sizes", [talks(seed, _TALKS) for seed in _SEEDS])]
    for name in tokenizers():
        found.append(_row(f"messages, {name}", [real_talks(name, s, _TALKS) for s in _SEEDS]))
    return found


def _row(name: str, corpora: Iterable[Iterable[Talk]]) -> Row:
    total = Score()
    for corpus in corpora:
        total += score(corpus)
    found, false = total.found / total.cut, total.false / total.whole
    return Row(
        name=f"silent cuts, {name}",
        figure=f"{found:.1%} found, {false:.2%} false",
        against=f"{total.cut} cut, {total.whole} whole",
        ratio=None,
        goal=">= 95 %, <= 1 %",
        ok=found >= 0.95 and false <= 0.01,
    )
