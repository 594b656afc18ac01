"""A load of many writers: what each sends, and what must be true of the rows afterwards."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Count, Max, Min

from helmdash.records.models import Call, Conversation, HealthChange, Round

# Few, so that writers meet in them all the time.
CONVERSATIONS = 12
LARGEST_BATCH = 30
REPEATED_SHARE = 0.1


def shares(*, calls: int, writers: int, seed: int = 1) -> list[list[list[dict[str, Any]]]]:
    """For each writer its requests, each one call or a batch, as the bodies of `POST /calls`.

    A tenth of all calls are repeats of an id that is sent elsewhere, by this writer or another.
    """
    chance = random.Random(seed)
    repeats = int(calls * REPEATED_SHARE)
    names = [f"load-{number}" for number in range(calls - repeats)]
    names += chance.choices(names, k=repeats)
    chance.shuffle(names)
    per_writer = [names[start::writers] for start in range(writers)]
    return [list(_requests(chance, share)) for share in per_writer]


def _requests(chance: random.Random, names: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    left = list(names)
    while left:
        size = 1 if chance.random() < 0.6 else chance.randint(2, LARGEST_BATCH)
        yield [call(name) for name in left[:size]]
        del left[:size]


def call(name: str) -> dict[str, Any]:
    """The same body for the same id, whoever sends it."""
    chance = random.Random(name)
    number = chance.randrange(CONVERSATIONS + 1)
    tokens = chance.choice([20_000, 100_001, 115_201, None])
    return {
        "id": name,
        "conversation": f"talk-{number}" if number < CONVERSATIONS else None,
        "model": "openai/gpt-4o",
        "usage": {"prompt_tokens": tokens} if tokens else None,
        "finish_reason": "stop",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": name}],
    }


def ids(requests: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """All ids of one writer, repeats included."""
    return [call["id"] for request in requests for call in request]


def assert_numbered_without_gap_or_double(project_id: int) -> None:
    """Every conversation's generations are 1..n, and every row beside them agrees."""
    counted = (
        Call.objects.filter(project_id=project_id, conversation__isnull=False)
        .values_list("conversation_id")
        .annotate(
            rows=Count("id"),
            different=Count("generation", distinct=True),
            first=Min("generation"),
            last=Max("generation"),
        )
        .order_by()
    )
    by_conversation = {key: rest for key, *rest in counted}
    for row in Conversation.objects.filter(project_id=project_id):
        n = row.generation
        assert by_conversation.pop(row.pk) == [n, n, 1, n], row.name
        _assert_rounds_share_the_generations(row)
        newest = Call.objects.get(conversation=row, generation=n)
        assert (row.level, row.prompt_tokens) == (newest.level, newest.prompt_tokens)
        _assert_changes_tell_the_levels(row)
    assert not by_conversation


def _assert_rounds_share_the_generations(row: Conversation) -> None:
    """Each round goes from where the one before it ended; only the newest one is open."""
    rounds = list(Round.objects.filter(conversation=row).order_by("number"))
    assert [each.number for each in rounds] == list(range(1, row.round_number + 1)), row.name
    starts = [each.first_generation for each in rounds]
    ends = [each.latest_generation for each in rounds]
    assert starts == [1, *(end + 1 for end in ends[:-1])], row.name
    assert ends[-1] == row.generation, row.name
    for each in rounds:
        assert (each.ended_at is None) == (each is rounds[-1])
        calls = Call.objects.filter(conversation=row, round_number=each.number)
        assert calls.count() == each.latest_generation - each.first_generation + 1, row.name


def _assert_changes_tell_the_levels(row: Conversation) -> None:
    levels = dict(Call.objects.filter(conversation=row).values_list("generation", "level"))
    changes = HealthChange.objects.filter(conversation=row)
    told = {change.generation: (change.from_level, change.to_level) for change in changes}
    expected, before = {}, ""
    for generation in sorted(number for number in levels if number is not None):
        if levels[generation] != before:
            expected[generation] = (before, levels[generation])
        before = levels[generation]
    assert told == expected, row.name


def assert_each_answered_once_as_new(answers: Sequence[tuple[str, bool]]) -> None:
    """Of all answers to an id, exactly one says that it was not a repeat."""
    new = Counter(name for name, is_duplicate in answers if not is_duplicate)
    assert set(new.values()) == {1}
    assert set(new) == {name for name, _ in answers}
