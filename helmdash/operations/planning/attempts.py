"""One call to a model on the way to a plan: made, recorded, and what its reply was worth."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from helmdash.core.budgets import trials
from helmdash.core.calls.beside import AnswerPlace, Beside, ToolUse, as_text, texts_in, whole_calls
from helmdash.core.calls.capture import Capture, CapturedTrim
from helmdash.core.calls.completion import Complete, Completion
from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.catalog.trim import Trim
from helmdash.core.decoding.decoding import Decoded, Undecodable
from helmdash.core.planning.answers import Attempt
from helmdash.core.planning.plans import UnusablePlan
from helmdash.operations.planning.asking import Question
from helmdash.operations.planning.threads import in_thread
from helmdash.operations.recorder import RecorderFull, recorder
from helmdash.operations.recording.judged.judging import judge
from helmdash.records.models import Payload

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Reader(Generic[Answer]):
    """How a reply is read: how its JSON is found, and what that comes to.

    `find` raises Undecodable. `read` gets the value and whether the reply was cut off; it raises
    UnusablePlan.
    """

    find: Callable[[str, FinishReason | None], Decoded]
    read: Callable[[object, bool], Answer]
    of_calls: Callable[[Sequence[ToolUse]], object] | None = None
    """The JSON that calls of tools stand for; None where they are no answer."""
    serves: Callable[[Answer], bool] = lambda answer: True
    """Whether an answer made of calls is one: a model may call what nobody offered."""
    noted: Callable[[Answer, str], Answer] = lambda answer, note: answer
    """The answer with a sentence for whoever reads it."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[Answer]):
    """What came of an attempt. Without an answer there is a cause."""

    attempt: Attempt
    answer: Answer | None


def sha_of(system: str) -> str:
    """A short hash of a system message: calls with equal ones share a prefix cache."""
    return hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def attempt_call(
    question: Question,
    attempt: Attempt,
    completion: Completion,
    reader: Reader[Answer],
    *,
    complete: Complete,
    clock: Callable[[], datetime],
    trim: Trim | None = None,
) -> Reply[Answer]:
    """Make one call, read its reply and record it, whatever comes of it.

    Raises UnknownModel, and CancelledError after the call was recorded as stopped.
    """
    try:
        capture = await complete(completion)
    except asyncio.CancelledError:
        stopped = Capture(
            id=attempt.call_id,
            model=attempt.model,
            status="error",
            error_code="gateway_stopped",
            error_message="HelmDash was stopped during the call.",
            error_is_own=True,
        )
        _hand_over(question, _described(stopped, question, attempt, trim), clock())
        raise
    capture = _described(capture, question, attempt, trim)
    # Reading a hostile reply may take a second, which the event loop does not have.
    answer, capture, rule = await asyncio.to_thread(_read, capture, reader)
    judged = judge(
        capture,
        question.rules,
        caller=question.caller,
        now=clock(),
        keeps_texts=question.project.payload != Payload.OFF.value,
    )
    cause = judged.cause
    assert answer is not None or cause is not None, "a reply without an answer has a cause"
    if cause is not None and rule:
        cause = replace(cause, rule=rule)
    await in_thread(_record, question, capture, clock())
    return Reply(
        replace(
            attempt,
            cause=cause,
            finish_reason=judged.finish_reason,
            latency_ms=capture.latency_ms,
        ),
        answer,
    )


def _described(
    capture: Capture, question: Question, attempt: Attempt, trim: Trim | None
) -> Capture:
    """The capture with what only the planner knows."""
    return replace(
        capture,
        trial=_trial_of(capture, question),
        purpose=attempt.purpose,
        correlation_id=question.plan_id,
        pack=f"helmdeck.{question.ask.kind}",
        caller=question.caller,
        attempt=attempt.number,
        prompt_variant=attempt.prompt_variant or None,
        response_format=attempt.response_format or None,
        fit_id=attempt.fit_id or None,
        trim=CapturedTrim(
            before_bytes=trim.before_bytes, after_bytes=trim.after_bytes, dropped=trim.dropped
        )
        if trim is not None
        else None,
        metadata={"plan_id": question.plan_id, "max_tokens": attempt.max_tokens},
    )


def _trial_of(capture: Capture, question: Question) -> str:
    """The trial whose budget ruled the call, as captures say it."""
    rules = question.rules
    key = rules.key_of(capture.model, provider=capture.provider)
    budget = rules.lookup(capture.budget_model or capture.model, key=key)
    return trials.told(budget.trial, question.ask.conversation)


def _read(capture: Capture, reader: Reader[Answer]) -> tuple[Answer | None, Capture, str]:
    """The answer in a reply, the capture with what reading it told, and a rule of the reader."""
    beside, capture = capture.beside, replace(capture, beside=None)
    if capture.effective_status != "success":
        return None, capture, ""
    finish_reason = normalise_finish_reason(capture.finish_reason)
    capture = replace(capture, content=capture.content or "")
    read = _read_text(capture, finish_reason, reader)
    if read[0] is not None:
        return read
    found = _read_beside(beside or Beside(), capture.content or "", finish_reason, reader)
    if found is None:
        return read
    answer, text, place = found
    metadata = {**(capture.metadata or {}), "answer_from": place.value}
    capture = replace(capture, content=text, decoded=True, metadata=metadata)
    return reader.noted(answer, _PLACES[place]), capture, ""


_PLACES = {
    AnswerPlace.CALLS: "The model called the tools instead of writing the answer; its calls were "
    "read.",
    AnswerPlace.ARGUMENTS: "The model answered by calling a tool; what it passed was read.",
    AnswerPlace.REASONING: "The model said nothing; its answer stood in its reasoning.",
}


def _read_text(
    capture: Capture, finish_reason: FinishReason | None, reader: Reader[Answer]
) -> tuple[Answer | None, Capture, str]:
    try:
        decoded = reader.find(capture.content or "", finish_reason)
    except Undecodable:
        return None, replace(capture, decoded=False), ""
    try:
        answer = reader.read(decoded.value, decoded.partial)
    except UnusablePlan as error:
        return None, replace(capture, decoded=True, unusable=str(error)), error.rule
    return answer, replace(capture, decoded=True), ""


def _read_beside(
    beside: Beside, said: str, finish_reason: FinishReason | None, reader: Reader[Answer]
) -> tuple[Answer, str, AnswerPlace] | None:
    """An answer that stands beside the text, as text and where; None where there is none."""
    calls = whole_calls(beside, finish_reason) if reader.of_calls else ()
    if calls and reader.of_calls:
        value = reader.of_calls(calls)
        answer = _usable(value, finish_reason is FinishReason.LENGTH, reader)
        if answer is not None and reader.serves(answer):
            return answer, as_text(value), AnswerPlace.CALLS
    for place, text in texts_in(beside, said):
        try:
            decoded = reader.find(text, finish_reason)
        except Undecodable:
            continue
        answer = _usable(decoded.value, decoded.partial, reader)
        if answer is not None:
            return answer, as_text(decoded.value), place
    return None


def _usable(value: object, partial: bool, reader: Reader[Answer]) -> Answer | None:
    try:
        return reader.read(value, partial)
    except UnusablePlan:
        return None


def _record(question: Question, capture: Capture, now: datetime) -> None:
    """Store the call; where the recorder has no room just now, leave it to its spool."""
    try:
        recorder().record_and_wait(
            project=question.project, captures=[capture], caller=question.caller, now=now
        )
    except RecorderFull:
        _hand_over(question, capture, now)


def _hand_over(question: Question, capture: Capture, now: datetime) -> None:
    recorder().submit(question.project, question.caller, capture, now)
