"""Care of a conversation on its way through the gateway (ADR 16 and 23).

Before a chat call is sent, its conversation is looked up, remediation takes its step, and the
request is written anew where that asks for it: guidance for this call only, a prompt that stays
for the round, or a fresh start. The client knows nothing of it and need not: it goes on sending
its whole history, and `core.care.restarts` says what of that is sent.

Nothing here may cost a client its answer: when the database is away, the call goes on as the one
before it did, and when anything fails, as it came.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

from django.db import Error as DatabaseFault

from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.core.care.reminders import package_bytes
from helmdash.core.care.restarts import Beginning, arrange, prompt_of
from helmdash.core.conversations import fingerprints
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway import budgeting, message_digest
from helmdash.gateway.beginnings import Beginnings, Who
from helmdash.gateway.cared import CLEAR, GUIDE, NONE, Care, History, Sending
from helmdash.gateway.due_steps import DueSteps
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.known_names import KnownNames
from helmdash.gateway.known_names import Who as KnownWho
from helmdash.gateway.options import conversation_of
from helmdash.gateway.rewriting import Form, entries_of, form_of, rewritten
from helmdash.operations import care
from helmdash.operations.database.sqlite_file import commit_without_waiting, thread_connection
from helmdash.operations.recorder import Recorder
from helmdash.operations.recording.inference import find_conversation
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import WireError

log = logging.getLogger(__name__)

T = TypeVar("T")

# The call before this one may still be on its way to the database: a commit takes milliseconds.
_CATCH_UP_S = 1.0
# How long a call waits for the database before it goes on without care, and how long nobody waits
# after that.
_PATIENCE_S = 3.0
_AWAY_S = 1.0
# Each has a connection of its own; SQLite lets one write at a time anyway.
_THREADS = 4
# A package that holds no reminders: six headings and a draft. A fresh start that frees no more
# than that is not worth one.
_PACKAGE_BYTES = 2_048
# Expected tokens are within a few percent of the reported ones while the text is of one kind. A
# provider that refuses what is too long tells for sure, and costs a round trip only; Ollama cuts.
_PLAINLY = 1.1


class _Silent(Exception):
    """The database does not answer."""


class Carer:
    """Takes care of calls, one for each process. Used on one event loop."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway-care")
        self._away_until = 0.0
        self._is_away = False
        self._beginnings = Beginnings()
        self._names = KnownNames()
        self._due = DueSteps()

    def close(self) -> None:
        """End the threads; whatever waits is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def prepare(
        self, exchange: Exchange, client: ClientFormat, body: bytes, parsed: dict[str, Any]
    ) -> Sending:
        """Take the step that is due before a call, and give what is to be sent. Never raises."""
        assert exchange.request is not None
        sending = Sending(body=body, parsed=parsed, request=exchange.request)
        form = form_of(exchange.route.client)
        if form is None:
            return sending
        try:
            return await self._prepared(exchange, client, form, sending)
        except Exception:
            log.exception("a call could not be cared for")
            return sending

    async def _prepared(
        self, exchange: Exchange, client: ClientFormat, form: Form, sending: Sending
    ) -> Sending:
        items = entries_of(form, sending.parsed)
        history = History(
            form=form,
            body=sending.body,
            parsed=sending.parsed,
            items=items,
            entries=[form.read(item) for item in items],
            budget=exchange.budget,
        )
        call = exchange.care = Care(history=history)
        call.named = exchange.options.conversation or conversation_of(exchange.metadata) or ""
        call.conversation = call.named or None
        call.shorten = partial(self._shorten, exchange, client)
        step, newest = None, None
        try:
            step = await self._step(exchange, client, call)
        except _Silent:
            call.beginning = self._beginnings.find(_who(exchange, call), history.entries)
        if step is not None:
            newest = step.newest
            self._go_on(exchange, call, step.beginning)
        guide = None if step is None else step.guide
        sending = _sending(exchange, client, history, call.beginning, guide=guide)
        if (guide or call.beginning.inserts) and _expected(exchange, newest) > _limit(exchange):
            # Our own words must not be what makes a request too long.
            call.beginning = replace(call.beginning, inserts=())
            call.action = NONE if call.action != CLEAR else CLEAR
            sending = _sending(exchange, client, history, call.beginning)
        if _is_too_long(exchange, newest):
            sending = await self._shorten(exchange, client) or sending
        return sending

    async def _step(self, exchange: Exchange, client: ClientFormat, call: Care) -> _Step | None:
        """Take the step; None for a conversation that nobody knows. Raises _Silent."""
        step = await self._resting(exchange, client, call)
        is_resting = step is not None
        if step is None:
            if monotonic() >= self._away_until:
                concerned = _concerned(exchange, call)
                await self._recorder.has_caught_up(concerned, seconds=_CATCH_UP_S)
            step = await self._ask(partial(_advance, exchange, client, call))
        if step is None:
            return None
        if not is_resting:
            self._due.note(_caller(exchange), step.conversation, is_over=step.action == CLEAR)
        call.conversation = step.conversation
        call.action, call.countdown = step.action, step.countdown
        call.round_number, call.generation = step.round_number, step.generation
        call.is_braked = step.is_braked
        call.is_watched = not is_resting
        return step

    async def _resting(self, exchange: Exchange, client: ClientFormat, call: Care) -> _Step | None:
        """The step where nothing is due, which most calls need no more than a look to tell; None:
        it has to be taken. Raises _Silent."""
        who = _caller(exchange)
        call.note = partial(self._note, who, call)
        if call.conversation is None:
            call.links = _links(exchange)
            call.conversation = self._names.find(who, call.links)
        if call.conversation is None or exchange.budget is None:
            return None
        if self._due.is_due(who, call.conversation):
            call.conversation = call.named or None
            return None
        waiting = self._recorder.unstored(_concerned(exchange, call))
        if waiting is None:
            return None
        step = await self._ask(partial(_rest, exchange, client, call, waiting))
        if step is None:
            # Found by a guess at what goes on: the database has the last word.
            call.conversation = call.named or None
            return None
        if prompt_of(call.history.entries) is not None:
            self._later(partial(_keep_prompt, exchange, call, step))
        return step

    def _note(self, who: KnownWho, call: Care, capture: Capture) -> None:
        """The call has ended: the next one goes on with the same conversation."""
        if call.conversation is not None and not call.named:
            self._names.note(who, capture.links, call.conversation)
        if call.is_watched:
            # The next step needs it: better stored while the agent is at work than waited for.
            self._recorder.hasten()

    def _later(self, work: Callable[[], object]) -> None:
        """Do what no client needs to wait for."""
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._threads, partial(_in_thread, work))
        done.add_done_callback(_look_at)

    async def _shorten(self, exchange: Exchange, client: ClientFormat) -> Sending | None:
        """Start afresh because the request does not fit; None where that gains nothing.

        At most once for each call, and not after a clear: then there is nothing left to drop. What
        cannot be stored, for the conversation is not known yet or the database is silent, holds for
        this call.
        """
        call = exchange.care
        assert call is not None
        call.shorten = None
        history, size = call.history, exchange.body_bytes
        bare = history.bare()
        if (
            call.is_braked
            or call.action == CLEAR
            or not history.is_dropping(before=call.beginning, after=bare)
        ):
            return None
        if _bytes_of(history, bare) + _spare(exchange) >= size:
            return None
        beginning = await self._cleared(exchange, call)
        if beginning is None:
            return None
        call.action, call.countdown = CLEAR, None
        self._go_on(exchange, call, beginning)
        shorter = _sending(exchange, client, history, beginning)
        return shorter if len(shorter.body) < size else None

    async def _cleared(self, exchange: Exchange, call: Care) -> Beginning | None:
        """The fresh start; None: care has stopped clearing."""
        history = call.history
        try:
            cleared = await self._ask(partial(_clear, exchange, call))
        except _Silent:
            cleared = None
        except care.Braked:
            call.is_braked = True
            return None
        if cleared is not None:
            call.round_number = cleared.round_number
            beginning = history.beginning(cleared.restart)
            if beginning.entries:
                return beginning
        return history.rebuilt(round_number=call.round_number or 1)

    def _go_on(self, exchange: Exchange, call: Care, beginning: Beginning) -> None:
        call.beginning = beginning
        self._beginnings.keep(_who(exchange, call), call.history.entries, beginning)

    async def _ask(self, question: Callable[[], T | None]) -> T | None:
        """Ask the database in a thread. Raises _Silent, for a while without asking."""
        if monotonic() < self._away_until:
            raise _Silent
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, partial(_in_thread, question))
        asked.add_done_callback(_look_at)
        try:
            answer = await asyncio.wait_for(asyncio.shield(asked), _PATIENCE_S)
        except (TimeoutError, DatabaseFault) as fault:
            self._away_until = monotonic() + _AWAY_S
            if not self._is_away:
                self._is_away = True
                log.warning("calls go on without remediation: %s", type(fault).__name__)
            raise _Silent from None
        if self._is_away:
            self._is_away = False
            log.warning("remediation goes on")
        return answer


def is_wanted(exchange: Exchange) -> bool:
    """Whether this call's conversation is cared for: the header decides, else the project."""
    asked_for = exchange.options.remediation
    return exchange.key_context.caller.project.remediation if asked_for is None else asked_for


