"""Rule chain-1: which conversation a request belongs to when nobody names one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.conversations.called_tools import call_fingerprint
from helmdash.core.conversations.chains import Seen, Size, is_fresh_start, place
from helmdash.core.conversations.fingerprints import (
    ChainLinks,
    ChatTraces,
    ChatTurn,
    fingerprints_of,
    links_of,
)

# Long enough to tell one chat from another by itself.
TASK = (
    "Please look through the repository, find the function that reads the configuration file, "
    "and tell me which of its branches no test ever reaches."
)
SUMMARY = (
    "The user maintains a parser for invoices and wants it to accept amounts with a comma.\n"
    "We found that amounts are read in parse_amount and that only dots were ever allowed there, "
    "so the tests were extended first.\n"
    "Still to do: the importer for last year's files."
)
ASK_FOR_SUMMARY = "Summarize our conversation so far, so that we can go on with less."


def turns(*texts: str, system: str = "") -> list[ChatTurn]:
    """A request: texts of user and assistant in turn, under a system prompt."""
    said = [
        ChatTurn(role="assistant" if number % 2 else "user", text=text)
        for number, text in enumerate(texts)
    ]
    return [ChatTurn(role="system", text=system), *said] if system else said


class Book:
    """The fingerprints of one caller's conversations: what the database keeps, without it."""

    def __init__(self) -> None:
        self._fingerprints: dict[str, dict[int, int]] = {}
        self._newest: dict[int, int] = {}
        self._taken: list[ChainLinks] = []

    def take(
        self,
        request: Sequence[ChatTurn],
        reply: str | None = "",
        *,
        is_retry: bool = False,
        called: str = "",
        calls: tuple[str, ...] = (),
        history: Sequence[str] = (),
    ) -> str:
        """Record a call: how it was placed, in which conversation, as which generation.

        history: ids of the tool calls of the assistant's turns, the newest first."""
        answer = None if reply is None else ChatTurn(role="assistant", text=reply or "Fine.")
        traces = ChatTraces(
            request, calls=calls, called=lambda: [(each, "look") for each in history]
        )
        links = traces.links(reply=answer, is_retry=is_retry, called=called)
        found = place(links, self._look)
        # Where nothing that waits to be stored is of this request's, nobody waits for it.
        is_near = any(map(self._look, links.near))
        may_go_on = any(links.may_go_on_from(taken, is_near=is_near) for taken in self._taken)
        assert may_go_on or found.conversation is None
        self._taken.append(links)
        is_new = found.conversation is None or found.placing == "branch"
        number = len(self._newest) + 1 if is_new else found.conversation
        assert number is not None
        generation = self._newest[number] = self._newest.get(number, 0) + 1
        fingerprints = fingerprints_of(links, generation)
        assert len(fingerprints) <= (4 if called else 3)
        for fingerprint in fingerprints:
            self._fingerprints.setdefault(fingerprint, {})[number] = generation
        return f"{found.placing} {number}.{generation}"

    def _look(self, fingerprint: str) -> list[Seen]:
        left = self._fingerprints.get(fingerprint, {})
        return [
            Seen(conversation=number, generation=left[number], newest=self._newest[number])
            for number in sorted(left, reverse=True)
        ]


# --- going on


def test_where_the_newest_reply_is_known_no_older_trace_is_waited_for() -> None:
    look, page = "call read {} " * 20, "page " * 50
    asked = [turns("Read the files of " + what * 30, look, page) for what in ("one ", "two ")]
    answer = ChatTurn("assistant", look)
    links = links_of([*asked[0], answer, ChatTurn("user", page)], reply=None, is_retry=False)
    before, beside = (links_of(request, reply=answer, is_retry=False) for request in asked)

    assert links.may_go_on_from(beside)
    assert not links.may_go_on_from(beside, is_near=True)
    assert links.may_go_on_from(before, is_near=True)


def test_a_chat_goes_on_with_each_reply() -> None:
    book = Book()

    assert book.take(turns("hi"), "Hello!") == "new 1.1"
    assert book.take(turns("hi", "Hello!", "who are you?"), "A model.") == "continue 1.2"
    assert book.take(turns("hi", "Hello!", "who are you?", "A model.", "ok")) == "continue 1.3"


def test_a_system_prompt_with_the_time_in_it_does_not_matter() -> None:
    book = Book()
    book.take(turns("hi", system="It is Monday."), "Hello!")

    assert book.take(turns("hi", "Hello!", "go on", system="It is Tuesday.")) == "continue 1.2"


