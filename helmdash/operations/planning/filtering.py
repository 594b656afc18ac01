"""The filter pass: where the ranking is in doubt, a model says which entries matter.

Source: the two-pass filter of helmdeck ADR 050. It is asked by numbers, has room to think, is
capped, and is recorded as a call of its own. It never fails a plan: without an answer the ranking
stands.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from helmdash.core.calls.completion import Complete, Completion
from helmdash.core.calls.finish import FinishReason
from helmdash.core.decoding.decoding import Decoded, decode
from helmdash.core.fitting.selection import Doubt, Selection, room_for_catalog
from helmdash.core.planning.answers import Attempt
from helmdash.core.planning.filter_pass import (
    Picks,
    build_filter_prompt,
    is_picks_shaped,
    read_picks,
)
from helmdash.core.planning.plans import UnusablePlan
from helmdash.core.planning.prompts import Prompt
from helmdash.core.planning.recovery import filter_tokens
from helmdash.operations.ids import new_id
from helmdash.operations.planning.asking import Question
from helmdash.operations.planning.attempts import (
    Reader,
    Reply,
    attempt_call,
    sha_of,
)

# A model without a catalog cap reads the list of a thousand entries.
_MOST_BYTES = 64 * 1024
# Of one entry nobody has to ask whether it is the right one.
_FEWEST_LISTED = 2


async def ask_filter(
    question: Question,
    selection: Selection,
    doubt: Doubt,
    *,
    planner: str,
    number: int,
    complete: Complete,
    clock: Callable[[], datetime],
) -> Reply[Picks] | None:
    """Ask which entries matter, and record the call; None where the filter model's budget has no
    room for a question about more than one.

    planner: the id of the model that will plan; its budget may name another one that filters.
    number: the attempt's, from 1. Raises UnknownModel where no upstream serves the filter model.
    """
    budget = question.rules.lookup(question.rules.lookup(planner).filter_model or planner)
    prompt = build_filter_prompt(
        question.prepared,
        intent=question.intent,
        room_bytes=min(_MOST_BYTES, room_for_catalog(budget)),
        order=selection.order,
    )
    most_bytes = budget.estimator.bytes_within(budget.most_prompt_tokens)
    if prompt.bytes > most_bytes or len(prompt.ids) < _FEWEST_LISTED:
        return None
    sent = Prompt(system=prompt.system, user=prompt.user, caches_system=False)
    attempt = Attempt(
        number=number,
        purpose="filter",
        call_id=new_id("call", clock()),
        model=budget.model,
        prompt_variant="",
        response_format="",
        max_tokens=filter_tokens(budget),
        reason=doubt.why,
        prompt_bytes=sent.bytes,
        system_sha=sha_of(sent.system),
    )
    completion = Completion(
        call_id=attempt.call_id,
        model=attempt.model,
        system=sent.system,
        user=sent.user,
        max_tokens=attempt.max_tokens,
    )

    def read(value: object, partial: bool) -> Picks:
        picks = read_picks(value, prompt.ids)
        if not picks.ids:
            raise UnusablePlan("filter.no_picks", "it names no entry of the list")
        return picks

    return await attempt_call(
        question,
        attempt,
        completion,
        Reader(_find, read),
        complete=complete,
        clock=clock,
    )


def _find(raw: str, finish_reason: FinishReason | None) -> Decoded:
    return decode(raw, finish_reason=finish_reason, accepts=is_picks_shaped, label="filter")
