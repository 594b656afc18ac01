"""Two calls or two plans beside each other: which figures differ, which words, which steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from helmdash.core.text.differences import Change, Part, differences
from helmdash.pages.parts import words
from helmdash.pages.parts.plans import StepRow
from helmdash.queries.calls.calls import CallDetail, CallView
from helmdash.queries.plans import PlanItem, PlanView

# What a page holds; messages that changed are near the end of a conversation.
_MOST_MESSAGES = 100
# So many are compared word by word, in some tenths of a second; others are told whole.
_MOST_COMPARED = 20
_MINUS = "\u2212"
# What is told in milliseconds.
_TIMES = frozenset({"Latency", "Time to first token"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing about both; None is not known. change: of two numbers that differ."""

    name: str
    before: object
    after: object

    @property
    def differs(self) -> bool:
        return self.before != self.after

    @property
    def is_time(self) -> bool:
        return self.name in _TIMES

    @property
    def change(self) -> int | None:
        if isinstance(self.before, int) and isinstance(self.after, int):
            return self.after - self.before or None
        return None

    @property
    def change_text(self) -> str | None:
        if self.change is None:
            return None
        if self.is_time:
            return f"{'+' if self.change > 0 else _MINUS}{words.seconds(abs(self.change))}"
        return words.signed(self.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePair:
    """A message of either call, or of both; role: who wrote it. same: how many messages stand here
    that are the same in both, and are not told; more: how many differ, and are not told."""

    role: str = ""
    parts: tuple[Part, ...] = ()
    same: int = 0
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """Steps beside each other; None: the other plan has none in its place."""

    before: StepRow | None
    after: StepRow | None

    @property
    def differs(self) -> bool:
        return (
            self.before is None
            or self.after is None
            or (self.before.tool, self.before.args) != (self.after.tool, self.after.args)
        )


def call_rows(before: CallView, after: CallView) -> tuple[Row, ...]:
    """The figures of two calls."""
    return tuple(
        Row(name=name, before=old, after=new)
        for (name, old), (_, new) in zip(_figures(before), _figures(after), strict=True)
    )


def line_rows(before: CallView, after: CallView) -> tuple[Row, ...]:
    """The lines that each was judged by, in tokens."""

    def lines(call: CallView) -> Iterator[tuple[str, object]]:
        yield "Level", call.health.level.value
        yield "Budget", call.budget_key or "(fallback)"
        yield "Caution above, tokens", call.health.optimal_max_tokens
        yield "Critical above, tokens", call.health.critical_max_tokens
        yield "Limit, tokens", call.health.limit_tokens

    return tuple(
        Row(name=name, before=old, after=new)
        for (name, old), (_, new) in zip(lines(before), lines(after), strict=True)
    )


def plan_rows(before: PlanItem, after: PlanItem) -> tuple[Row, ...]:
    """The facts of two plans."""

    def facts(plan: PlanItem) -> Iterator[tuple[str, object]]:
        yield "Outcome", plan.outcome
        yield "Cause", plan.cause
        yield "Model", plan.model
        yield "Prompt variant", plan.prompt_variant
        yield "Steps", plan.steps
        yield "Gaps", plan.gaps
        yield "Latency", plan.latency_ms
        yield "Catalog before, bytes", plan.before_bytes
        yield "Catalog as shown, bytes", plan.after_bytes

    return tuple(
        Row(name=name, before=old, after=new)
        for (name, old), (_, new) in zip(facts(before), facts(after), strict=True)
    )


def is_same_intent(before: PlanView, after: PlanView) -> bool:
    """Whether both asked for the same, by the hash that is always kept."""
    return before.item.intent_sha == after.item.intent_sha


def messages(before: CallDetail, after: CallDetail) -> tuple[MessagePair, ...] | None:
    """What was sent with one and not with the other, word by word; None: one of them keeps no
    texts."""
    if before.messages is None or after.messages is None:
        return None
    old, new = list(before.messages), list(after.messages)
    # Few messages are alike: their JSON stands for them.
    matcher = SequenceMatcher(a=[_key(each) for each in old], b=[_key(each) for each in new])
    found: list[MessagePair] = []
    for what, i, j, k, m in matcher.get_opcodes():
        if what == "equal":
            found.append(MessagePair(same=j - i))
        else:
            found += _changed(old[i:j], new[k:m], most=_MOST_COMPARED - len(found))
    if len(found) > _MOST_MESSAGES:
        found = [MessagePair(more=len(found) - _MOST_MESSAGES), *found[-_MOST_MESSAGES:]]
    return tuple(found)


def reply(before: CallDetail, after: CallDetail) -> tuple[Part, ...] | None:
    """What came back, word by word; None: one of them keeps no texts."""
    if before.content is None or after.content is None:
        return None
    return differences(before.content, after.content)


def steps(before: Sequence[StepRow], after: Sequence[StepRow]) -> tuple[StepPair, ...]:
    """The steps of two plans, those of the same entry beside each other."""
    found: list[StepPair] = []
    tools = [[each.tool for each in steps] for steps in (before, after)]
    for _, i, j, k, m in SequenceMatcher(a=tools[0], b=tools[1]).get_opcodes():
        for at in range(max(j - i, m - k)):
            old = before[i + at] if i + at < j else None
            new = after[k + at] if k + at < m else None
            found.append(StepPair(before=old, after=new))
    return tuple(found)


def _figures(call: CallView) -> Iterator[tuple[str, object]]:
    yield "Model", call.model
    yield "Purpose", call.purpose
    yield "Cause", call.cause.name.value if call.cause else None
    yield "Finish reason", call.finish_reason.value if call.finish_reason else None
    yield "Prompt, tokens", call.usage.prompt_tokens
    yield "of these read from cache", call.usage.cached_tokens
    yield "Output, tokens", call.usage.completion_tokens
    yield "Sent, bytes", call.sent.bytes
    yield "Messages", call.sent.messages
    yield "Tool schemas, bytes", call.sent.tools_bytes
    yield "Trimmed to, bytes", call.trim.after_bytes if call.trim else None
    yield "Latency", call.latency_ms
    yield "Time to first token", call.ttft_ms


def _changed(old: Sequence[object], new: Sequence[object], *, most: int) -> Iterator[MessagePair]:
    for at in range(max(len(old), len(new))):
        was = old[at] if at < len(old) else None
        now = new[at] if at < len(new) else None
        if at < most and was is not None and now is not None and _role(was) == _role(now):
            parts = differences(words.message_text(was), words.message_text(now))
            yield MessagePair(role=_role(was), parts=parts)
            continue
        if was is not None:
            text = words.message_text(was)
            yield MessagePair(role=_role(was), parts=(Part(Change.GONE, text),))
        if now is not None:
            text = words.message_text(now)
            yield MessagePair(role=_role(now), parts=(Part(Change.NEW, text),))


def _role(message: object) -> str:
    return str(message.get("role") or "message") if isinstance(message, dict) else "message"


def _key(message: object) -> str:
    return json.dumps(message, sort_keys=True)
