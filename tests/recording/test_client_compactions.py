"""A client's own compaction opens a round, once, in conversations that their calls name."""

from __future__ import annotations

import pytest

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import Capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import conversations
from helmdash.records.models import HealthChange, Round
from tests.recording.chats import TASK, nameless
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, conversation, prompt, record


def rounds(project: ProjectInfo) -> list[tuple[int, int, int, str]]:
    row = conversation(project)
    return [
        (each.number, each.first_generation, each.latest_generation, each.opened_by)
        for each in Round.objects.filter(conversation=row).order_by("number")
    ]


def side(tokens: int, **over: object) -> Capture:
    return prompt(tokens, **{"purpose": "compaction", **over})


ONE_COMPACTION = [(1, 1, 2, ""), (2, 3, 4, "compaction")]
WAYS = {
    # Codex: a number that rises. The call that sums up is still made in the old context.
    "by number": [
        prompt(CAUTION, context="0"),
        prompt(CRITICAL, context="0"),
        side(CRITICAL, context="0"),
        prompt(HEALTHY, context="1"),
        prompt(HEALTHY, context="1"),
    ],
    # Claude Code: a mark of the summary. Nobody need have seen the call that wrote it.
    "by mark": [
        prompt(CAUTION, context="0"),
        prompt(CRITICAL, context="0"),
        prompt(HEALTHY, context="77aa"),
        prompt(HEALTHY, context="77aa"),
    ],
    # Claude Code: its transcript counts, and what comes by the gateway afterwards has a mark.
    "by other names": [
        prompt(CAUTION, context="1"),
        prompt(CRITICAL, context="77aa"),
        side(CRITICAL, context="77aa"),
        prompt(HEALTHY, context="77bb"),
        prompt(HEALTHY, context="2"),
    ],
    "by other names at once": [
        prompt(CAUTION, context="1"),
        prompt(CRITICAL, context="1"),
        side(CRITICAL, context="77aa"),
        prompt(HEALTHY, context="77bb"),
        prompt(HEALTHY, context="77bb"),
    ],
    # opencode: it asks for a summary, and the next prompt is smaller.
    "by what it asked": [
        prompt(CAUTION),
        prompt(CRITICAL),
        side(CRITICAL),
        prompt(HEALTHY),
        prompt(HEALTHY),
    ],
}


@pytest.mark.parametrize("is_batch", [True, False], ids=["in one batch", "one by one"])
@pytest.mark.parametrize("way", WAYS)
def test_a_compaction_opens_one_round(project: ProjectInfo, way: str, is_batch: bool) -> None:
    batches = [WAYS[way]] if is_batch else [[each] for each in WAYS[way]]

    for batch in batches:
        record(project, *batch)

    assert rounds(project) == ONE_COMPACTION
    row = conversation(project)
    assert (row.level, row.generation, row.round_number) == (Level.HEALTHY.value, 4, 2)
    changes = HealthChange.objects.order_by("generation")
    assert list(changes.values_list("generation", "to_level")) == [
        (1, "caution"),
        (2, "critical"),
        (3, "healthy"),
    ]
    found = conversations.find(project_id=project.id, conversation_id="talk")
    assert found is not None
    assert [each.opened_by for each in found.rounds] == ["", "client_compaction"]


@pytest.mark.parametrize(
    "calls",
    [
        # Asked for, and failed; asked for, and not used; smaller for another reason.
        [prompt(CRITICAL), side(CRITICAL, status="error", http_status=500), prompt(HEALTHY)],
        [prompt(CAUTION), side(CAUTION), prompt(CRITICAL), prompt(HEALTHY)],
        [prompt(CRITICAL), side(300, purpose="title"), prompt(HEALTHY)],
        # The first context that is told, of a conversation that is known already.
        [prompt(HEALTHY), prompt(HEALTHY, context="3"), prompt(HEALTHY, context="3")],
        # A person goes back to before the compaction that opened round 1, for us.
        [prompt(HEALTHY, context="77aa"), prompt(HEALTHY, context="0")],
        # A side call says the next number first: it is no turn of it.
        [prompt(HEALTHY, context="0"), side(HEALTHY, context="1"), prompt(HEALTHY, context="0")],
    ],
)
def test_no_compaction_opens_no_round(project: ProjectInfo, calls: list[Capture]) -> None:
    for call in calls:
        record(project, call)

    assert [number for number, *_ in rounds(project)] == [1]


@pytest.mark.parametrize("is_batch", [True, False], ids=["in one batch", "one by one"])
def test_a_call_without_a_name_goes_on_behind_what_was_asked(
    project: ProjectInfo, is_batch: bool
) -> None:
    """A client may name a conversation that was inferred: one, however its calls come to it."""
    usage = {"prompt_tokens": CRITICAL}
    (first,) = record(project, nameless(TASK, reply="Done.", usage=usage))
    record(project, side(CRITICAL, conversation=first.conversation))
    going_on = nameless(TASK, "Done.", "And now?", usage=usage)
    smaller = prompt(HEALTHY, conversation=first.conversation)

    answers = [
        answer
        for batch in ([[going_on, smaller]] if is_batch else [[going_on], [smaller]])
        for answer in record(project, *batch)
    ]

    assert [(a.conversation, a.round_number, a.generation) for a in answers] == [
        (first.conversation, 1, 2),
        (first.conversation, 1, 3),
    ]


def test_a_sub_agents_small_prompt_never_makes_its_parent_green(project: ProjectInfo) -> None:
    record(project, prompt(CRITICAL, conversation="s1", context="0"))
    record(project, prompt(300, conversation="s1:a1", parent="s1", context="0"))
    record(project, prompt(300, conversation="s1", purpose="title", context="0"))

    levels = [conversation(project, name).level for name in ("s1", "s1:a1")]
    assert levels == ["critical", "healthy"]
    assert conversation(project, "s1:a1").parent == "s1"


def test_a_compaction_call_never_makes_its_conversation_red(project: ProjectInfo) -> None:
    record(project, prompt(HEALTHY), side(CRITICAL))
    assert conversation(project).level == "healthy"

    record(project, side(CRITICAL, conversation="only", context="4"))

    row = conversation(project, "only")
    assert (row.level, row.level_reason, row.context) == ("unknown", "no_main_call", None)
