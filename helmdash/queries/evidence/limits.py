"""What is learned of a model as a list of figures: each with its method, how many calls it is from,
how sure it is, and which calls those were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from helmdash.answers import BLANK_IS_NULL, Doc, answer
from helmdash.core.budgets.learned_windows import WindowSource
from helmdash.core.evidence.calls_behind import calls_behind
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.output_tokens import OutputNeed
from helmdash.core.evidence.planning_outcomes import FIRST_WAY, WayFinding
from helmdash.core.evidence.safe_input import Finding, SafeInput
from helmdash.core.evidence.suggested import Learned, Value, ceiling_tokens, since_of
from helmdash.queries.budgets import budgets
from helmdash.queries.distinct_values import model_keys
from helmdash.queries.evidence.learned import latest_spelling, learned_of


@answer("LearnedLimit")
@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedLimit:
    """One figure as recorded calls show it.

    part: the calls of one purpose or prompt variant alone. value: null where the calls do not show
    one; `missing` then says how many more are needed, and `finding` why.
    """

    figure: Figure
    upstream: Annotated[str, BLANK_IS_NULL, Doc("Null: the calls of all of them.")]
    part: Annotated[str, BLANK_IS_NULL, Doc("purpose=plan, say. Null: all calls.")]
    value: Value | None
    finding: Annotated[str, Doc("What was found, in a word: docs/evidence.md.")]
    method: str
    calls: int
    missing: int
    low: Annotated[float | None, Doc("The 95 % interval of what was measured. Null: none.")]
    high: float | None
    since: datetime | None
    until: datetime | None
    call: Annotated[str, BLANK_IS_NULL, Doc("The one call that told it, where one did.")]
    query: Annotated[
        str,
        BLANK_IS_NULL,
        Doc("The q of GET /calls: with since and until it lists just these calls."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedLimits:
    """All that recorded calls show of one model."""

    model: str
    model_key: str
    others: Annotated[
        tuple[str, ...],
        Doc("Models that the id may mean as well, such as those of other upstreams: ask for each."),
    ]
    calls: int
    items: tuple[LearnedLimit, ...]


# Found, and not, where a method has no finer words.
_FOUND, _NOT_SHOWN, _TOO_FEW = "found", "not_shown", Finding.TOO_FEW.value


def limits_of_model(*, project_id: int, model: str, now: datetime) -> LearnedLimits:
    """What is learned of a model, however it is spelt. Eight queries at most.

    Of several keys that the spelling may mean the first with calls; `others` names the rest.
    """
    keys = model_keys(project_id=project_id, model=model)
    learned: tuple[Learned, ...] = ()
    key = keys[0]
    for each in keys:
        spelt = latest_spelling(project_id=project_id, model_key=each, now=now)
        learned = learned_of(
            project_id=project_id, model_key=each, model=spelt, now=now, with_parts=True
        )
        if learned:
            key = each
            break
    items = [*_told_windows(project_id, key)]
    for one in learned:
        items.extend(_limits(one))
    return LearnedLimits(
        model=model,
        model_key=key,
        others=keys[keys.index(key) + 1 :] if learned else (),
        calls=learned[0].calls if learned else 0,
        items=tuple(items),
    )


def _told_windows(project_id: int, key: str) -> Iterator[LearnedLimit]:
    """Windows that a refusal or a server named: exact, by one call."""
    known = budgets.table(project_id=project_id).learned(key)
    for source in (WindowSource.REFUSAL, WindowSource.SERVER):
        report = known.get(source)
        if report is not None:
            yield LearnedLimit(
                figure=Figure.CONTEXT_LENGTH,
                upstream="",
                part="",
                value=report.tokens,
                finding=_FOUND,
                method=source.value,
                calls=1,
                missing=0,
                low=None,
                high=None,
                since=report.moment,
                until=report.moment,
                call=report.call_id,
                query="",
            )


def _limits(learned: Learned) -> Iterator[LearnedLimit]:
    yield _of_input(learned, learned.input, ceiling_tokens(learned))
    for part in learned.parts:
        # Of a part in bytes no tokens are told: the ratio is that of all calls.
        tokens = None if learned.input_in_bytes else part.input.ceiling
        yield _of_input(learned, part.input, tokens, part=f"{part.kind}={part.name or 'none'}")
    window, ratios, tier = learned.window, learned.ratios, learned.tier
    yield _limit(
        learned, Figure.CONTEXT_LENGTH, window.tokens, window.method, window.cuts, window.missing
    )
    yield _of_output(learned, learned.output, "")
    yield _of_output(learned, learned.reasoning_output, "reasoning")
    yield _limit(
        learned,
        Figure.CHARS_PER_TOKEN,
        ratios.bytes_per_token,
        ratios.method,
        ratios.calls,
        ratios.missing,
    )
    yield _of_input(learned, learned.catalog, learned.catalog.ceiling, Figure.MAX_CATALOG_BYTES)
    yield _limit(
        learned,
        Figure.TIER,
        tier.tier.value if tier.tier else None,
        tier.method,
        tier.calls,
        tier.missing,
        interval=tier.interval,
    )
    variant, json_mode = learned.variant, learned.json_mode
    full = None if variant.better is None else variant.better == FIRST_WAY
    words = {None: None, True: "full_steps", False: "single_pick"}
    yield _of_way(learned, Figure.PROMPT_VARIANT, variant, words[full])
    strict = None if json_mode.better is None else json_mode.better != FIRST_WAY
    yield _of_way(learned, Figure.WANTS_STRICT_JSON, json_mode, strict)


def _of_input(
    learned: Learned,
    found: SafeInput,
    value: int | None,
    figure: Figure = Figure.INPUT_TOKENS,
    part: str = "",
) -> LearnedLimit:
    return _limit(
        learned,
        figure,
        value,
        found.method,
        found.calls,
        found.missing,
        part=part,
        since=since_of(learned, found),
        finding=found.finding.value,
        interval=found.fall.interval(),
    )


def _of_output(learned: Learned, found: OutputNeed, part: str) -> LearnedLimit:
    return _limit(
        learned,
        Figure.OUTPUT_TOKENS,
        found.tokens,
        found.method,
        found.replies,
        found.missing,
        part=part,
    )


def _of_way(
    learned: Learned, figure: Figure, found: WayFinding, value: Value | None
) -> LearnedLimit:
    return _limit(
        learned,
        figure,
        value,
        found.method,
        sum(found.calls),
        found.missing,
        interval=found.fall.interval(),
    )


def _limit(
    learned: Learned,
    figure: Figure,
    value: Value | None,
    method: str,
    calls: int,
    missing: int,
    *,
    part: str = "",
    since: datetime | None = None,
    finding: str = "",
    interval: tuple[float, float] | None = None,
) -> LearnedLimit:
    plain = _FOUND if value is not None else _TOO_FEW if missing else _NOT_SHOWN
    return LearnedLimit(
        figure=figure,
        upstream=learned.upstream,
        part=part,
        value=value,
        finding=finding or plain,
        method=method,
        calls=calls,
        missing=missing,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        since=since or learned.since,
        until=learned.until,
        call="",
        query=calls_behind(
            figure,
            model_key=learned.model_key,
            upstream=learned.upstream,
            part=part,
            in_bytes=learned.input_in_bytes,
        ),
    )
