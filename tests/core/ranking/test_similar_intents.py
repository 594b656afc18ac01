from __future__ import annotations

import hashlib

import pytest

from helmdash.core.ranking.history import PastPlan, similar, similar_to_sketch, sketch_of

INTENTS = [
    "publish a blog post about the launch",
    "scrape the weather every hour",
    "publish the blog post about prices",
    "publish a blog post about the launch",
]


def hash_word(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()[:10]


def sketched(*intents: str) -> list[PastPlan]:
    return [PastPlan(intent="", tools=(), sketch=sketch_of(each, hash_word)) for each in intents]


def test_a_sketch_finds_what_its_text_finds() -> None:
    asked = "publish a blog post about our launch"
    by_text = similar([PastPlan(intent=each, tools=()) for each in INTENTS], asked)

    assert similar_to_sketch(sketched(*INTENTS), sketch_of(asked, hash_word)) == by_text
    assert similar(sketched(*INTENTS), asked, hash_word) == by_text
    # The nearest first, the newer one of two as near first; what shares no word is not near.
    assert [at for at, _ in by_text] == [3, 0, 2]


def test_the_same_intent_is_as_near_as_can_be() -> None:
    found = similar_to_sketch(sketched(*INTENTS), sketch_of(INTENTS[0], hash_word), limit=1)

    assert found == ((3, 1.0),)


@pytest.mark.parametrize(
    ("history", "sketch"),
    [
        # nothing to compare with
        ([], (("blog",),)),
        # nothing to compare
        (sketched(*INTENTS), ()),
        # plans without a word
        (sketched("", "!"), (("blog",),)),
    ],
)
def test_nothing_is_like_nothing(
    history: list[PastPlan], sketch: tuple[tuple[str, ...], ...]
) -> None:
    assert similar_to_sketch(history, sketch) == ()
