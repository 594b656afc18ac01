"""A line without axes beside a rate: how it went, of which the words beside it say the ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from helmdash.pages.parts import words

WIDTH, HEIGHT = 100, 20
# A line that lies at the very edge is drawn half.
_PAD = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """path: within WIDTH and HEIGHT, broken off where nothing is known. text: what it shows."""

    path: str
    text: str


def sparkline(shares: Sequence[float | None]) -> Sparkline | None:
    """From 0 to the largest of some shares, oldest first; None of fewer than two."""
    known = [share for share in shares if share is not None]
    if len(known) < 2:
        return None
    top = max(known) or 1.0
    step = WIDTH / len(shares)
    path, is_on = "", False
    for at, share in enumerate(shares):
        if share is None:
            is_on = False
            continue
        y = round(HEIGHT - _PAD - (HEIGHT - 2 * _PAD) * share / top, 1)
        # Each is as wide as the time it is of, so one between gaps is seen, too.
        path += f"{'V' if is_on else f'M{at * step:.1f},'}{y}H{(at + 1) * step:.1f}"
        is_on = True
    ends = f"{words.rounded(min(known))} to {words.rounded(max(known))}"
    return Sparkline(path=path, text=f"{ends} over the range")