def test_developer_turns_are_system_turns_and_gemini_calls_the_assistant_a_model() -> None:
    book = Book()
    book.take(
        [ChatTurn(role="developer", text="Be brief."), ChatTurn(role="user", text="hi")], "Hello!"
    )

    request = [
        ChatTurn(role="user", text="hi"),
        ChatTurn(role="model", text="Hello!"),
        ChatTurn(role="user", text="go on"),
    ]
    assert book.take(request) == "continue 1.2"


def test_tools_are_called_and_answered_within_one_conversation() -> None:
    book = Book()
    call = ChatTurn(role="assistant", text='read_file {"path":"a.py"}')
    results = [
        ChatTurn(role="tool", text="import os"),
        ChatTurn(role="tool", text="[image b2:51aa]"),
    ]
    book.take(turns("fix it"), call.text)

    request = [*turns("fix it"), call, *results]
    assert book.take(request, "Done.") == "continue 1.2"
    done = ChatTurn(role="assistant", text="Done.")
    assert book.take([*request, done, ChatTurn(role="user", text="thanks")]) == "continue 1.3"


@pytest.mark.parametrize(
    "sent_back",
    [
        "Forty-two.",
        "  Forty-two.\n",  # trimmed, as Anthropic wants it of the last turn
        "<think>Six times seven.</think>Forty-two.",  # or with what it thought
    ],
)
def test_a_client_may_drop_reasoning_and_space(sent_back: str) -> None:
    book = Book()
    book.take(turns("6 x 7?"), "<think>Six times seven.</think>\n\nForty-two.")

    assert book.take(turns("6 x 7?", sent_back, "sure?")) == "continue 1.2"


def test_a_reply_that_was_cut_off_or_changed_still_goes_on() -> None:
    book = Book()
    book.take(turns(TASK), "There are three branches: the first")

    assert book.take(turns(TASK, "There are three", "go on")) == "continue 1.2"


def test_a_call_that_another_way_took_may_be_missing_in_between() -> None:
    book = Book()
    book.take(turns("hi"), "Hello!")

    assert book.take(turns("hi", "Hello!", "a", "b", "c")) == "continue 1.2"


def test_a_call_that_failed_may_be_followed_by_its_retry() -> None:
    book = Book()
    book.take(turns("hi"), None)

    assert book.take(turns("hi"), "Hello!", is_retry=True) == "retry 1.2"
    assert book.take(turns("hi", "Hello!", "go on")) == "continue 1.3"


# --- the same request again


def test_a_first_turn_that_looks_the_same_is_a_new_chat() -> None:
    book = Book()

    assert [book.take(turns(TASK)) for _ in range(3)] == ["new 1.1", "new 2.1", "new 3.1"]


def test_a_regenerated_reply_stays_in_its_conversation() -> None:
    book = Book()
    book.take(turns("hi"), "Hello!")
    request = turns("hi", "Hello!", "tell a joke")
    book.take(request, "A bad one.")

    assert book.take(request, "A better one.") == "retry 1.3"
    assert book.take([*request, *turns("", "A bad one.", "ha")[1:]]) == "continue 1.4"


def test_several_samples_of_a_turn_at_once_are_one_conversation() -> None:
    book = Book()
    book.take(turns("hi"), "Hello!")
    request = turns("hi", "Hello!", "name a color")

    placed = [book.take(request, color) for color in ("Red.", "Green.", "Blue.")]
    assert placed == ["continue 1.2", "retry 1.3", "retry 1.4"]
    chosen = turns("hi", "Hello!", "name a color", "Green.", "why?")
    assert book.take(chosen) == "continue 1.5"


def test_examples_and_the_same_question_again_are_two_chats() -> None:
    book = Book()
    request = turns("2 + 2?", "4", "3 + 5?", "8", TASK)

    assert [book.take(request), book.take(request)] == ["new 1.1", "new 2.1"]


# --- branches


def test_an_older_message_written_anew_is_a_branch() -> None:
    book = Book()
    book.take(turns("hi"), "Hello!")
    book.take(turns("hi", "Hello!", "a"), "A.")
    book.take(turns("hi", "Hello!", "a", "A.", "b"), "B.")

    assert book.take(turns("hi", "Hello!", "a", "A.", "c"), "C.") == "branch 2.1"
    # both go on
    assert book.take(turns("hi", "Hello!", "a", "A.", "c", "C.", "d")) == "continue 2.2"
    assert book.take(turns("hi", "Hello!", "a", "A.", "b", "B.", "d")) == "continue 1.4"


