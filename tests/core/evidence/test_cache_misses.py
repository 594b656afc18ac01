"""Why a provider's cache did not have the beginning of a prompt: what changed first, told by what
both calls tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.calls.tool_schemas import offered_tools
from helmdash.core.evidence.cache_misses import (
    CachedCall,
    ChangedTools,
    MissCause,
    find_cache_miss,
)
from helmdash.core.evidence.net_value import Prompt
from tests.factories import NOW

SYSTEM, USER, REPLY, MORE = "s", "u", "r", "m"
BEFORE = CachedCall(
    id="before",
    model_key="m-1",
    upstream_model="m-1-2026-05-01",
    provider="one",
    round_number=1,
    prompt=Prompt(tokens=50_000, cached=40_000, written=None),
    started_at=NOW,
    latency_ms=8_000,
    sent_bytes=None,
    estimate_tokens=None,
    tools_bytes=8_000,
    offered=offered_tools([("Read", 5_000), ("Bash", 3_000)]),
    system_bytes=2_000,
    sent_messages=2,
    messages=(SYSTEM, USER),
)
# A call that carries it on, whose prompt was read from no cache at all.
AFTER = replace(
    BEFORE,
    id="after",
    prompt=Prompt(tokens=51_000, cached=0, written=None),
    started_at=NOW + timedelta(seconds=20),
    latency_ms=5_000,
    sent_messages=4,
    messages=(SYSTEM, USER, REPLY, MORE),
)


def read(cached: int | None, tokens: int | None = 51_000) -> dict[str, Any]:
    return {"prompt": Prompt(tokens=tokens, cached=cached, written=None)}


def later(seconds: float) -> dict[str, Any]:
    return {"started_at": NOW + timedelta(seconds=seconds)}


# What goes on from what its provider keeps: no tokens are estimated by its bytes.
PART = {"sent_bytes": 90}
NO_TEXTS: dict[str, Any] = {"messages": None}
HELD_NONE = {"prompt": Prompt(tokens=50_000, cached=0, written=0)}

# what differs of the call before, and of the call; the cause
CAUSES: list[tuple[dict[str, Any], dict[str, Any], MissCause]] = [
    ({}, {}, MissCause.UNKNOWN),
    ({}, later(301), MissCause.MAY_HAVE_EXPIRED),
    ({}, later(300), MissCause.UNKNOWN),
    ({}, {"model_key": "m-2"}, MissCause.MODEL_CHANGED),
    ({}, {"upstream_model": "m-1-2026-08-01"}, MissCause.MODEL_CHANGED),
    ({}, {"provider": "two"}, MissCause.MODEL_CHANGED),
    # Who reports a call need not know.
    ({}, {"provider": None}, MissCause.UNKNOWN),
    ({}, {"round_number": 2, **later(900)}, MissCause.FRESH_START),
    # By its schemas, or by their bytes alone.
    ({}, {"offered": offered_tools([("Read", 5_000)])}, MissCause.TOOLS_CHANGED),
    ({"offered": None}, {"tools_bytes": 8_001}, MissCause.TOOLS_CHANGED),
    ({"tools_bytes": None}, {"offered": None}, MissCause.UNKNOWN),
    # What comes first in the prompt, whatever else is true.
    ({}, {"tools_bytes": 1, "system_bytes": 1, **later(900)}, MissCause.TOOLS_CHANGED),
    ({}, {"system_bytes": 1, "messages": ("x", USER)}, MissCause.SYSTEM_CHANGED),
    # As long as before: a date, say. The texts tell.
    ({}, {"messages": ("x", USER, REPLY, MORE)}, MissCause.SYSTEM_CHANGED),
    ({"system_bytes": 0}, {"system_bytes": 0, "messages": ("x", USER)},
     MissCause.MESSAGES_CHANGED),
    ({}, {"messages": (SYSTEM, "x", REPLY, MORE), **read(9_000)}, MissCause.MESSAGES_CHANGED),
    # Nothing was read, not even of what stands before it: that is not why, if there is another why.
    ({}, {"messages": (SYSTEM, "x", REPLY, MORE), **later(900)}, MissCause.MAY_HAVE_EXPIRED),
    ({}, {"messages": (SYSTEM, "x", REPLY, MORE)}, MissCause.MESSAGES_CHANGED),
    (HELD_NONE, {"messages": (SYSTEM, "x")}, MissCause.NOTHING_HELD),
    (HELD_NONE, {}, MissCause.NOTHING_HELD),
    # Without texts: fewer messages are no longer the same ones.
    (NO_TEXTS, {**NO_TEXTS, "sent_messages": 1, **read(9_000)}, MissCause.MESSAGES_CHANGED),
    (NO_TEXTS, {**NO_TEXTS, "sent_messages": None}, MissCause.UNKNOWN),
    # What it did not send its provider has kept, with the beginning of the prompt.
    ({}, {**PART, "messages": ("x",), "sent_messages": 1, "system_bytes": 0,
          "tools_bytes": 0, "offered": None}, MissCause.UNKNOWN),
    ({**PART, "messages": ("x",), "sent_messages": 1}, {}, MissCause.UNKNOWN),
    (NO_TEXTS, {**NO_TEXTS, **PART, "sent_messages": 1, **read(9_000)},
     MissCause.UNKNOWN),
    ({}, {**PART, "messages": ("x",), **later(900)}, MissCause.MAY_HAVE_EXPIRED),
    # A system message behind the others: the prompt begins as it did.
    ({}, {"system_bytes": 2_008}, MissCause.UNKNOWN),
    (NO_TEXTS, {**NO_TEXTS, "system_bytes": 2_008}, MissCause.SYSTEM_CHANGED),
    ({}, later(7.9), MissCause.OVERLAPPED),
    ({"latency_ms": None}, later(7.9), MissCause.UNKNOWN),
    ({"prompt": Prompt(tokens=1_023, cached=0, written=None)}, {}, MissCause.TOO_SHORT),
    ({}, read(0, 1_023), MissCause.TOO_SHORT),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "cause"), CAUSES)
def test_what_changed_first_is_why(
    before: dict[str, Any], after: dict[str, Any], cause: MissCause
) -> None:
    found = find_cache_miss(replace(BEFORE, **before), replace(AFTER, **after))

    assert found is not None
    assert found.cause is cause


# what was reported of the two prompts; the tokens that were missed, of how many
MISSED = [
    ((50_000, 0), (51_000, 0), (50_000, 50_000)),
    # A cache can have no more than the call sends.
    ((50_000, 0), (30_000, 9_000), (21_000, 30_000)),
    ((50_000, None), (51_000, 0), (50_000, 50_000)),
    # Nearly all: providers cache in steps, and not to the last token.
    ((50_000, 0), (51_000, 45_001), None),
    ((50_000, 0), (51_000, 45_000), (5_000, 50_000)),
    ((1_500, 0), (1_600, 1_245), None),
    ((1_500, 0), (1_600, 1_244), (256, 1_500)),
    ((50_000, 0), (51_000, 51_000), None),
    # One of them does not tell: unknown is not nothing.
    ((50_000, 0), (51_000, None), None),
    ((None, None), (51_000, 0), None),
    ((50_000, 0), (None, None), None),
]


@pytest.mark.parametrize(("before", "after", "expected"), MISSED)
def test_a_miss_is_what_the_call_before_had_sent(
    before: tuple[int | None, int | None],
    after: tuple[int | None, int | None],
    expected: tuple[int, int] | None,
) -> None:
    old, new = (
        replace(call, prompt=Prompt(tokens=tokens, cached=cached, written=None))
        for call, (tokens, cached) in ((BEFORE, before), (AFTER, after))
    )
    found = find_cache_miss(old, new)

    assert (found and (found.missed_tokens, found.readable_tokens)) == expected


# tools before and now; added, removed, changed
TOOLS: list[tuple[dict[str, int], dict[str, int], tuple[tuple[str, ...], ...] | None]] = [
    ({"a": 1}, {"a": 1}, None),
    ({"a": 1, "b": 2}, {"a": 3, "c": 2}, (("c",), ("b",), ("a",))),
    ({"a": 1}, {"a": 1, **{f"n{n}": 9 - n for n in range(7)}},
     (("n0", "n1", "n2", "n3", "n4"), (), ())),
    # The smallest of many are not kept, so that none of them is said to be gone, or new.
    ({f"n{n}": 99 - n for n in range(50)}, {f"n{n}": 99 - n for n in range(1, 50)},
     ((), (), ())),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "expected"), TOOLS)
def test_which_tools_changed_is_told_by_name(
    before: dict[str, int], now: dict[str, int], expected: tuple[tuple[str, ...], ...] | None
) -> None:
    found = find_cache_miss(
        replace(BEFORE, offered=offered_tools(before.items())),
        replace(AFTER, offered=offered_tools(now.items())),
    )

    assert found is not None
    told = found.tools
    if expected is None or not any(expected):
        assert told is None
    else:
        assert told == ChangedTools(added=expected[0], removed=expected[1], changed=expected[2])


@pytest.mark.parametrize(
    ("messages", "same"),
    [((SYSTEM, USER, REPLY), 2), ((SYSTEM, "x"), 1), (("x",), 0), ((), 0), (None, None)],
)
def test_how_many_messages_both_begin_with(
    messages: tuple[str, ...] | None, same: int | None
) -> None:
    found = find_cache_miss(BEFORE, replace(AFTER, messages=messages))

    assert found is not None
    assert found.same_messages == same
    assert (found.before, found.seconds_since) == ("before", 20.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, later(-1)), ({"round_number": None}, {}), ({}, {"round_number": None})],
)
def test_a_call_that_is_told_late_is_not_held_against_others(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert find_cache_miss(replace(BEFORE, **before), replace(AFTER, **after)) is None
