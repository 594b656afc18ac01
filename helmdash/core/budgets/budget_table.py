"""Budget tables: the budget that holds for a model, of the row that governs it (row_matching) and
of what others tell of it.

The `:free` rule, on whichever row won, is ours (helmdeck ADR 050 has the rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from helmdash.core.budgets.budgets import (
    STORED_FIELDS,
    Alias,
    BudgetFigures,
    BudgetSpec,
    EffectiveBudget,
    MatchRule,
    PromptVariant,
    Resolution,
    Tier,
    has_full_trust,
)
from helmdash.core.budgets.learned_windows import (
    OUTSIDE,
    TOLD,
    Limit,
    LimitSource,
    RowLimit,
    Variant,
    WindowBy,
    WindowReport,
    WindowSource,
    choose_limit,
    variant_of,
    window_after,
    with_told_window,
)
from helmdash.core.budgets.lines import lines_of, lines_that_fit
from helmdash.core.budgets.model_names import (
    bare_name,
    model_key,
    spellings_of,
    split_window,
)
from helmdash.core.budgets.published import (
    NO_LIST,
    PublishedFigures,
    PublishedList,
    prices_beside,
)
from helmdash.core.budgets.row_matching import (
    RowMatch,
    RowMatcher,
    is_freed,
    normalised,
    respell,
    wanted_id,
)
from helmdash.core.budgets.trials import Arm, InTrial, TrialRule

# Generations between two hard guidances where a row sets none ("Context Health Monitor").
DEFAULT_CAUTION_CADENCE = 10
# The `:free` rule's catalog cap: free routes were seen to answer up to this (helmdeck ADR 050).
FREE_MAX_CATALOG_BYTES = 10_000
# Model ids come from callers: keep the memory of answers bounded.
_MEMORY_ENTRIES = 4096


class MissingFallback(ValueError):
    """The table has no enabled row with an empty key, so an unknown model would have no budget."""


class _Question(NamedTuple):
    """What a budget is looked up by."""

    asked: str  # trimmed
    key: str | None = None
    client_window: int | None = None
    server_window: int | None = None


# The same, as it was asked.
_Asked = tuple[str, str | None, int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParts:
    """What a table is made of, as `BudgetTable` takes it."""

    rows: tuple[BudgetSpec, ...]
    aliases: tuple[Alias, ...]
    windows: tuple[WindowReport, ...]
    variants: tuple[Variant, ...]
    published: PublishedList = NO_LIST

    def table(self) -> BudgetTable:
        """The table. Raises MissingFallback."""
        return BudgetTable(
            self.rows,
            self.aliases,
            windows=self.windows,
            variants=self.variants,
            published=self.published,
        )


class BudgetTable:
    """All rows and aliases at one moment. Immutable but for the memory of its own answers.

    Disabled rows never govern; a project's row beats a global one with the same key, and of two
    rows alike the first. Raises MissingFallback when no enabled row has an empty key.
    """

    def __init__(
        self,
        budgets: Iterable[BudgetSpec],
        aliases: Iterable[Alias] = (),
        *,
        windows: Iterable[WindowReport] = (),
        variants: Iterable[Variant] = (),
        published: PublishedList = NO_LIST,
    ) -> None:
        """`windows`: what was learned from outside. `variants`: what clients may ask for.
        `published`: where the fallback row asks for it, what holds where no row knows better."""
        self._matcher = RowMatcher(tuple(budgets), aliases)
        if "" not in self._matcher.governing:
            raise MissingFallback("the budget table needs an enabled fallback row (empty key)")
        self._spellings = spellings_of(
            [(alias.prefix, alias.target) for alias in self._matcher.aliases]
        )
        self._windows: dict[str, dict[WindowSource, WindowReport]] = {}
        for window in windows:
            self._windows.setdefault(window.key, {})[window.source] = window
        self._variants = tuple(variants)
        self._published = published
        self._trials: tuple[TrialRule, ...] = ()
        # Of a conversation: what each trial makes of it, by model; and the tables for these.
        self._ruled_in: Mapping[str, tuple[TrialRule, Arm]] = {}
        self._for_arms: dict[tuple[Arm | None, ...], BudgetTable] = {}
        self._memory: dict[_Asked, EffectiveBudget] = {}
        self._keys: dict[tuple[str, str | None], str] = {}
        self._names: dict[tuple[str, str], str | None] = {}

    def lookup(
        self,
        model: str,
        *,
        key: str | None = None,
        client_window: int | None = None,
        server_window: int | None = None,
    ) -> EffectiveBudget:
        """Give the budget of a model id; an unknown or empty id has the fallback's.

        key: its name in figures, where the provider is known that the id does not say; None: that
        of `key_of`. client_window: tokens the client counts on; server_window: tokens the server
        reports now; None: nobody says.
        """
        asked = (model, key, client_window, server_window)
        known = self._memory.get(asked)
        if known is None:
            question = _Question(model.strip(), key, client_window, server_window)
            known = self._effective(question, self._matcher.match(wanted_id(question.asked)))
            if len(self._memory) >= _MEMORY_ENTRIES:
                self._memory.clear()
            self._memory[asked] = known
        return known

    @property
    def parts(self) -> TableParts:
        """All that the table is made of."""
        return TableParts(
            rows=self._matcher.all,
            aliases=self._matcher.aliases,
            windows=tuple(report for found in self._windows.values() for report in found.values()),
            variants=self._variants,
            published=self._published,
        )

    def with_trials(self, trials: Iterable[TrialRule]) -> BudgetTable:
        """The same table while trials run, a few at most; one of each model."""
        found = self._copy()
        found._trials = tuple(trials)
        return found

    def for_conversation(
        self, conversation: str | None, *, at: datetime | None = None
    ) -> BudgetTable:
        """The table as it rules a conversation: the same, but where a trial runs.

        conversation None or "": a call that names none is in no trial. at: when a call began; what
        is older than a trial is not in it. None: now.
        """
        if not self._trials or not conversation:
            return self
        arms = tuple(
            each.arm_of(conversation) if at is None or at >= each.since else None
            for each in self._trials
        )
        found = self._for_arms.get(arms)
        if found is None:
            found = self._for_arms[arms] = self._copy()
            found._trials = ()
            found._ruled_in = {
                trial.model_key: (trial, arm)
                for trial, arm in zip(self._trials, arms, strict=True)
                if arm is not None
            }
        return found

    def with_row(self, row: BudgetSpec) -> BudgetTable:
        """The same table with a row as an operator edits it: in the place of its former self, or,
        a project's without a number, the copy that `row_to_edit` gives. Whose word its window is
        then, `window_after` says."""
        return self.with_rows((row,))

    def with_rows(self, rows: Iterable[BudgetSpec]) -> BudgetTable:
        """As `with_row`, with several at once."""
        added, parts = [self._as_edited(row) for row in rows], self.parts
        edited = {each.budget_id for each in added if each.budget_id is not None}
        kept = (each for each in parts.rows if each.budget_id not in edited)
        return replace(parts, rows=(*kept, *added)).table()

    def _as_edited(self, row: BudgetSpec) -> BudgetSpec:
        if row.budget_id is not None:
            was = next(
                (each for each in self._matcher.all if each.budget_id == row.budget_id), None
            )
        elif row.project is not None:
            was = self.row_to_edit(row.key, project=row.project)
        else:
            was = None
        if was is None:
            return row
        return replace(row, window_by=window_after(was.window_by, was.stored(), row.stored()))

    def with_windows(self, windows: Iterable[WindowReport]) -> BudgetTable:
        """The same table once this is learned, as the newest word of each source: a server that
        tells another window than before was set up anew, so an older refusal is history."""
        found = self._copy()
        found._windows = dict(self._windows)
        for window in windows:
            known = dict(found._windows.get(window.key, {}))
            if window.source is WindowSource.SERVER and WindowSource.SERVER in known:
                known.pop(WindowSource.REFUSAL, None)
            known[window.source] = window
            found._windows[window.key] = known
        return found

    def window_by(self, budget_id: int) -> WindowBy | None:
        """Whose word the window of a row is; None: there is no such row (any more)."""
        found = (row.window_by for row in self._matcher.all if row.budget_id == budget_id)
        return next(found, None)

    def row_to_edit(self, key: str, *, project: str) -> BudgetSpec:
        """The row with this key as an edit in one project alone has it: the project's own, or a new
        one (budget_id None) with the figures of every project's row of that key, or else of the
        row that governs an id like the key, lowered where that is a `:free` one: a row of its own
        is lowered no more."""
        wanted = normalised(key)
        alike = [row for row in self._matcher.all if normalised(row.key) == wanted]
        for row in alike:
            if row.project == project:
                return row
        if alike:
            return replace(alike[0], budget_id=None, project=project)
        ruled = self._ruled(wanted, self._matcher.match(wanted))
        return replace(
            ruled, key=key.strip(), uses_published_list=False, budget_id=None, project=project
        )

    def _ruled(self, wanted: str, match: RowMatch) -> BudgetSpec:
        """The matching row as it rules the id."""
        if match.rule is MatchRule.FALLBACK:
            return replace(match.row, window_by=WindowBy.FALLBACK)
        return _freed(match.row, self._matcher.fallback) if is_freed(wanted, match) else match.row

    def key_to_edit(self, model: str) -> str:
        """The key of the row that an edit for one model is made to: that of the row which governs
        it; the model's own where that row holds for many others."""
        asked = split_window(model.strip()).model
        match = self._matcher.match(wanted_id(asked))
        is_wide = match.rule is MatchRule.FALLBACK or is_freed(wanted_id(asked), match)
        return asked if is_wide else match.row.key

    def row_of(self, model: str) -> BudgetSpec:
        """The row that governs a model id, as it is stored."""
        return self._matcher.match(wanted_id(model.strip())).row

    def name_of(self, model: str, *, served: str) -> str | None:
        """The id that rows know a model by, where that is not the one it was asked for by; None: it
        is, or no row knows the model.

        served: `provider/model`, as its upstream calls it.
        """
        asked = (model, served)
        if asked not in self._names:
            if len(self._names) >= _MEMORY_ENTRIES:
                self._names.clear()
            self._names[asked] = self._name_of(model, served)
        return self._names[asked]

    def _name_of(self, model: str, served: str) -> str | None:
        if self.lookup(model).rule is not MatchRule.FALLBACK:
            return None
        return served if self.lookup(served).rule is not MatchRule.FALLBACK else None

    def learned(self, key: str) -> Mapping[WindowSource, WindowReport]:
        """What is known of a model's window from outside. An id without its provider finds the
        provider's, where only one serves such a model."""
        found = self._windows.get(key)
        if found is not None or "/" in key:
            return found or {}
        return self._learned_by_name(key)

    def _learned_by_name(self, key: str) -> Mapping[WindowSource, WindowReport]:
        named = [one for name, one in self._windows.items() if bare_name(name) == key]
        return named[0] if len(named) == 1 else {}

    def key_of(self, model: str, *, provider: str | None = None) -> str:
        """The model key, however the id is spelled (core.budgets.model_names). provider None: not
        known, so the id itself has to say it."""
        asked = (model, provider)
        known = self._keys.get(asked)
        if known is None:
            known = model_key(model, provider=provider, spellings=self._spellings)
            if len(self._keys) >= _MEMORY_ENTRIES:
                self._keys.clear()
            self._keys[asked] = known
        return known

    def resolve(self, model: str) -> Resolution:
        """Look a model up and explain it: every rule that could have applied, and which did."""
        asked = model.strip()
        wanted = wanted_id(asked)
        match = self._matcher.match(wanted)
        budget = self._effective(_Question(asked), match)
        return Resolution(
            model=asked,
            budget=budget,
            matched_key=match.row.key,
            rule=budget.rule,
            budget_id=match.row.budget_id,
            candidates=tuple(self._matcher.explain(wanted, match, budget.rule)),
        )

    def _copy(self) -> BudgetTable:
        """A table of the same rows that has answered nothing yet."""
        found = copy(self)
        found._memory, found._for_arms, found._names = {}, {}, {}
        return found

    def _effective(self, question: _Question, match: RowMatch) -> EffectiveBudget:
        wanted = wanted_id(question.asked)
        row = self._ruled(wanted, match)
        rule = MatchRule.FREE_SUFFIX if is_freed(wanted, match) else match.rule
        published = self._published_of(question)
        trial = self._trial_of(question)
        if trial is not None and trial[1] is Arm.SUGGESTED:
            row = _tried(row, trial[0].changes, self._limit(question, match, row, published))
        limit = self._limit(question, match, row, published)
        own_lines = row.optimal_max_tokens, row.critical_max_tokens
        if limit.source in OUTSIDE and limit.tokens is not None:
            lines = lines_that_fit(*own_lines, limit=limit.tokens)
        else:
            lines = lines_of(*own_lines, limit=limit.tokens)
        shared = {f.name: getattr(row, f.name) for f in fields(BudgetFigures)}
        if published is not None:
            shared |= prices_beside(row, published)
        return EffectiveBudget(
            **shared,
            model=question.asked,
            rule=rule,
            prompt_variant=row.prompt_variant or _variant_of(row.tier),
            optimal_max_tokens=lines.optimal_max_tokens,
            optimal_source=lines.optimal_source,
            critical_max_tokens=lines.critical_max_tokens,
            critical_source=lines.critical_source,
            caution_cadence=row.caution_cadence or DEFAULT_CAUTION_CADENCE,
            limit_tokens=limit.tokens,
            limit_source=limit.source,
            is_shipped=self._set_by(row) is not WindowBy.OPERATOR,
            claims=limit.claims,
            disproved_by=limit.disproved_by,
            trial=InTrial(trial[0].id, trial[1]) if trial else None,
        )

    def _set_by(self, row: BudgetSpec) -> WindowBy:
        """Who set the figures that a row goes by where nobody tells its window: in a copy of the
        fallback's, whoever set those."""
        by = row.window_by
        return self._matcher.fallback.window_by if by is WindowBy.FALLBACK else by

    def _trial_of(self, question: _Question) -> tuple[TrialRule, Arm] | None:
        """The trial of the model that this table is made for, and the arm."""
        if not self._ruled_in:
            return None
        return self._ruled_in.get(question.key or self.key_of(question.asked))

    def _published_of(self, question: _Question) -> PublishedFigures | None:
        """What the list says of the model; None: nothing, or the fallback row asks for no list."""
        if not self._matcher.fallback.uses_published_list:
            return None
        return self._published.find(question.key or self.key_of(question.asked))

    def _limit(
        self,
        question: _Question,
        match: RowMatch,
        row: BudgetSpec,
        published: PublishedFigures | None,
    ) -> Limit:
        """row: as it rules the model."""
        is_unknown = row.window_by is WindowBy.FALLBACK
        key = question.key or self.key_of(question.asked)
        learned = self.learned(key)
        if not learned and is_unknown:
            # No provider that rows know: what stands before the slash may be a publisher's name.
            learned = self._learned_by_name(key)
        if question.server_window is not None:
            told = WindowReport(key=key, source=WindowSource.SERVER, tokens=question.server_window)
            known = learned.get(WindowSource.SERVER)
            if known is None or known.tokens != told.tokens:
                learned = {**learned, WindowSource.SERVER: told}
        wanted = wanted_id(question.asked)
        respelt = respell(wanted, match.alias) if match.alias else None
        return choose_limit(
            None if is_unknown else _row_limit(row),
            learned,
            published=published.context_length if published else None,
            client_window=question.client_window or split_window(question.asked).window,
            variant=variant_of({key, wanted, respelt or wanted}, self._variants),
        )


