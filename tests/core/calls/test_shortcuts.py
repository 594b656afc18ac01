"""What recording tells at a glance is what it would have found out by asking everything."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls import facts, usage
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.usage import Usage, normalise_usage
from helmdash.core.text.messages import canonical_bytes, canonical_hashes, message_hash

COUNTS = st.one_of(
    st.integers(-1, 5), st.just(2**53), st.just(2**53 + 1), st.booleans(), st.just(3.0), st.none()
)
CAPTURES = st.builds(
    Capture,
    model=st.just("m"),
    purpose=st.sampled_from(["chat", "Plan ", "route"]),
    status=st.sampled_from([None, "success", "error", "cancelled"]),
    http_status=st.sampled_from([None, 200, 204, 302, 429, 500]),
    error_code=st.sampled_from([None, "", "overloaded"]),
    error_message=st.sampled_from([None, "", "no"]),
    response_format=st.sampled_from([None, "text", "json_object"]),
    decoded=st.sampled_from([None, True, False]),
    unusable=st.sampled_from([None, "of no use"]),
    raw_content_len=st.sampled_from([None, 0, 7]),
    content=st.sampled_from([None, "", "  ", "yes", "<think>so", "<think>a</think>b", "{}"]),
)


@given(raw=st.fixed_dictionaries(dict.fromkeys(sorted(usage._PLAIN_NAMES), COUNTS)))
@settings(max_examples=300)
def test_three_counts_are_read_as_any_report_is(raw: dict[str, Any]) -> None:
    # A name that says nothing keeps the report from being a plain one.
    assert normalise_usage(raw) == normalise_usage({**raw, "note": None})


def test_a_report_of_three_counts_is_plain() -> None:
    raw = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}

    assert usage._plain(raw) == Usage(prompt_tokens=3, completion_tokens=0, total_tokens=3)


@given(capture=CAPTURES, finish=st.sampled_from([None, *FinishReason]))
@settings(max_examples=500)
def test_what_is_sound_at_a_glance_is_sound_by_its_facts(
    capture: Capture, finish: FinishReason | None
) -> None:
    if facts.is_plainly_sound(capture, finish):
        assert facts.is_sound(facts.gather_facts(capture, Usage(), finish))


def test_a_plain_reply_is_sound_at_a_glance() -> None:
    assert facts.is_plainly_sound(Capture(model="m", content="yes"), FinishReason.STOP)


@given(history=st.lists(st.fixed_dictionaries({"content": st.text(max_size=5)}), max_size=5))
def test_a_history_is_hashed_as_its_messages_are_one_by_one(history: list[dict[str, str]]) -> None:
    one_by_one: list[str] = []
    for message in history:
        one_by_one.append(message_hash(message, one_by_one[-1] if one_by_one else None))

    assert canonical_hashes(map(canonical_bytes, history)) == one_by_one