def test_an_older_turn_asked_again_is_a_branch() -> None:
    book = Book()
    book.take(turns("hi"), "Hello!")
    book.take(turns("hi", "Hello!", "a"), "A.")
    book.take(turns("hi", "Hello!", "a", "A.", "b"), "B.")

    assert book.take(turns("hi", "Hello!", "a"), "Another A.") == "branch 2.1"
    assert book.take(turns("hi", "Hello!", "a"), "A third A.") == "retry 2.2"


def test_of_different_next_turns_at_once_the_first_goes_on_and_the_others_branch() -> None:
    book = Book()
    book.take(turns(TASK), "I will ask three others.")

    placed = [book.take(turns(TASK, "I will ask three others.", who)) for who in "abc"]
    assert placed == ["continue 1.2", "branch 2.1", "branch 3.1"]


# --- chats that begin alike


def test_a_hundred_chats_with_one_preamble_stay_apart() -> None:
    book = Book()
    preamble = ("Classify: 'I love it'", "positive", "Classify: 'It broke at once'", "negative")

    for number in range(1, 101):
        request = [*preamble, f"Classify: 'number {number}'"]
        assert book.take(turns(*request), "neutral") == f"new {number}.1"
    for number in (1, 50, 100):
        request = [*preamble, f"Classify: 'number {number}'", "neutral", "sure?"]
        assert book.take(turns(*request)) == f"continue {number}.2"


def test_sub_agents_with_one_task_are_told_apart_by_what_they_were_told() -> None:
    book = Book()
    for number in range(1, 6):
        book.take(turns(TASK), f"Reading file {number}.")

    for number in (3, 1, 5, 2, 4):
        request = turns(TASK, f"Reading file {number}.", "its text")
        assert book.take(request, "ok") == f"continue {number}.2"


def test_chats_that_cannot_be_told_apart_each_go_on_once() -> None:
    book = Book()
    for _ in range(3):
        book.take(turns("ping"), "pong")

    placed = [book.take(turns("ping", "pong", word)) for word in ("a", "b", "c")]
    assert placed == ["continue 3.2", "continue 2.2", "continue 1.2"]


def test_a_test_that_runs_the_same_script_again_is_a_chat_of_its_own() -> None:
    book = Book()
    script = ["hi", "Hello!", "a", "A.", "b", "B."]

    for run in (1, 2, 3):
        placed = [book.take(turns(*script[:n]), script[n]) for n in (1, 3, 5)]
        assert placed == [f"new {run}.1", f"continue {run}.2", f"continue {run}.3"]


def test_changed_replies_to_a_common_first_turn_join_nothing() -> None:
    book = Book()
    book.take(turns(TASK), "One.")
    book.take(turns(TASK), "Two.")

    assert book.take(turns(TASK, "Neither of them.", "go on")) == "new 3.1"


def test_a_short_first_turn_with_another_reply_joins_nothing() -> None:
    book = Book()
    book.take(turns("continue"), "With what?")

    assert book.take(turns("continue", "All done.", "ok")) == "new 2.1"


def test_a_beginning_put_into_the_models_mouth_joins_nothing() -> None:
    book = Book()
    request = turns(TASK, "{")

    assert [book.take(request, '"a": 1}'), book.take(request, '"a": 1}')] == ["new 1.1", "new 2.1"]
    assert book.take(turns(TASK, '{"a": 1}', "and b?")) == "continue 2.2"


def test_a_cut_reply_that_is_sent_back_to_be_gone_on_with() -> None:
    book = Book()
    book.take(turns("count"), "1, 2, 3,")

    assert book.take(turns("count", "1, 2, 3,"), " 4, 5") == "continue 1.2"


# --- compaction


def grown(book: Book, *, last: str = "and the third?") -> list[str]:
    """A conversation of three calls; gives its turns, the last reply among them."""
    said = [TASK, "The first one: no file at all. " * 4, "and the second?"]
    said += ["The second one: a file that is empty. " * 4, last]
    book.take(turns(said[0]), said[1])
    book.take(turns(*said[:3]), said[3])
    reply = "The third one: a value of the wrong kind, which ends in an error nobody reads."
    book.take(turns(*said), reply)
    return [*said, reply]


def test_the_newest_turns_kept_behind_a_summary_are_a_compaction() -> None:
    book = Book()
    said = grown(book)

    request = turns("What happened so far: much.", *said[3:], "now fix them")
    assert book.take(request, "Fixed.") == "compaction 1.4"
    assert book.take([*request, *turns("", "Fixed.", "thanks")[1:]]) == "continue 1.5"


