"""What making 10,000 fits again costs, and whether it is exact.

    python -m bench.whatif

Each fit is made live under today's budget, kept as JSON, made again under today's and an edited
budget, and made live under the edited one. Goals: every Trim that is made again is the live one, to
the byte; a replay, which makes both, takes less than twice one live fit's CPU time. Storing, which
only the live fit does, is left out on either side.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Final

from bench.table import Row, print_table
from helmdash.core.budgets.budgets import Tier
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.fitting.inputs import Around, FitInputs, fit_inputs, read_inputs
from helmdash.core.fitting.selection import prepare
from helmdash.core.whatif.fits import RecordedFit, ReplayedFit, receipt_of, replay_fit
from tests.builders import make_budget

_DEMO: Final = Path(__file__).parents[1] / "fixtures" / "demo_catalog.json"
_FITS: Final = 10_000
_WORDS: Final = (
    "fact check my notes and add citations, then make a blog post from this PDF with a picture "
    "narrated presentation about the repository screenshot remember translate summary video issue"
).split()


def rows() -> list[Row]:
    """Measure 10,000 fits; takes a minute or two."""
    prepared = prepare(parse_catalog(json.loads(_DEMO.read_text(encoding="utf-8"))))
    chance = random.Random(15)  # the same fits each time
    live_s = replay_s = 0.0
    wrong = 0
    for _ in range(_FITS):
        intent = " ".join(chance.choices(_WORDS, k=chance.randint(4, 30)))
        before = make_budget(tier=Tier.B, max_catalog_bytes=chance.randint(2_000, 30_000))
        after = make_budget(tier=Tier.C, max_catalog_bytes=chance.randint(1_000, 20_000))
        inputs = FitInputs(around=(Around(1_500, 1_502),))
        began = time.process_time()
        recorded = fit_inputs(prepared, inputs, intent=intent, budget=before)
        live_s += time.process_time() - began
        kept = json.loads(json.dumps(receipt_of(recorded.selection.trim)))
        stored = read_inputs(json.loads(json.dumps(inputs.to_json())))
        assert stored is not None
        fit = RecordedFit(intent=intent, inputs=stored, receipt=kept)
        began = time.process_time()
        found = replay_fit(prepared, fit, before=before, after=after)
        replay_s += time.process_time() - began
        live = fit_inputs(prepared, inputs, intent=intent, budget=after)
        is_exact = (
            isinstance(found, ReplayedFit)
            and found.is_as_recorded
            and json.dumps(receipt_of(found.after)) == json.dumps(receipt_of(live.selection.trim))
        )
        wrong += not is_exact
    ratio = replay_s / live_s
    return [
        Row(
            name=f"what-if: {_FITS:,} fits made again under two budgets",
            figure=f"{replay_s / _FITS * 1e3:.2f} ms each",
            against=f"one live fit {live_s / _FITS * 1e3:.2f} ms",
            ratio=ratio,
            goal="< 2x",
            ok=ratio < 2,
        ),
        Row(
            name="what-if: Trims that are the live ones to the byte",
            figure=f"{_FITS - wrong:,} of {_FITS:,}",
            against="fits made live under the edited budget",
            ratio=None,
            goal="all",
            ok=wrong == 0,
        ),
    ]


if __name__ == "__main__":
    print_table(rows())