def _freed(row: BudgetSpec, fallback: BudgetSpec) -> BudgetSpec:
    """Lower a row to what a `:free` route may be trusted with.

    Free routes share quantized hosts: strict JSON aborts there, and large prompts come back empty.
    """
    return replace(
        row,
        tier=Tier.C,
        max_catalog_bytes=FREE_MAX_CATALOG_BYTES,
        allows_llm_filter=True,
        wants_strict_json=False,
        input_tokens=min(row.input_tokens, fallback.input_tokens),
        output_tokens=min(row.output_tokens, fallback.output_tokens),
    )


def _tried(row: BudgetSpec, changes: Mapping[str, Any], today: Limit) -> BudgetSpec:
    """The row as accepting the changes would leave it (queries.line_edits.own_edit). today: the
    limit of the row as it is."""
    values = {
        each.name: each.read(changes[each.name]) for each in STORED_FIELDS if each.name in changes
    }
    stands = row.stored()
    told = today.tokens if today.source in TOLD else None
    edited: dict[str, Any] = {
        **stands,
        **with_told_window(row.window_by, stands, values, told=told),
    }
    return replace(row, **edited, window_by=window_after(row.window_by, stands, edited))


def _row_limit(row: BudgetSpec) -> RowLimit:
    """Find the row's limit: the smaller known length, else the row's own safe ceiling.

    The fallback says nothing about the model it stands in for, so it has none.
    """
    is_operators = row.window_by is WindowBy.OPERATOR
    known = [
        (length, source)
        for length, source in (
            (row.context_length, LimitSource.CONTEXT_LENGTH),
            (row.input_length, LimitSource.INPUT_LENGTH),
        )
        if length is not None and length > 0
    ]
    if known:
        tokens, source = min(known, key=lambda pair: pair[0])
        return RowLimit(tokens=tokens, source=source, is_operators=is_operators)
    return RowLimit(tokens=row.input_tokens, source=LimitSource.BUDGET, is_operators=is_operators)


def _variant_of(tier: Tier) -> PromptVariant:
    """One step is asked of a model whose structured output breaks under load (helmdeck ADR 053)."""
    return PromptVariant.FULL_STEPS if has_full_trust(tier) else PromptVariant.SINGLE_PICK
