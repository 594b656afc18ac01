from __future__ import annotations

import pytest

from helmdash.core.ranking.learning import LEARNED_KEYS, learned_inputs


@pytest.mark.parametrize(
    ("args", "learned"),
    [
        # a preference, and the task at hand
        ({"persona": "engineer", "text": "a long draft"}, {"persona": "engineer"}),
        # spaces around it are not part of it
        ({"theme": " dark "}, {"theme": "dark"}),
        # nothing said
        ({"theme": "", "voice": "  "}, {}),
        # not a word
        ({"theme": 3, "voice": None, "format": ["pdf"], "kind": True}, {}),
        # the longest preference, and a text under such a name
        ({"title": "t" * 120, "audience": "a" * 121}, {"title": "t" * 120}),
        # keys are exact
        ({"Persona": "engineer"}, {}),
        ({}, {}),
    ],
)
def test_only_preferences_are_learned(args: dict[str, object], learned: dict[str, str]) -> None:
    assert learned_inputs(args) == learned


def test_every_key_of_the_seed_is_learned() -> None:
    assert learned_inputs(dict.fromkeys(LEARNED_KEYS, "x")) == dict.fromkeys(LEARNED_KEYS, "x")
    assert len(LEARNED_KEYS) == 11