def test_a_summary_that_was_asked_for_and_handed_in_is_a_compaction() -> None:
    for where in ("user", "system"):
        book = Book()
        said = grown(book)
        book.take(turns(*said, ASK_FOR_SUMMARY), SUMMARY)

        handed_in = f"This session goes on from an earlier one:\n\n{SUMMARY}\n\nGo on."
        request = [
            ChatTurn(role=where, text=handed_in),
            ChatTurn(role="user", text="Now the importer."),
        ]
        assert book.take(request, "Sure.") == "compaction 1.5"


def test_text_that_is_handed_on_without_being_a_summary_joins_nothing() -> None:
    book = Book()
    said = grown(book, last="Write a plan for the coder.")
    book.take(turns(*said, "Write it out in full."), SUMMARY)

    assert book.take(turns(f"Carry out this plan:\n{SUMMARY}")) == "new 2.1"


def test_a_summary_of_a_document_joins_nothing() -> None:
    book = Book()
    book.take(turns(f"Summarize this conversation: {TASK}"), SUMMARY)

    assert book.take(turns(f"Answer by this:\n{SUMMARY}")) == "new 2.1"


def test_what_a_summary_only_quotes_joins_nothing() -> None:
    book = Book()
    rules = "Every answer names the file and the line that it speaks about, without exception, " * 3
    said = grown(book)
    book.take(turns(*said, ASK_FOR_SUMMARY, system=rules), rules)

    assert book.take(turns("A new task.", system=rules)) == "new 2.1"


def test_two_conversations_with_the_same_newest_turns_are_not_compacted() -> None:
    book = Book()
    said = grown(book)
    grown(book)

    assert book.take(turns("Much happened.", *said[3:], "now fix them")) == "new 3.1"


def test_a_conversation_that_went_on_is_not_compacted_by_its_older_turns() -> None:
    book = Book()
    said = grown(book)
    book.take(turns(*said, "go on"), "As you wish.")

    assert book.take(turns("Much happened.", *said[3:], "now fix them")) == "new 2.1"


def test_short_turns_are_never_a_sign() -> None:
    book = Book()
    for _ in range(2):
        book.take(turns("go"), "ok")
        book.take(turns("go", "ok", "continue"), "ok")

    assert book.take(turns("other", "ok", "continue", "ok", "continue")) == "new 3.1"


@pytest.mark.parametrize(
    ("before", "after", "is_new"),
    [
        # by its prompt tokens
        (Size(tokens=100_000), Size(tokens=20_000), True),
        (Size(tokens=100_000), Size(tokens=79_999), True),
        (Size(tokens=100_000), Size(tokens=80_000), False),  # a window that slides
        (Size(tokens=100_000), Size(tokens=104_000), False),
        # a provider that reports the same whatever it gets, or nothing
        (Size(tokens=1_000, messages=40), Size(tokens=1_000, messages=31), True),
        (Size(tokens=1_000, messages=40), Size(tokens=1_000, messages=32), False),
        (Size(messages=40), Size(messages=10), True),
        (Size(messages=40), Size(messages=40), False),
        # as many turns, but the large ones are gone
        (Size(messages=9, bytes=90_000), Size(messages=9, bytes=9_000), True),
        (Size(messages=9, bytes=90_000), Size(messages=9, bytes=80_000), False),
        # a window that slides on by a turn or two
        (Size(tokens=900, messages=12, bytes=2_925), Size(tokens=900, messages=10, bytes=2_394),
         False),
        # nothing to compare: by the look of the turns
        (Size(), Size(tokens=20_000, messages=3), True),
        (Size(tokens=100_000), Size(), True),
        (Size(tokens=100_000), Size(messages=3), True),
        (Size(messages=0, bytes=0), Size(messages=0, bytes=0), False),
    ],
)  # fmt: skip
def test_a_fresh_start_is_a_prompt_that_shrank(before: Size, after: Size, *, is_new: bool) -> None:
    assert is_fresh_start(before, after) is is_new


def test_a_client_that_takes_its_reminders_back_still_goes_on() -> None:
    book = Book()
    first, second = f"First of all: {TASK}" * 2, f"And then: {TASK}" * 2
    reminder = "\n<reminder>It is late.</reminder>"

    assert book.take(turns("a" + reminder), first) == "new 1.1"
    assert book.take(turns("a", first, "b" + reminder), second) == "continue 1.2"
    # the recorder looks at the size of the prompt: see is_fresh_start
    assert book.take(turns("a", first, "b", second, "c" + reminder)) == "compaction 1.3"


