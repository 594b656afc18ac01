"""Words of a text, for comparing an intent with a catalog."""

from __future__ import annotations

import re


def words(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.casefold())) + " "


def contains_run(said: str, run: str) -> bool:
    return run in said
