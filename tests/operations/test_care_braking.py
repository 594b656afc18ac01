"""Care stops clearing where clearing leads nowhere, and goes on when something comes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.care.restarts import (
    HistoryEntry,
    Speaker,
    fingerprint,
    is_standstill,
    pending_of,
)
from helmdash.operations import care
from helmdash.operations.care import Advanced, Braked, ClientHistory, NoConversation
from helmdash.queries.conversations.care import care_of
from helmdash.records.models import Guidance
from tests.operations.care_support import Talk
from tests.recording.support import CRITICAL, HEALTHY, make_ruled_project

TASK = HistoryEntry(speaker=Speaker.USER, text="Find the fault.", is_own=True)
RESULT = HistoryEntry(speaker=Speaker.TOOL, text="…", results=1)
MOST_STEPS = 9


def call(step: str) -> HistoryEntry:
    return HistoryEntry(speaker=Speaker.ASSISTANT, calls=(("read", step),))


@pytest.fixture
def talk(db: None) -> Talk:
    return Talk(make_ruled_project())


class Loop:
    """An agent behind a gateway, round after round; each takes the steps it is given."""

    def __init__(self, talk: Talk, *, has_client: bool = True) -> None:
        self.talk = talk
        self.history = [TASK]
        self.has_client = has_client

    def client(self) -> ClientHistory | None:
        if not self.has_client:
            return None
        seen = list(self.history)

        def standstill(since: int, start: int, digest: str) -> bool:
            assert fingerprint(seen[:start]) == digest
            return is_standstill(seen, since=since, start=start, end=len(seen))

        return ClientHistory(
            messages=len(seen),
            digest=lambda: fingerprint(seen),
            carried=lambda: pending_of(seen, len(seen)),
            is_standstill=standstill,
        )

    def round(self, step: str = "a.py", *, finish: str = "tool_calls") -> Advanced:
        """Generations, each asking first, up to the clear or the brake, which it gives."""
        for number in range(MOST_STEPS):
            told = self.talk.advance(client=self.client())
            is_over = told.action == "clear" or told.is_braked
            self.generate(f"{step} {0 if is_over else number}", finish)
            if is_over:
                return told
        raise AssertionError("neither cleared nor braked")

    def generate(self, step: str, finish: str = "tool_calls") -> None:
        self.talk.call(CRITICAL, finish_reason=finish)
        self.history += [call(step), RESULT]


@pytest.mark.parametrize("has_client", [True, False])
def test_two_rounds_of_the_same_steps_stop_it(talk: Talk, has_client: bool) -> None:
    loop = Loop(talk, has_client=has_client)
    assert loop.round().action == "clear"

    told = loop.round()
    after = []
    for number in range(3):
        after.append(talk.advance(client=loop.client()))
        loop.generate(f"a.py {number}")

    assert (told.action, told.persist, told.is_braked) == ("record_prompt", True, True)
    assert "does not clear it any more" in (told.text or "")
    assert "update_reminder" in (told.text or "")
    assert [(each.action, each.is_braked) for each in after] == [("none", True)] * 3
    assert all("stopped clearing" in each.reason for each in after)
    view = care_of(project_id=talk.project.id, conversation=talk.name)
    assert view.braked_at == told.generation
    assert Guidance.objects.filter(action="clear").count() == 1
    with pytest.raises(Braked):
        talk.clear(reason="Too long.", client=loop.client(), by_itself=True)


def test_new_steps_go_on_over_any_number_of_rounds(talk: Talk) -> None:
    loop = Loop(talk)

    told = [loop.round(f"part {number}") for number in range(5)]

    assert [each.action for each in told] == ["clear"] * 5


COMES: dict[str, Callable[[Loop], object]] = {
    "a reminder": lambda loop: loop.talk.remind(),
    "an answer": lambda loop: loop.generate("a.py 1", finish="stop"),
    "another text": lambda loop: loop.history.append(
        HistoryEntry(speaker=Speaker.USER, text="Look into b.py.", is_own=True)
    ),
    "a new step": lambda loop: loop.generate("b.py"),
    "a person": lambda loop: care.go_on(
        actor=SHELL, project=loop.talk.project, conversation=loop.talk.name
    ),
}


@pytest.mark.parametrize("what", COMES)
def test_it_goes_on_when_something_comes(talk: Talk, what: str) -> None:
    loop = Loop(talk)
    loop.round()
    loop.round()
    loop.generate("a.py 1")
    assert talk.advance(client=loop.client()).is_braked

    COMES[what](loop)
    loop.generate("a.py 2")
    told = talk.advance(client=loop.client())

    assert (told.action, told.is_braked) == ("clear", False)
    assert care_of(project_id=talk.project.id, conversation=talk.name).braked_at is None


def test_after_a_persons_word_it_takes_two_rounds_again(talk: Talk) -> None:
    loop = Loop(talk)
    loop.round()
    loop.round()
    assert care.go_on(actor=SHELL, project=talk.project, conversation=talk.name)

    assert [loop.round().action for _ in range(3)] == ["clear", "clear", "record_prompt"]


@pytest.mark.parametrize("what", ["a reminder", "an answer"])
def test_what_came_in_the_first_of_two_rounds_counts(talk: Talk, what: str) -> None:
    loop = Loop(talk)
    loop.generate("a.py 0")
    COMES[what](loop)
    loop.round()

    assert loop.round().action == "clear"


def test_a_clear_that_somebody_asks_for_is_never_braked(talk: Talk) -> None:
    loop = Loop(talk)
    loop.round()
    loop.round()

    assert talk.clear().is_new
    assert care_of(project_id=talk.project.id, conversation=talk.name).braked_at is None


def test_one_that_leaves_critical_by_itself_is_free_again(talk: Talk) -> None:
    loop = Loop(talk)
    loop.round()
    loop.round()

    talk.turns(HEALTHY, 3)

    assert care_of(project_id=talk.project.id, conversation=talk.name).braked_at is None


def test_who_is_not_braked_needs_no_word(talk: Talk) -> None:
    talk.call(HEALTHY)

    assert not care.go_on(actor=SHELL, project=talk.project, conversation=talk.name)
    with pytest.raises(NoConversation):
        care.go_on(actor=SHELL, project=talk.project, conversation="nobody")