def test_examples_made_of_long_replies_join_nothing() -> None:
    book = Book()
    example = ("Classify: 'I love it'", f"positive, because {TASK}" * 2)
    for number in range(1, 51):
        request = turns(*example, f"Classify: 'number {number}'")
        assert book.take(request, f"neutral, because {TASK}" * 2) == f"new {number}.1"


# --- the links themselves


def test_nothing_but_system_turns_leaves_nothing() -> None:
    assert links_of([ChatTurn(role="system", text="x")], reply=None, is_retry=False) == ChainLinks()
    assert links_of([], reply=None, is_retry=True) == ChainLinks()


def test_links_are_plain_and_bounded_however_long_the_conversation() -> None:
    said = [f"This is turn number {number}, {TASK}" for number in range(1_001)]

    links = links_of(
        turns(*said, system=SUMMARY * 400),
        reply=ChatTurn(role="assistant", text="a"),
        is_retry=False,
    )

    written = json.dumps(asdict(links))
    assert len(written) < 4_000
    assert ChainLinks(**json.loads(written)).near == links.near


TEXTS = st.lists(st.text(max_size=8), min_size=1, max_size=9)


@given(texts=TEXTS, other=TEXTS)
def test_equal_marks_mean_equal_turns(texts: list[str], other: list[str]) -> None:
    one = links_of(turns(*texts, "u"), reply=None, is_retry=False).head
    two = links_of(turns(*other, "u"), reply=None, is_retry=False).head

    def seen(said: list[str]) -> list[tuple[str, str]]:
        return [(turn.role, turn.text.strip()) for turn in turns(*said, "u")]

    if turns(*texts, "u")[-1].role == turns(*other, "u")[-1].role == "user":
        assert (one == two) == (seen(texts) == seen(other))


@given(texts=st.lists(st.sampled_from(["a", "ok", "go on", TASK]), min_size=1, max_size=12))
def test_every_chat_is_one_conversation_whatever_is_said(texts: list[str]) -> None:
    book = Book()
    said: list[str] = []
    for number, text in enumerate(texts):
        placed = book.take(turns(*said, text), f"Reply {text}")
        assert placed == (f"continue 1.{number + 1}" if number else "new 1.1")
        said += [text, f"Reply {text}"]


@given(
    chats=st.lists(st.integers(0, 3), min_size=1, max_size=24),
    words=st.lists(st.sampled_from(["a", "b"]), min_size=4, max_size=4),
)
def test_chats_that_run_side_by_side_stay_apart(chats: list[int], words: list[str]) -> None:
    book = Book()
    said: dict[int, list[str]] = {}
    numbers: dict[int, str] = {}
    for chat in chats:
        before = said.setdefault(chat, [])
        # The replies differ: nothing else could tell chats that are asked the same.
        reply = f"Chat {chat} says {len(before)}"
        placed = book.take(turns(*before, words[chat]), reply)
        how, _, where = placed.partition(" ")
        number = where.partition(".")[0]
        assert how == ("continue" if before else "new")
        assert numbers.setdefault(chat, number) == number
        before += [words[chat], reply]
    assert len(set(numbers.values())) == len(numbers)


# --- ids of tool calls

CALLS_A_TOOL = "Let me see. call look {}"
SENT_BACK = "call look {}"


def test_a_short_first_request_whose_reply_is_written_anew_is_known_by_its_tool_call() -> None:
    book = Book()
    assert book.take(turns("Hi"), CALLS_A_TOOL, called="c1") == "new 1.1"
    assert book.take(turns("Hi"), CALLS_A_TOOL, called="c2") == "new 2.1"

    anew = turns("Hi", SENT_BACK, "result 7")
    assert book.take(anew, "Seven.", calls=("c1",)) == "continue 1.2"
    assert book.take(anew, "Seven.", calls=("c2",)) == "continue 2.2"
    assert book.take([*anew, *turns("", "Seven.", "More")[1:]]) == "continue 2.3"


def test_a_tool_call_that_two_conversations_left_joins_nothing() -> None:
    book = Book()
    for number in (1, 2):
        assert book.take(turns(f"Hi {number}"), CALLS_A_TOOL, called="c1") == f"new {number}.1"

    assert book.take(turns("Hi 2", SENT_BACK, "result 7"), calls=("c1",)) == "new 3.1"


