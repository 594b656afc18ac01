"""Which row governs a model id: exact key, longest prefix, alias, fallback; and why no other does.

Ids compare trimmed and without regard to letter case. A name without a tag is exactly the one with
Ollama's tag `:latest`, too. Aliases are ours (helmdeck ADR 050 has the rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from helmdash.core.budgets.budgets import Alias, BudgetSpec, Candidate, MatchRule
from helmdash.core.budgets.model_names import FREE_SUFFIX, LATEST_TAG, split_window


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMatch:
    """The row that governs an id, before the `:free` rule; the alias that led to it, if any."""

    row: BudgetSpec
    rule: MatchRule
    alias: Alias | None = None


class RowMatcher:
    """All rows and aliases at one moment. Disabled rows never govern; a project's row beats a
    global one with the same key, and of two rows alike the first."""

    def __init__(self, rows: tuple[BudgetSpec, ...], aliases: Iterable[Alias]) -> None:
        """`governing`: the rows that govern, by normalised key; `aliases`: those that can apply,
        the longest prefix first."""
        self.all = rows
        self.governing: Mapping[str, BudgetSpec] = _governing_rows(rows)
        # A blank prefix would swallow every id, so it is no alias.
        usable = (alias for alias in aliases if normalised(alias.prefix))
        self.aliases = tuple(sorted(usable, key=lambda alias: -len(normalised(alias.prefix))))

    @property
    def fallback(self) -> BudgetSpec:
        """The enabled row with an empty key. Raises KeyError where there is none."""
        return self.governing[""]

    def match(self, wanted: str) -> RowMatch:
        """The row of an id, as `wanted_id` gives it."""
        row = self._own_row(wanted)
        if row is not None:
            rule = MatchRule.EXACT if _is_exact(row, wanted) else MatchRule.PREFIX
            return RowMatch(row=row, rule=rule)
        for alias in self.aliases:
            respelled = respell(wanted, alias)
            row = self._own_row(respelled) if respelled else None
            if row is not None:
                return RowMatch(row=row, rule=MatchRule.ALIAS, alias=alias)
        return RowMatch(row=self.fallback, rule=MatchRule.FALLBACK)

    def _own_row(self, wanted: str) -> BudgetSpec | None:
        """Find the row with the longest key that starts the id (the id itself is the longest)."""
        if not wanted:
            return None
        row = self.governing.get(wanted) or self.governing.get(wanted + LATEST_TAG)
        if row is not None:
            return row
        for end in range(len(wanted) - 1, 0, -1):
            row = self.governing.get(wanted[:end])
            if row is not None:
                return row
        return None

    def explain(self, wanted: str, match: RowMatch, final: MatchRule) -> Iterator[Candidate]:
        """Every row and alias that could have applied, and which did."""
        yield from self._explain_rows(wanted, match, final)
        yield from self._explain_aliases(wanted, match, final)
        if final is MatchRule.FREE_SUFFIX:
            yield Candidate(
                key=match.row.key,
                rule=final,
                won=True,
                why="The id ends in :free and the row's key does not, so the row's figures are "
                "lowered to those of a free route.",
            )
        won = final is MatchRule.FALLBACK
        why = "No row and no alias matches." if won else "A row matches, so it is not needed."
        yield Candidate(key="", rule=MatchRule.FALLBACK, won=won, why=why)

    def _explain_rows(self, wanted: str, match: RowMatch, final: MatchRule) -> Iterator[Candidate]:
        matching = [
            row
            for row in self.all
            if row.key.strip() and (_starts(wanted, row.key) or _is_exact(row, wanted))
        ]
        for row in sorted(matching, key=lambda row: -len(normalised(row.key))):
            rule = MatchRule.EXACT if _is_exact(row, wanted) else MatchRule.PREFIX
            won = row is match.row and final is rule
            why = self._why_row(row, match, wanted, won=won)
            yield Candidate(key=row.key, rule=rule, won=won, why=why)

    def _why_row(self, row: BudgetSpec, match: RowMatch, wanted: str, *, won: bool) -> str:
        if won and match.rule is MatchRule.EXACT and not _starts(wanted, row.key):
            return f"The id is this key: a name without a tag is {LATEST_TAG[1:]} at Ollama."
        if won:
            exact = match.rule is MatchRule.EXACT
            return "The id is this key." if exact else "The longest key that starts the id."
        if not row.enabled:
            return "The row is disabled."
        if row is match.row:
            return "The best matching row; the :free rule then lowers its figures."
        if self.governing[normalised(row.key)] is not row:
            return "Another row has the same key and goes before it (a project's before a global)."
        if not _starts(wanted, row.key):
            return f"The id itself is a key: {match.row.key}."
        return f"A longer key matches: {match.row.key}."

    def _explain_aliases(
        self, wanted: str, match: RowMatch, final: MatchRule
    ) -> Iterator[Candidate]:
        for alias in self.aliases:
            respelled = respell(wanted, alias)
            if respelled is None:
                continue
            row = self._own_row(respelled)
            led_here = alias is match.alias
            yield Candidate(
                key=row.key if row else alias.target,
                rule=MatchRule.ALIAS,
                won=led_here and final is MatchRule.ALIAS,
                why=f"{alias.prefix} is another spelling of {alias.target}; "
                + _why_alias(respelled, row, match, led_here=led_here),
            )


def _why_alias(respelled: str, row: BudgetSpec | None, match: RowMatch, *, led_here: bool) -> str:
    if led_here:
        return f"looked up as {respelled}."
    if match.rule in (MatchRule.EXACT, MatchRule.PREFIX):
        return "not used, since a row of its own matches."
    if row is None:
        return f"no row matches {respelled}."
    return "a longer alias matches."


def _governing_rows(budgets: Iterable[BudgetSpec]) -> dict[str, BudgetSpec]:
    """Index the enabled rows by normalised key; a project's row first, else the first given."""
    rows: dict[str, BudgetSpec] = {}
    for row in budgets:
        key = normalised(row.key)
        standing = rows.get(key)
        outranks = standing is None or (row.project is not None and standing.project is None)
        if row.enabled and outranks:
            rows[key] = row
    return rows


def respell(wanted: str, alias: Alias) -> str | None:
    """Rewrite an id by an alias; None where the alias does not apply."""
    prefix = normalised(alias.prefix)
    if not wanted.startswith(prefix):
        return None
    return normalised(alias.target) + wanted[len(prefix) :]


def is_freed(wanted: str, match: RowMatch) -> bool:
    """Whether the row is lowered to what a `:free` route may be trusted with: the id ends so, and
    the row's key does not say it."""
    return (
        match.rule is not MatchRule.FALLBACK
        and wanted.endswith(FREE_SUFFIX)
        and FREE_SUFFIX not in normalised(match.row.key)
    )


def _is_exact(row: BudgetSpec, wanted: str) -> bool:
    return normalised(row.key) in (wanted, wanted + LATEST_TAG)


def _starts(wanted: str, key: str) -> bool:
    return wanted.startswith(normalised(key))


def wanted_id(model_id: str) -> str:
    """An id as rows are asked for it: without the suffix that names a window."""
    return split_window(normalised(model_id)).model


def normalised(model_id: str) -> str:
    """An id or a key as both are compared."""
    return model_id.strip().lower()
