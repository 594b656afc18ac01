"""Whether anything is due before a generation: a look that writes nothing and locks nothing.

Most generations are far from any line. For those the step of `advancing` would change nothing but
the number of the last generation decided, which matters only once a level is held. So a gateway
looks first, and takes the step where this says None: the same answer, without a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import HealthReason, assess
from helmdash.core.budgets.levels import HELD
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.usage import normalise_usage
from helmdash.core.care.remediation import CareState, is_close
from helmdash.core.conversations.repeated_streams import (
    NewestStream,
    StreamRequest,
    is_again,
    mark_of,
)
from helmdash.operations.care.values import Newest, Restart, SentBytes
from helmdash.records.access.secrets import unseal
from helmdash.records.statements.glances import Glance, find_glance


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingDue:
    """Nothing is due. How the round goes on; newest: the sizes of its newest call, if trusted."""

    round_number: int
    generation: int  # the one about to start
    restart: Restart | None
    newest: Newest | None


def peek(
    *,
    project_id: int,
    conversation: str,
    budget: EffectiveBudget,
    model: str | None = None,
    sent_bytes: SentBytes | None = None,
    waiting: Sequence[Capture] = (),
    stream: StreamRequest | None = None,
) -> NothingDue | None:
    """Tell how a conversation goes on where nothing is due; None: that takes a step to find out.

    budget: of the model about to be asked. waiting: calls that may be this conversation's and are
    not stored yet, oldest first; they count as readings of it. model, sent_bytes: as for `advance`;
    a request that comes close to a line by itself takes a step. stream: the request, where it asks
    for one: asked for again, it is the newest generation once more. One query, or none.
    """
    if any(_is_telling(capture, budget) for capture in waiting):
        return None
    found = find_glance(project_id=project_id, name=conversation)
    if found is None or _is_held(found) or not _is_quiet(found, budget):
        return None
    package = unseal(str(found.restart.get("package", ""))) if found.restart else ""
    if package is None:
        return None  # sealed under another key: the step writes another one
    own = [capture for capture in waiting if capture.conversation == conversation]
    restart = _restart(found.restart or {}, package)
    newest = _newest_waiting(own) or _newest(found)
    if newest is not None and sent_bytes is not None and model in (None, newest.model):
        expected = newest.tokens_of(sent_bytes(restart))
        if is_close(newest.prompt_tokens, expected, budget.optimal_max_tokens, budget.limit_tokens):
            return None
    return NothingDue(
        round_number=found.round_number,
        generation=_next_generation(found, own, stream),
        restart=restart,
        newest=newest,
    )


def _next_generation(found: Glance, own: Sequence[Capture], stream: StreamRequest | None) -> int:
    """The one about to start: an attempt at the newest one is no further generation."""
    stored = NewestStream.from_json(found.newest_stream)
    first = _stream_of(own[0]) if own else stream
    is_repeat = first is not None and is_again(stored, first, generation=found.generation)
    return found.generation + len(own) + 1 - is_repeat


def _stream_of(capture: Capture) -> StreamRequest | None:
    links = capture.links
    if links is None or capture.started_at is None:
        return None
    mark = mark_of(links, model=capture.model, caller=capture.caller or "")
    return StreamRequest(mark=lambda: mark, started_at=capture.started_at, is_retry=links.is_retry)


def _is_telling(capture: Capture, budget: EffectiveBudget) -> bool:
    """Whether a call that is not stored yet may be one that something is to be done about."""
    if capture.effective_status != "success":
        return True
    return assess(normalise_usage(capture.usage).prompt_tokens, budget).level in HELD


def _is_held(found: Glance) -> bool:
    """Whether care holds a level in the open round, or told something that later calls repeat."""
    state = CareState.from_json(found.care)
    is_own = found.care is not None and state.round_number == found.round_number
    return found.has_inserts or found.is_round_empty or (is_own and state.level is not None)


def _is_quiet(found: Glance, budget: EffectiveBudget) -> bool:
    if found.model is None or found.cause == FailureCause.CONTEXT_OVERFLOW.value:
        return False
    return assess(found.prompt_tokens, budget).level not in HELD


def _restart(stored: Mapping[str, object], package: str) -> Restart | None:
    """How a round goes on that was begun by a clear with a client; None: as it comes."""
    messages, carried = stored.get("messages"), stored.get("carried")
    if not isinstance(messages, int) or not isinstance(carried, list):
        return None
    return Restart(
        messages=messages,
        digest=str(stored.get("digest")),
        carried=tuple(int(index) for index in carried),
        package=package,
        inserts=(),
    )


def _newest(found: Glance) -> Newest | None:
    is_doubtful = found.level_reason == HealthReason.SUSPECTED_CUT.value
    if is_doubtful or not (found.model and found.prompt_tokens and found.sent_bytes):
        return None
    return Newest(model=found.model, prompt_tokens=found.prompt_tokens, sent_bytes=found.sent_bytes)


def _newest_waiting(own: Sequence[Capture]) -> Newest | None:
    for capture in reversed(own):
        tokens = normalise_usage(capture.usage).prompt_tokens
        sent = capture.sent.bytes if capture.sent else None
        if tokens and sent:
            return Newest(model=capture.model, prompt_tokens=tokens, sent_bytes=sent)
    return None