def test_a_tool_call_that_its_conversation_has_gone_on_from_joins_nothing() -> None:
    book = Book()
    book.take(turns("Hi"), CALLS_A_TOOL, called="c1")
    book.take(turns("Hi", SENT_BACK, "result 7"), calls=("c1",))

    assert book.take(turns("Ho", SENT_BACK, "result 8"), calls=("c1",)) == "new 2.1"


def test_only_a_first_call_leaves_the_id_of_its_tool_call() -> None:
    book = Book()
    book.take(turns("Hi"), "Fine.")
    assert book.take(turns("Hi", "Fine.", "Look"), CALLS_A_TOOL, called="c1") == "continue 1.2"

    assert book.take(turns("Ho", SENT_BACK, "result 7"), calls=("c1",)) == "new 2.1"


RANDOM, OTHER = "call_9nKqTz4cVb2mWx7LpRs0dYfA", "call_8mKqTz4cVb2mWx7LpRs0dYfB"
# A conversation of few words: a call of a tool, and what came of it.
FEW = ("Go", SENT_BACK, "result 7")


@pytest.mark.parametrize(
    ("resumed", "history", "expected"),
    [
        # The first message anew, as Qwen Code writes it; then with a turn that nobody told of.
        (("Late. Go", *FEW[1:], "ok", "More"), ("", RANDOM), "compaction 1.3"),
        (("Late. Go", *FEW[1:], "ok", "More", "yes", "On"), ("", "", RANDOM), "compaction 1.3"),
        # Another call, an id that any call might have, other words, and no id at all.
        (("Late. Go", *FEW[1:], "ok", "More"), ("", OTHER), "new 2.1"),
        (("Late. Go", *FEW[1:], "ok", "More"), ("", "call_0"), "new 2.1"),
        (("Late. Go", *FEW[1:], "no", "More"), ("", RANDOM), "new 2.1"),
        (("Late. Go", *FEW[1:], "ok", "More"), (), "new 2.1"),
        # Of a shortened history the newest turns.
        (("Before: much. So?", SENT_BACK, "result 7", "ok", "On"), ("", RANDOM), "compaction 1.3"),
    ],
)
def test_short_replies_are_known_by_the_tool_call_before_them(
    resumed: tuple[str, ...], history: tuple[str, ...], expected: str
) -> None:
    book = Book()
    assert book.take(turns("Go"), SENT_BACK, called=call_fingerprint(RANDOM, "look")) == "new 1.1"
    assert book.take(turns(*FEW), "ok", history=[RANDOM]) == "continue 1.2"

    assert book.take(turns(*resumed), history=history) == expected


def test_short_replies_that_two_conversations_left_join_nothing() -> None:
    book = Book()
    for number in (1, 2):
        few = (f"Go {number}", *FEW[1:])
        assert book.take(turns(*few), "ok", history=[RANDOM]) == f"new {number}.1"

    assert book.take(turns("Late", *FEW[1:], "ok", "More"), history=("", RANDOM)) == "new 3.1"


def test_short_replies_that_their_conversation_has_gone_on_from_join_nothing() -> None:
    book = Book()
    book.take(turns(*FEW), "ok", history=[RANDOM])
    book.take(turns(*FEW, "ok", "More"), "fine", history=("", RANDOM))

    assert book.take(turns("Late", *FEW[1:], "ok", "More"), history=("", RANDOM)) == "new 2.1"
    resumed = turns("Later", *FEW[1:], "ok", "More", "fine", "On")
    assert book.take(resumed, history=("", "", RANDOM)) == "compaction 1.3"


@pytest.mark.parametrize(
    ("call_id", "is_known"),
    [
        ("call_9nKqTz4cVb2mWx7LpRs0dYfA", True),
        ("toolu_01A09q90qw90lq917835lq9", True),
        ("chatcmpl-tool-3f2a9c1d8b7e4f60a1b2c3d4e5f60718", True),
        ("call_0_7d2c1a3e-5b4f-4c6d-8e9f-0a1b2c3d4e5f", True),
        # Counted, made of the tool's name, a name alone, or too short.
        ("call_0", False),
        ("call_0_look", False),
        ("functions.look:0", False),
        ("look12345678901", False),
        ("read_configuration_file", False),
        ("a1B2c3D4e", False),
        ("", False),
    ],
)
def test_an_id_counts_where_no_other_call_could_have_it(call_id: str, *, is_known: bool) -> None:
    assert bool(call_fingerprint(call_id, "look")) is is_known
