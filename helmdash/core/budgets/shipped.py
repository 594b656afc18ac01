"""The shipped budgets: reading the file of rows and aliases that HelmDash comes with.

The file is TOML: one `[fallback]`, any number of `[[budget]]`, `[[alias]]` and
`[[variant]]`. A member that is left out has the default of `BudgetSpec`; a member that nobody knows
is a mistake, not a comment.
"""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

from helmdash.core.budgets.budgets import Alias, BudgetSpec, PromptVariant, Tier
from helmdash.core.budgets.learned_windows import Variant

# Given by the database, never by the file.
_NOT_SHIPPED = {"budget_id", "project"}
_MEMBERS = {f.name: f for f in fields(BudgetSpec) if f.name not in _NOT_SHIPPED}
_REQUIRED = {name for name, f in _MEMBERS.items() if f.default is MISSING}
# TOML has types of its own, so a value of another type is a slip of the pen.
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "Tier": (str,),
    "PromptVariant": (str,),
}


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
        if member in _MEMBERS and not _fits(member, value)
    ]
    if wrong:
        raise ShippedError(f"{row.get('key') or 'the fallback'}: {'; '.join(wrong)}")
    if "prompt_variant" in row:
        row = {**row, "prompt_variant": PromptVariant(row["prompt_variant"])}
    return BudgetSpec(**{**row, "tier": Tier(row["tier"])})


def _fits(member: str, value: object) -> bool:
    type_name = str(_MEMBERS[member].type).removesuffix(" | None")
    if type(value) not in _TYPES[type_name]:
        return False
    match type_name:
        case "Tier":
            return value in set(Tier)
        case "PromptVariant":
            return value in set(PromptVariant)
        case _:
            return True


def _alias(row: dict[str, Any]) -> Alias:
    prefix, target = row.get("prefix"), row.get("target")
    if not (isinstance(prefix, str) and isinstance(target, str) and prefix.strip()):
        raise ShippedError(f"an alias needs a prefix and a target, not {row}")
    return Alias(prefix=prefix, target=target)