def is_overflow(error: WireError) -> bool:
    """Whether an upstream refuses a request because it does not fit."""
    return kind_of_error(error.code, error.message) is ErrorKind.CONTEXT


# --- in a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    conversation: str
    action: str
    countdown: int | None
    round_number: int
    generation: int
    beginning: Beginning
    guide: str | None
    newest: care.Newest | None
    is_braked: bool = False


def _rest(
    exchange: Exchange, client_format: ClientFormat, call: Care, waiting: Sequence[Capture]
) -> _Step | None:
    """The step where nothing is due; None: it has to be taken."""
    assert exchange.budget is not None
    assert call.conversation is not None
    found = care.peek(
        project_id=exchange.key_context.caller.project.id,
        conversation=call.conversation,
        budget=exchange.budget,
        model=exchange.budget_model or exchange.model,
        sent_bytes=lambda restart: _text_bytes(exchange, client_format, call.history, restart),
        waiting=waiting,
    )
    if found is None:
        return None
    return _Step(
        conversation=call.conversation,
        action=NONE,
        countdown=None,
        round_number=found.round_number,
        generation=found.generation,
        beginning=call.history.beginning(found.restart),
        guide=None,
        newest=found.newest,
    )


def _keep_prompt(exchange: Exchange, call: Care, step: _Step) -> None:
    """Note the user's text that a call brought: a clear from elsewhere is to carry it."""
    prompt = prompt_of(call.history.entries)
    if prompt is not None and (text := call.history.entries[prompt].text):
        care.keep_prompt(
            project=exchange.key_context.caller.project,
            conversation=step.conversation,
            generation=step.generation,
            text=text,
            now=datetime.now(UTC),
        )


