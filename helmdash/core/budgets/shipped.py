"""The shipped budgets: reading the file of rows and aliases that HelmDash comes with.

The file is TOML: one `[fallback]`, any number of `[[budget]]`, `[[alias]]` and
`[[variant]]`. A member that is left out has the default of `BudgetSpec`; a member that nobody knows
is a mistake, not a comment.
"""

from __future__ import annotations

import tomllib
from enum import Enum
from functools import lru_cache
from typing import Any

from helmdash.core.budgets.budgets import STORED_FIELDS, Alias, BudgetSpec
from helmdash.core.budgets.figures import FigureField
from helmdash.core.budgets.learned_windows import Variant

_MEMBERS = {each.name: each for each in STORED_FIELDS}
_REQUIRED = {each.name for each in STORED_FIELDS if each.is_required}


class ShippedError(ValueError):
    """The file of shipped budgets cannot be used; the message names the row and the member."""


@lru_cache(maxsize=2)
def load_shipped(text: str) -> tuple[tuple[BudgetSpec, ...], tuple[Alias, ...]]:
    """Read the rows (the fallback first, its key empty) and the aliases from TOML text.

    Raises ShippedError when the text is not TOML, or a row lacks a member, has one too many, or
    one of the wrong type.
    """
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ShippedError(f"not TOML: {error}") from error
    unknown = sorted(file.keys() - {"fallback", "budget", "alias", "variant"})
    if unknown or "fallback" not in file:
        raise ShippedError(f"needs [fallback]; unknown tables: {', '.join(unknown) or 'none'}")
    rows = [{"key": "", **file["fallback"]}, *file.get("budget", [])]
    return tuple(map(_budget, rows)), tuple(map(_alias, file.get("alias", [])))


def load_variants(text: str) -> tuple[Variant, ...]:
    """Read the longer windows that clients may ask for by a suffix or a header.

    They are no rows: whoever edits a model's budget has the last word on its window anyway. Raises
    ShippedError.
    """
    try:
        rows = tomllib.loads(text).get("variant", [])
        found = [Variant(**row) for row in rows]
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ShippedError(f"variants: {error}") from error
    for each in found:
        if not each.prefix or each.prefix != each.prefix.lower() or each.context_length < 1:
            raise ShippedError(f"a variant needs a prefix in small letters, and tokens: {each}")
    return tuple(found)


def _budget(row: dict[str, Any]) -> BudgetSpec:
    wrong = [f"{member} is missing" for member in sorted(_REQUIRED - row.keys())]
    wrong += [f"{member} is no member of a budget" for member in sorted(row.keys() - _MEMBERS)]
    wrong += [
        f"{member} cannot be {value!r}"
        for member, value in row.items()
        if member in _MEMBERS and not _fits(_MEMBERS[member], value)
    ]
    if wrong:
        raise ShippedError(f"{row.get('key') or 'the fallback'}: {'; '.join(wrong)}")
    return BudgetSpec(**{name: _MEMBERS[name].read(value) for name, value in row.items()})


def _fits(member: FigureField, value: object) -> bool:
    # TOML has types of its own, so a value of another type is a slip of the pen.
    if issubclass(member.kind, Enum):
        return value in set(member.kind)
    return type(value) is member.kind or (member.kind is float and type(value) is int)


def _alias(row: dict[str, Any]) -> Alias:
    prefix, target = row.get("prefix"), row.get("target")
    if not (isinstance(prefix, str) and isinstance(target, str) and prefix.strip()):
        raise ShippedError(f"an alias needs a prefix and a target, not {row}")
    return Alias(prefix=prefix, target=target)
