"""Calls that name no conversation find theirs, or start one (rule chain-1 on the database)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.operations.demo import loading
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.inference import KEPT_GENERATIONS, conversation_name
from helmdash.operations.retention import expired
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.conversations import conversations
from helmdash.queries.conversations.timeline import timeline
from helmdash.records.models import Call, Conversation, ConversationMark, Project, Round
from tests.factories import NOW
from tests.recording import load
from tests.recording.chats import TASK, nameless
from tests.recording.support import CRITICAL, HEALTHY, at_once, make_ruled_project, record


def placed(project: ProjectInfo, *captures: Capture, caller: str = "owner") -> list[str]:
    """Record calls in one batch: how each was placed, and as which generation of its round."""
    answers = record(project, *captures, caller=caller)
    rows = dict(Call.objects.filter(project_id=project.id).values_list("name", "placed_by"))
    return [
        f"{rows[a.id].removeprefix('chain-1 ')} {a.round_number}.{a.generation}" for a in answers
    ]


def test_a_call_without_a_name_starts_a_conversation_named_after_it(project: ProjectInfo) -> None:
    (answer,) = record(project, nameless("hi", id="one"))

    assert answer.conversation == conversation_name("one")
    assert (answer.round_number, answer.generation) == (1, 1)
    row = Conversation.objects.get()
    assert (row.name, row.generation, row.level, row.model) == (
        answer.conversation,
        1,
        "healthy",
        "openai/gpt-4o",
    )
    assert Round.objects.get().first_generation == 1


def test_a_chat_goes_on_from_batch_to_batch_and_inside_one(project: ProjectInfo) -> None:
    first = nameless("hi", reply="Hello!")
    second = nameless("hi", "Hello!", "a", reply="A.")
    third = nameless("hi", "Hello!", "a", "A.", "b", reply="B.")
    fourth = nameless("hi", "Hello!", "a", "A.", "b", "B.", "c")

    assert placed(project, first) == ["new 1.1"]
    assert placed(project, second, third) == ["continue 1.2", "continue 1.3"]
    assert placed(project, fourth) == ["continue 1.4"]
    load.assert_numbered_without_gap_or_double(project.id)


def test_a_call_is_known_by_the_tool_call_whose_result_it_brings(project: ProjectInfo) -> None:
    def asks(called: str) -> Capture:
        capture = nameless("Hi", reply="Let me see. call look {}")
        assert capture.links is not None
        return replace(capture, links=replace(capture.links, called=called))

    def brings(*calls: str) -> Capture:
        capture = nameless("Hi", "call look {}", "result 7", reply=f"Seven by {calls}.")
        assert capture.links is not None
        return replace(capture, links=replace(capture.links, calls=calls))

    assert placed(project, asks("c1"), asks("c2")) == ["new 1.1", "new 1.1"]
    known = "called-tool-2 continue 1.2"

    # Of the same batch, of a later one; of another caller; of none; and once it has gone on.
    assert placed(project, asks("c3"), brings("c3")) == ["new 1.1", known]
    assert placed(project, brings("c1"), caller="other") == ["new 1.1"]
    assert placed(project, brings("c0", "c1")) == [known]
    assert placed(project, brings("c2")) == [known]
    assert placed(project, brings("c9")) == ["new 1.1"]


def test_short_replies_that_were_kept_go_on_or_open_a_round(project: ProjectInfo) -> None:
    def says_little(capture: Capture, *, run: str = "", calls: tuple[str, ...] = ()) -> Capture:
        assert capture.links is not None
        return replace(capture, links=replace(capture.links, run=run, calls=calls))

    chat = ("Go", "call look {}", "result 7")
    begun = nameless("Go", reply="call look {}")
    short = says_little(nameless(*chat, reply="ok"), run="c7")
    again = says_little(nameless("Late. Go", *chat[1:], "ok", "More", reply="so"), run="c8",
                        calls=("c1", "c7"))  # fmt: skip
    smaller = says_little(
        nameless("In short", "so", "On", usage={"prompt_tokens": 9_000}), calls=("c8",)
    )

    assert placed(project, begun, short) == ["new 1.1", "continue 1.2"]
    assert placed(project, again) == ["called-tool-2 continue 1.3"]
    assert placed(project, smaller) == ["called-tool-2 compaction 2.4"]
    assert Round.objects.get(number=2).opened_by == "compaction"


def test_a_named_call_stays_where_it_is_named(project: ProjectInfo) -> None:
    (answer,) = record(project, nameless("hi", conversation="talk"))

    assert answer.conversation == "talk"
    assert Call.objects.get().placed_by == "named"
    assert not ConversationMark.objects.exists()


def test_named_and_nameless_calls_start_conversations_in_one_batch(project: ProjectInfo) -> None:
    named = [nameless("hi", conversation=f"talk-{number}") for number in range(3)]
    others = [nameless("hi", reply=f"Hello {number}!") for number in range(3)]

    record(project, *(call for pair in zip(named, others, strict=True) for call in pair))

    assert Conversation.objects.count() == 6
    assert placed(project, nameless("hi", "Hello 1!", "a"), named[2]) == [
        "continue 1.2",
        "named 1.2",
    ]


def test_an_inferred_conversation_may_be_named_later(project: ProjectInfo) -> None:
    (first,) = record(project, nameless("hi", reply="Hello!"))
    going_on = nameless("hi", "Hello!", "a", reply="A.")
    named = nameless("something else", conversation=first.conversation)

    assert placed(project, going_on, named, nameless("hi")) == [
        "continue 1.2",
        "named 1.3",
        "new 1.1",
    ]
    # after the named call it is no longer the newest one
    assert placed(project, nameless("hi", "Hello!", "a", "A.", "b"), named) == [
        "branch 1.1",
        "named 1.4",
    ]
    load.assert_numbered_without_gap_or_double(project.id)


def test_a_retry_that_is_told_late_stays_in_its_conversation(project: ProjectInfo) -> None:
    record(project, nameless("hi", reply="Hello!"))
    record(project, nameless("hi", "Hello!", "a"))

    assert placed(project, nameless("hi", reply=None, is_retry=True)) == ["retry 1.3"]


def test_a_call_with_no_turns_has_no_conversation(project: ProjectInfo) -> None:
    (answer,) = record(project, nameless())

    assert answer.conversation is None
    assert Call.objects.get().placed_by == ""


def test_a_repeat_is_answered_with_the_first_place(project: ProjectInfo) -> None:
    call = nameless("hi", id="one")
    (first,) = record(project, call)

    again, twice = record(project, call, call)

    assert replace(again, duplicate=False) == first
    assert again.duplicate
    assert twice.duplicate
    assert Conversation.objects.count() == 1


def test_a_branch_remembers_where_it_came_off(project: ProjectInfo) -> None:
    record(project, nameless("hi", reply="Hello!", id="one"))
    record(project, nameless("hi", "Hello!", "a"))

    answers = placed(project, nameless("hi", "Hello!", "b", id="branch", metadata={"ticket": 7}))

    assert answers == ["branch 1.1"]
    found = calls.find(project_id=project.id, call_id="branch")
    assert found is not None
    assert found.metadata == {
        "ticket": 7,
        "branched_from": {"conversation": conversation_name("one"), "generation": 1},
    }
    assert found.call.placed_by == "chain-1 branch"


def test_the_same_words_of_two_callers_or_projects_are_two_chats(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other")
    record(project, nameless(TASK, reply="One."), caller="owner")
    going_on = partial(nameless, TASK, "One.", "go on")

    assert placed(project, going_on(), caller="somebody") == ["new 1.1"]
    assert placed(stranger, going_on(), caller="owner") == ["new 1.1"]
    # the caller that the capture names goes before the one who records it
    assert placed(project, going_on(caller="third")) == ["new 1.1"]
    assert placed(project, going_on(), caller="owner") == ["continue 1.2"]


def test_a_first_turn_that_everybody_sends_costs_no_more_with_every_chat(
    project: ProjectInfo,
) -> None:
    record(project, *(nameless("ping", reply="pong") for _ in range(4)))

    with CaptureQueriesContext(
        connection,
    ) as one:
        answers = placed(project, nameless("ping", "pong", "and?"))

    assert answers == ["continue 1.2"]
    assert len(one) < 25
    newest = Conversation.objects.order_by("-id").first()
    assert newest is not None
    assert newest.generation == 2


# --- compaction


def compacted(project: ProjectInfo, tokens: int) -> list[str]:
    """Three calls, and a fourth that keeps only the newest turns, with a prompt of that size."""
    said = [TASK, "The first one: no file at all. " * 4, "and the second?"]
    said += ["The second one: a file that is empty. " * 4, "and the third?", "The third one. " * 4]
    for count in (1, 3, 5):
        usage = {"prompt_tokens": CRITICAL}
        at = NOW + timedelta(minutes=count)
        capture = nameless(*said[:count], reply=said[count], usage=usage, started_at=at)
        record(project, capture, now=at)
    capture = nameless(
        "Much happened.",
        *said[3:],
        "fix them",
        id="compacted",
        usage={"prompt_tokens": tokens},
        started_at=NOW + timedelta(minutes=9),
    )
    return placed(project, capture)


def test_a_compaction_opens_a_round(project: ProjectInfo) -> None:
    assert compacted(project, HEALTHY) == ["compaction 2.4"]

    (row,) = Conversation.objects.all()
    assert (row.round_number, row.generation) == (2, 4)
    found = conversations.find(project_id=project.id, conversation_id=row.name)
    assert found is not None
    first, second = found.rounds
    assert (first.first_generation, first.latest_generation, first.opened_by) == (1, 3, "")
    assert first.peak_prompt_tokens == CRITICAL
    assert first.ended_at == second.started_at == NOW + timedelta(minutes=9)
    assert (second.first_generation, second.latest_generation) == (4, 4)
    assert (second.opened_by, second.ended_at) == ("client_compaction", None)
    assert second.peak_prompt_tokens == HEALTHY
    assert [point.round_number for point in found.curve] == [1, 1, 1, 2]
    events = timeline(project_id=project.id, conversation_id=row.name)
    assert events is not None
    assert [(item.generation, item.event) for item in events.items] == [
        (1, "call"),
        (2, "call"),
        (3, "call"),
        (4, "compaction"),
        (4, "call"),
    ]


def test_a_window_that_slides_opens_no_round(project: ProjectInfo) -> None:
    assert compacted(project, CRITICAL) == ["continue 1.4"]
    assert Round.objects.count() == 1


def long_chat(project: ProjectInfo, calls: int, **over: Any) -> list[str]:
    """A chat of so many calls, each of 1,000 tokens by its provider; gives all that was said."""
    said: list[str] = []
    for number in range(calls):
        said.append(f"question {number}, {TASK}")
        reply = f"reply {number}, {TASK}"
        record(project, sized(said, reply, **over))
        said.append(reply)
    return said


def sized(said: Sequence[str], reply: str, **over: Any) -> Capture:
    """A call of which a gateway saw the size, to a provider that reports what it likes."""
    size = sum(len(text) + 40 for text in said)
    return nameless(
        *said,
        reply=reply,
        sent=SentSizes(messages=len(said), bytes=size),
        **{"usage": {"prompt_tokens": 1_000}, **over},
    )


@pytest.mark.parametrize("usage", [{"prompt_tokens": 1_000}, None])
def test_a_compaction_is_told_by_what_was_sent_where_the_tokens_tell_nothing(
    project: ProjectInfo, usage: dict[str, int] | None
) -> None:
    said = long_chat(project, 8, usage=usage)
    own_summary = ["Summary by the client itself.", *said[-5:], "and now?"]

    assert placed(project, sized(own_summary, "So.", usage=usage)) == ["compaction 2.9"]
    going_on = sized([*own_summary, "So.", "thanks"], "Yes.", usage=usage)
    assert placed(project, going_on) == ["continue 2.10"]


def test_a_history_cut_to_its_last_turns_is_a_compaction(project: ProjectInfo) -> None:
    said = long_chat(project, 8)

    assert placed(project, sized([*said[-4:], "and now?"], "So.")) == ["compaction 2.9"]


def test_a_window_that_slides_on_stays_in_its_round(project: ProjectInfo) -> None:
    said = long_chat(project, 8)
    for number in range(4):
        said = [*said[2:], f"and {number}? {TASK}"]
        reply = f"So {number}. {TASK}"
        assert placed(project, sized(said, reply)) == [f"continue 1.{9 + number}"]
        said.append(reply)


def test_a_compaction_is_told_by_a_newest_call_of_the_same_batch(project: ProjectInfo) -> None:
    said = long_chat(project, 7)
    asked, reply = f"question 7, {TASK}", f"reply 7, {TASK}"
    newest = sized([*said, asked], reply)
    cut = sized([*said[-2:], asked, reply, "and now?"], "So.")

    assert placed(project, newest, cut) == ["continue 1.8", "compaction 2.9"]


def test_only_a_turn_with_its_beginning_lost_looks_at_the_newest_call(
    project: ProjectInfo,
) -> None:
    said = long_chat(project, 3)
    reply = f"So: {TASK}"
    going_on = sized([*said, "go on"], reply)
    slid = sized([*said[-2:], "go on", reply, "and now?"], "So.")

    looks = []
    for capture in (going_on, slid):
        with CaptureQueriesContext(connection) as asked:
            record(project, capture)
        sent = [query["sql"].partition(" FROM ")[0] for query in asked.captured_queries]
        looks.append(sum(sql.startswith("SELECT") and "sent_messages" in sql for sql in sent))

    assert looks == [0, 1]


def test_rounds_of_one_batch_are_those_of_single_calls(project: ProjectInfo) -> None:
    compacted(project, HEALTHY)
    compacted_again = nameless(
        "Much happened.",
        "The second one: a file that is empty. " * 4,
        "and the third?",
        "The third one. " * 4,
        "fix them",
        "Fine.",
        "thanks",
        usage={"prompt_tokens": HEALTHY + 1},
    )

    assert placed(project, compacted_again) == ["continue 2.5"]
    second = Round.objects.get(number=2)
    assert (second.latest_generation, second.peak_prompt_tokens) == (5, HEALTHY + 1)
    assert second.ended_at is None


# --- what marks cost


def test_a_long_conversation_keeps_a_bounded_number_of_marks(project: ProjectInfo) -> None:
    said: list[str] = []
    batch = []
    for number in range(150):
        batch.append(nameless(*said, f"question {number}, {TASK}", reply=f"reply {number}"))
        said += [f"question {number}, {TASK}", f"reply {number}"]
        if len(batch) == 10:
            record(project, *batch)
            batch = []

    assert Conversation.objects.get().generation == 150
    oldest = ConversationMark.objects.order_by("generation").first()
    assert oldest is not None
    assert oldest.generation >= 150 - KEPT_GENERATIONS - 32
    assert ConversationMark.objects.count() <= 3 * (KEPT_GENERATIONS + 32)


def test_marks_go_with_their_conversations(project: ProjectInfo) -> None:
    Project.objects.filter(pk=project.id).update(retention_days=30)
    kept = replace(project, retention_days=30)
    record(kept, nameless("hi", started_at=NOW - timedelta(days=60)), nameless("hi"))
    assert ConversationMark.objects.count() == 4

    expired.delete_expired(actor=SHELL, project=kept, now=NOW)

    assert ConversationMark.objects.count() == 2


def test_demo_data_goes_with_its_marks(project: ProjectInfo) -> None:
    shown = make_ruled_project(slug=loading.DEMO_SLUG, name="Demo", is_demo=True)
    record(shown, nameless("hi"))

    assert loading.remove_demo(actor=SHELL)
    assert not ConversationMark.objects.exists()


# --- the same, however it comes


def wander(seed: int, length: int = 50) -> list[Capture]:
    """Calls of several chats at once that go on, ask again, branch, compact and start anew."""
    choose = random.Random(seed)
    histories: list[list[str]] = []
    captures: list[Capture] = []
    for number in range(length):
        act = choose.random()
        if not histories or act < 0.25:
            request = [choose.choice(["hi", TASK])]
        else:
            history = choose.choice(histories[-4:])
            if act < 0.65:
                request = [*history, choose.choice(["go on", f"question {number}"])]
            elif act < 0.75:
                request = history[:-1]
            elif act < 0.83:
                request = [*history[: 2 * choose.randrange(len(history) // 2)], "no, this way"]
            else:
                longest = max(histories[-4:], key=len)
                request = ["What happened so far: much.", *longest[-3:], "and now?"]
        # Chats become alike by chance, as they do in life.
        reply = choose.choice(["Yes.", f"Always: {TASK}", *[f"Answer {number}: {TASK * 2}"] * 3])
        captures.append(
            nameless(
                *request,
                reply=reply,
                is_retry=choose.random() < 0.1,
                id=f"call-{number}",
                usage={"prompt_tokens": choose.choice([HEALTHY, CRITICAL])},
                sent=choose.choice([None, SentSizes(messages=len(request))]),
                started_at=NOW + timedelta(seconds=number),
            )
        )
        histories.append([*request, reply])
    return captures


# Walks with every kind of place in them.
@pytest.mark.parametrize("seed", [2, 3, 4, 6])
def test_a_batch_places_calls_as_one_by_one(project: ProjectInfo, seed: int) -> None:
    batched = make_ruled_project(slug="batched", name="Batched")
    captures = wander(seed)
    one_by_one = [record(project, capture)[0] for capture in captures]
    choose = random.Random(seed)
    together: list[Recorded] = []
    while len(together) < len(captures):
        size = choose.randrange(1, 16)
        together += record(batched, *captures[len(together) : len(together) + size])

    assert together == one_by_one
    for of in (project, batched):
        load.assert_numbered_without_gap_or_double(of.id)
    columns = ("name", "placed_by", "generation", "round_number")
    assert {row[1] for row in Call.objects.values_list(*columns)} == {
        f"chain-1 {how}" for how in ("new", "continue", "branch", "retry", "compaction")
    }
    assert stored(project, columns) == stored(batched, columns)
    assert rounds(project) == rounds(batched)


def stored(project: ProjectInfo, columns: Sequence[str]) -> list[tuple[object, ...]]:
    return list(Call.objects.filter(project_id=project.id).order_by("name").values_list(*columns))


def rounds(project: ProjectInfo) -> list[tuple[object, ...]]:
    rows = Round.objects.filter(project_id=project.id)
    return list(
        rows.order_by("conversation__name", "number").values_list(
            "conversation__name",
            "number",
            "first_generation",
            "latest_generation",
            "peak_prompt_tokens",
            "started_at",
            "ended_at",
            "opened_by",
        )
    )


@pytest.mark.django_db(transaction=True)
def test_writers_at_once_never_both_go_on_with_one_call(transactional_db: None) -> None:
    project = make_ruled_project()
    record(project, nameless(TASK, reply="One."))
    waiting = [nameless(TASK, "One.", f"way {number}") for number in range(8)]

    at_once([partial(record, project, capture) for capture in waiting])

    how = sorted(Call.objects.values_list("placed_by", flat=True))
    assert how == ["chain-1 branch"] * 7 + ["chain-1 continue", "chain-1 new"]
    load.assert_numbered_without_gap_or_double(project.id)


@pytest.mark.django_db(transaction=True)
def test_writers_at_once_that_sample_one_turn_share_its_conversation(
    transactional_db: None,
) -> None:
    project = make_ruled_project()
    record(project, nameless(TASK, reply="One."))
    same = [nameless(TASK, "One.", "go on", reply=f"Sample {n}") for n in range(8)]

    at_once([partial(record, project, capture) for capture in same])

    assert Conversation.objects.get().generation == 9
    load.assert_numbered_without_gap_or_double(project.id)