def _advance(exchange: Exchange, client_format: ClientFormat, call: Care) -> _Step | None:
    """Take remediation's step; None for a conversation that has only just begun."""
    caller, history = exchange.key_context.caller, call.history
    name = call.conversation or _find(exchange, call)
    if name is None:
        return None
    client = history.for_clear()
    prompt = prompt_of(history.entries)
    done = care.advance(
        project=caller.project,
        conversation=name,
        has_user_prompt=prompt is not None,
        user_prompt=None if prompt is None else history.entries[prompt].text,
        model=exchange.budget_model or exchange.model,
        client=client,
        sent_bytes=lambda restart: _text_bytes(exchange, client_format, history, restart),
        fits=lambda restart, size, newest: (
            newest.model != exchange.model
            or newest.tokens_of(_text_bytes(exchange, client_format, history, restart) + size)
            <= _limit(exchange)
        ),
        now=datetime.now(UTC),
    )
    beginning = history.beginning(done.restart)
    if done.persist and done.text and not _has(beginning, done.text):
        inserts = (*beginning.inserts, (client.messages, done.text))
        beginning = replace(beginning, inserts=inserts)
    return _Step(
        conversation=name,
        action=str(done.action),
        countdown=None if done.action == CLEAR else done.remaining,
        round_number=done.round_number,
        generation=done.generation,
        beginning=beginning,
        guide=done.text if done.action == GUIDE and not done.persist else None,
        newest=done.newest,
        is_braked=done.is_braked,
    )


def _text_bytes(
    exchange: Exchange, client_format: ClientFormat, history: History, restart: care.Restart | None
) -> int:
    """The bytes that would be sent, as the record counts them: without images."""
    beginning = history.beginning(restart)
    if not (beginning.entries or beginning.inserts):
        return exchange.text_bytes
    steps = arrange(history.entries, beginning)
    body, parsed = rewritten(history.form, history.body, history.parsed, steps)
    route = exchange.route
    request = client_format.read_request(parsed, model=route.model, stream=route.stream)
    return max(len(body) - message_digest.images_of(request)[1], 0)


def _clear(exchange: Exchange, call: Care) -> care.Cleared | None:
    if call.conversation is None:
        return None
    try:
        return care.clear(
            actor=exchange.key_context.caller.actor,
            project=exchange.key_context.caller.project,
            conversation=call.conversation,
            reason="The request was longer than its model takes.",
            by_itself=True,
            client=call.history.for_clear(),
            generation=call.generation,
            model=exchange.budget_model or exchange.model,
            now=datetime.now(UTC),
        )
    except care.NoConversation:
        return None


