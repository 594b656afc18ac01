"""Everything we say about one call before it is stored: pure verdicts from core, put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from helmdash.core.budgets import trials
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.judged import Judgement, judge_health
from helmdash.core.budgets.model_names import split_window
from helmdash.core.budgets.refused_windows import refused_window
from helmdash.core.budgets.trials import TriedCall
from helmdash.core.budgets.windows import within_window
from helmdash.core.calls.capture import Capture, Status
from helmdash.core.calls.failures import Cause, FailureCause, classify
from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.usage import Usage, normalise_usage
from helmdash.core.calls.withheld import without_words
from helmdash.core.conversations.fingerprints import CHAIN_VERSION
from helmdash.core.text.reasoning import strip_reasoning
from helmdash.core.text.tokens import utf8_bytes
from helmdash.core.values import quick_value
from helmdash.operations.recording.judged.histories import Histories

# What a gateway calls the try that was too long, before it sent less.
_OVERFLOW = FailureCause.CONTEXT_OVERFLOW.value


@quick_value(frozen=True, slots=True, kw_only=True)
class Judged:
    """A capture with our verdicts; only its place in its conversation is still open."""

    capture: Capture
    lane: Lane
    is_side: bool  # it was made beside its conversation
    status: Status
    caller: str
    started_at: datetime
    budget: EffectiveBudget
    model_key: str
    client_window: int | None
    usage: Usage
    finish_reason: FinishReason | None
    cause: Cause | None
    health: Health
    raw_content_bytes: int | None
    content_bytes: int | None
    sent_bytes: int | None
    sent_messages: int | None
    message_hashes: tuple[str, ...]
    refused_window: int | None = None  # tokens of context that a refusal names
    trial: TriedCall | None = None  # of a conversation that is in one
    is_proof: bool = False  # answered, although far longer than the limit it was judged by
    cut: Mapping[str, object] | None = None  # why a silent cut is suspected, once it is judged

    @property
    def prompt_hash(self) -> str:
        """What tells equal prompts: of all messages, or of what a gateway kept of them."""
        if self.message_hashes:
            return self.message_hashes[-1]
        links = self.capture.links
        return f"{CHAIN_VERSION}:{links.head[1:]}" if links is not None and links.head else ""

    @property
    def is_trimmed(self) -> bool:
        """True when the reported Trim made the prompt smaller."""
        trim = self.capture.trim
        return trim is not None and trim.after_bytes < trim.before_bytes


def judge(
    capture: Capture,
    rules: BudgetTable,
    *,
    caller: str,
    now: datetime,
    keeps_texts: bool = True,
    histories: Histories | None = None,
) -> Judged:
    """Normalise, classify and assess one call. Pure but for the values passed in.

    keeps_texts: False where nothing that a provider said of the call may be kept, for it may quote
    the prompt; the verdict is by its words all the same. histories: what calls judged just before
    have sent.
    """
    model_key = rules.key_of(capture.model, provider=capture.provider)
    client_window = capture.client_window or split_window(capture.model).window
    started_at = capture.started_at or now
    budget = _budget(capture, rules, model_key, client_window, started_at)
    usage = normalise_usage(capture.usage)
    finish_reason = _finish_reason(capture)
    raw_bytes, content_bytes = _content_bytes(capture)
    sent_bytes, sent_messages, hashes = _sent(capture, histories)
    lane, status = capture.effective_lane, capture.effective_status
    judgement = _judgement(capture, usage, budget, status)
    kept = capture if keeps_texts else without_words(capture)
    cause = classify(capture, usage=usage, finish_reason=finish_reason, told=kept)
    return Judged(
        capture=kept,
        lane=lane,
        is_side=lane is Lane.SIDE,
        status=status,
        caller=capture.caller or caller,
        started_at=started_at,
        budget=budget,
        trial=_trial_of(capture, budget),
        model_key=model_key,
        client_window=client_window,
        usage=usage,
        finish_reason=finish_reason,
        cause=cause,
        health=judgement.health,
        is_proof=judgement.is_proof,
        refused_window=_refused_window(capture, cause),
        raw_content_bytes=raw_bytes,
        content_bytes=content_bytes,
        sent_bytes=sent_bytes,
        sent_messages=sent_messages,
        message_hashes=hashes,
    )


def judge_in(item: Judged, conversation: str, parent: str | None, rules: BudgetTable) -> Judged:
    """A judged call as one of a conversation that it does not name, and that has `parent`: by the
    budget and the trial of that one."""
    capture = replace(item.capture, conversation=conversation, parent=parent)
    budget = _budget(capture, rules, item.model_key, item.client_window, item.started_at)
    judgement = _judgement(capture, item.usage, budget, item.status)
    return replace(
        item,
        capture=capture,
        budget=budget,
        trial=_trial_of(capture, budget),
        health=judgement.health,
        is_proof=judgement.is_proof,
    )


def _budget(
    capture: Capture,
    rules: BudgetTable,
    model_key: str,
    client_window: int | None,
    started_at: datetime,
) -> EffectiveBudget:
    ruling = rules.for_conversation(capture.conversation, at=started_at)
    budget = ruling.lookup(
        capture.budget_model or capture.model,
        key=model_key,
        client_window=client_window,
        server_window=capture.server_window,
    )
    # What an upstream was told to use is all there was, whatever the row says (Ollama's num_ctx).
    return within_window(budget, capture.window)


def _judgement(
    capture: Capture, usage: Usage, budget: EffectiveBudget, status: Status
) -> Judgement:
    return judge_health(
        usage.prompt_tokens,
        budget,
        is_success=status == "success",
        purpose=capture.purpose,
    )


def _trial_of(capture: Capture, budget: EffectiveBudget) -> TriedCall | None:
    """The trial whose budget ruled the call: as it was told, else as its conversation is ruled."""
    told = capture.trial
    if budget.trial is None and not told:
        return None  # nearly always
    return trials.read_told(
        trials.told(budget.trial, capture.conversation) if told is None else told
    )


def _refused_window(capture: Capture, cause: Cause | None) -> int | None:
    """The window that a refusal of the call names, or one of a try before it was answered."""
    if not capture.attempts and cause is None:
        return None
    said: list[object] = [
        attempt.get("message") for attempt in capture.attempts if attempt.get("error") == _OVERFLOW
    ]
    if cause is not None and cause.name is FailureCause.CONTEXT_OVERFLOW:
        said.append(capture.error_message)
    if not said or capture.refused_window is not None:
        return capture.refused_window if said else None
    found = [refused_window(message) for message in said if isinstance(message, str)]
    return next((tokens for tokens in reversed(found) if tokens is not None), None)


def _finish_reason(capture: Capture) -> FinishReason | None:
    """How the reply ended; a reply that calls tools did not just stop, whatever it says.

    Ollama and Gemini end every reply in their word for "stop".
    """
    reason = normalise_finish_reason(capture.finish_reason)
    return FinishReason.TOOL_CALLS if reason is FinishReason.STOP and capture.tool_calls else reason


def _content_bytes(capture: Capture) -> tuple[int | None, int | None]:
    """Bytes of the answer, raw and without its reasoning; null where they are not known."""
    if capture.content is None:
        return capture.raw_content_len, None
    raw = utf8_bytes(capture.content)
    stripped = raw - strip_reasoning(capture.content).stripped_bytes
    return capture.raw_content_len if capture.raw_content_len is not None else raw, max(stripped, 0)


def _sent(
    capture: Capture, histories: Histories | None
) -> tuple[int | None, int | None, tuple[str, ...]]:
    """What was sent: as reported, else counted on the messages that came along."""
    said = capture.sent
    said_bytes = said.bytes if said else None
    said_messages = said.messages if said else None
    if capture.messages is None:
        return said_bytes, said_messages, ()
    known = Histories() if histories is None else histories
    history = known.take(capture.conversation, capture.messages)
    if said_bytes is None:
        said_bytes = sum(history.sizes)
    if said_messages is None:
        said_messages = len(capture.messages)
    return said_bytes, said_messages, tuple(history.hashes)
