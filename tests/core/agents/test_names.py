"""Conversations by the names that agents give their sessions, and when their contexts change."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.agents.contexts import is_compacted, is_later
from helmdash.core.agents.names import agent_name, claude_session, foreign_name
from helmdash.core.calls.capture import CONVERSATION_CHARS, CONVERSATION_PATTERN

UUID = "28dacabc-3ac8-44af-87be-48d6d997c974"


@given(st.text(max_size=400), st.text(max_size=400))
def test_every_id_becomes_a_name_of_its_own(one: str, other: str) -> None:
    names = [foreign_name(text) for text in (one, other)]

    for text, name in zip((one, other), names, strict=True):
        assert (name is None) == (not text.strip())
        assert name is None or re.fullmatch(CONVERSATION_PATTERN, name)
        assert name is None or len(name) <= CONVERSATION_CHARS
    assert (names[0] == names[1]) == (one.strip() == other.strip() or names == [None, None])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (UUID, UUID),
        ("ses_df86:sub", "ses_df86:sub"),
        ("a/b c", "a=2Fb=20c"),
        ("a=2Fb", "a=3D2Fb"),  # not the name of a/b
        ("..", "=2E."),
        ("Zürich", "Z=C3=BCrich"),
    ],
)
def test_what_a_name_cannot_hold_is_written_out(text: str, name: str) -> None:
    assert foreign_name(text) == name


def test_a_sub_agent_has_a_name_beside_its_session() -> None:
    assert (agent_name("s1", None), agent_name("s1", "a2")) == ("s1", "s1:a2")


@pytest.mark.parametrize(
    ("user_id", "session"),
    [
        (f'{{"device_id":"0","account_uuid":"","session_id":"{UUID}"}}', UUID),
        (f"user_{'0' * 64}_account__session_{UUID}", UUID),
        (f"user_0_account_{UUID}_session_{UUID}", UUID),
        ("somebody", None),
        (f"somebody_session_{UUID}", None),
        ('{"session_id":7}', None),
        ("{" * 3000, None),
        (None, None),
        (7, None),
    ],
)
def test_the_session_in_the_metadata_of_claude_code(user_id: object, session: str | None) -> None:
    assert claude_session(user_id) == session


@pytest.mark.parametrize(
    ("known", "told", "is_new"),
    [
        ("0", "0", False),
        ("0", "1", True),
        ("9", "10", True),
        ("1", "0", False),  # a late report, or a person who went back
        ("0", "5f1c", True),
        ("5f1c", "5f1c", False),
        ("5f1c", "77aa", True),
        ("5f1c", "0", False),  # went back to before the compaction
        ("5f1c", "1", False),  # the same compaction, told by another door
        ("1", "5f1c", False),
    ],
)
def test_a_context_comes_after_another(known: str, told: str, is_new: bool) -> None:
    assert is_later(known, told) is is_new


@pytest.mark.parametrize(
    ("known", "told", "before", "now", "asked", "expected"),
    [
        ("0", "1", 100, 100, False, True),  # a name is enough
        ("1", "1", 100, 10, True, False),  # and says when there was none
        (None, "1", 100, 10, False, False),  # the first that is told is not a change
        (None, None, 100, 10, True, True),
        (None, None, 100, 90, True, False),  # asked for, and not used
        (None, None, None, 10, True, False),
        (None, None, 100, None, True, False),
    ],
)
def test_a_compaction_is_told_or_shows(
    known: str | None,
    told: str | None,
    before: int | None,
    now: int | None,
    asked: bool,
    expected: bool,
) -> None:
    found = is_compacted(known=known, told=told, before=before, now=now, has_asked=lambda: asked)

    assert found is expected