def _find(exchange: Exchange, call: Care) -> str | None:
    """The conversation of a request that names none."""
    links = call.links or _links(exchange)
    if not links.near and not links.itself:
        return None
    caller = exchange.key_context.caller
    return find_conversation(project_id=caller.project.id, caller=caller.name, links=links)


def _links(exchange: Exchange) -> fingerprints.ChainLinks:
    """The traces of the request, by which its conversation is known."""
    assert exchange.request is not None
    return fingerprints.links_of(
        message_digest.turns_of(exchange.request.messages),
        reply=None,
        is_retry=exchange.options.is_retry,
    )


def _in_thread(question: Callable[[], T]) -> T:
    with thread_connection():
        commit_without_waiting()
        return question()


# --- what is sent


def _sending(
    exchange: Exchange,
    client: ClientFormat,
    history: History,
    beginning: Beginning,
    *,
    guide: str | None = None,
) -> Sending:
    """The request as it is sent; told to the exchange, whose record is of what was sent."""
    assert exchange.request is not None
    if not (beginning.entries or beginning.inserts or guide):
        exchange.sent_request = None
        exchange.body_bytes = len(history.body)
        exchange.images, exchange.image_bytes = message_digest.images_of(exchange.request)
        return Sending(body=history.body, parsed=history.parsed, request=exchange.request)
    steps = arrange(history.entries, beginning, guide=guide)
    body, parsed = rewritten(history.form, history.body, history.parsed, steps)
    route = exchange.route
    request = client.read_request(parsed, model=route.model, stream=route.stream)
    exchange.sent_request = request
    exchange.body_bytes = len(body)
    exchange.images, exchange.image_bytes = message_digest.images_of(request)
    return Sending(body=body, parsed=parsed, request=request)


def _bytes_of(history: History, beginning: Beginning) -> int:
    steps = arrange(history.entries, beginning)
    body, _ = rewritten(history.form, history.body, history.parsed, steps)
    return len(body)


def _spare(exchange: Exchange) -> int:
    """What a package takes that holds no reminders."""
    budget = exchange.budget
    return _PACKAGE_BYTES if budget is None else min(_PACKAGE_BYTES, package_bytes(budget))


def _is_too_long(exchange: Exchange, newest: care.Newest | None) -> bool:
    """Whether it is plain before sending that the request does not fit.

    By the conversation's own last reading, in the same round and by the same model, never by a
    guess at bytes per token: that would cost a conversation its beginning. In doubt the upstream
    tells. A request that the budget would refuse is refused by us, which is no better.
    """
    budget = exchange.budget
    if budget is None:
        return False
    mode = exchange.options.budget or exchange.key_context.caller.project.budget_mode
    if (
        mode == "enforce"
        and budgeting.estimate(
            text_bytes=exchange.text_bytes, images=exchange.images, budget=budget
        ).is_over
    ):
        return True
    cuts = exchange.endpoint is not None and exchange.endpoint.kind is ProviderKind.OLLAMA
    return _expected(exchange, newest) > _limit(exchange) * (1.0 if cuts else _PLAINLY)


def _expected(exchange: Exchange, newest: care.Newest | None) -> float:
    """The tokens of what is about to be sent, by the reading of the call before; 0: no reading."""
    if newest is None or newest.model != exchange.model:
        return 0.0
    return newest.prompt_tokens * exchange.text_bytes / newest.sent_bytes


def _limit(exchange: Exchange) -> float:
    """The model's own limit; without one nothing is too long."""
    budget = exchange.budget
    if budget is None or budget.limit_tokens is None:
        return inf
    return inf if budget.limit_source is LimitSource.BUDGET else float(budget.limit_tokens)


def _has(beginning: Beginning, text: str) -> bool:
    return any(text == known for _, known in beginning.inserts)


def _caller(exchange: Exchange) -> KnownWho:
    caller = exchange.key_context.caller
    return caller.project.id, caller.name


def _who(exchange: Exchange, call: Care) -> Who:
    caller = exchange.key_context.caller
    return caller.project.id, caller.name, call.named


def _concerned(exchange: Exchange, call: Care) -> Callable[[Capture], bool]:
    """Which calls may be this conversation's newest: those of its name, or of its caller."""
    name, caller = call.conversation, exchange.key_context.caller.name
    if name is not None:
        return lambda capture: capture.conversation in (name, None)
    return lambda capture: capture.caller == caller


def _look_at(asked: asyncio.Future[Any]) -> None:
    """Nobody may wait for it any more."""
    if not asked.cancelled() and asked.exception() is not None:
        log.debug("remediation could not ask the database", exc_info=asked.exception())
