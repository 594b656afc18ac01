"""Remediation through the gateway where it is hard: any ratio, resumed talks, clients that edit."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from helmdash.core.care.restarts import Beginning, HistoryEntry, Speaker
from helmdash.gateway.remediation.recent_restarts import RecentRestarts
from tests.gateway.house import CRITICAL, MODELS, OPTIMAL, TOOLS, Agent, House
from tests.gateway.narrow import BYTES_PER_TOKEN, IMAGE, WINDOW, texts
from tests.gateway.test_care import PACKAGE, actions, rounds, sent_to

pytestmark = pytest.mark.xdist_group("care")


def size(body: Any) -> int:
    """Tokens, about."""
    return len(json.dumps(body["messages"])) // BYTES_PER_TOKEN


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("ratio", "schema"),
    [(2.2, 0), (7.0, 0), (4.0, 12_000)],  # dense, sparse (Cyrillic), and three quarters schemas
)
def test_the_countdown_plays_out_at_any_ratio(
    house: House, mark: str, ratio: float, schema: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOOLS[0]["function"], "description", "d" * schema)
    model = f"{MODELS['openai']}-{mark}"
    house.narrow.ratios[model.partition("/")[2]] = ratio
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=model, page_bytes=int(200 * ratio))
        agent.ask("one", tools=999, most=26)

    told = actions(agent)
    clear = told.index("clear")
    counted = [headers.get("x-helmdash-countdown") for headers in agent.headers]
    assert counted[clear - 5 : clear] == ["4", "3", "2", "1", "0"]
    assert [headers["x-helmdash-level"] for headers in agent.headers][clear - 6] == "critical"
    assert house.narrow.refusals.get(model.partition("/")[2]) is None


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (OPTIMAL + 300, ["none", "guide", "guide", "guide", "guide", "none", "none"]),
        (CRITICAL + 300, ["none", *["record_prompt"] * 5, "clear"]),
    ],
)
def test_tokens_that_are_not_in_the_text_leave_room_for_our_words(
    house: House, mark: str, tokens: int, told: list[str]
) -> None:
    # By the text's own bytes per token, each of our words would count as hundreds.
    model = f"{MODELS['openai']}-{mark}"
    house.narrow.unwritten[model.partition("/")[2]] = tokens
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=model, page_bytes=4)
        agent.ask("one", tools=999, most=len(told))

    assert actions(agent) == told


@pytest.mark.one_database
def test_images_by_their_address_are_dropped_where_they_are_too_many(
    house: House, mark: str
) -> None:
    # A few bytes less, and 6,000 tokens.
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}")
        for number in range(1, 4):
            text = {"type": "text", "text": f"ask {number} tools=0"}
            agent.messages.append({"role": "user", "content": [text, image]})
            agent.messages.append(agent.generate())

    call = house.call(agent.headers[-1]["x-helmdash-call-id"])
    sent = sent_to(house, agent.model)[-1]["messages"]
    assert actions(agent)[-1] == "clear"
    assert [attempt["number"] for attempt in call["attempts"]] == [1, 2]
    assert sent[-1] == agent.messages[-2]
    assert json.dumps(sent).count(IMAGE) == 1


@pytest.mark.one_database
def test_our_own_words_do_not_make_a_request_too_long(house: House, mark: str) -> None:
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}")
        # 60 tokens below the window; a guidance has some 200.
        agent.ask("one", pad="x" * (WINDOW * BYTES_PER_TOKEN - 1_000))
        agent.ask("two")

    assert actions(agent) == ["none", "none"]
    assert agent.headers[-1]["x-helmdash-countdown"] == "4"
    assert sent_to(house, agent.model)[-1]["messages"] == agent.messages[:-1]


@pytest.mark.one_database
def test_an_agent_that_never_gives_a_final_answer_goes_on(house: House, mark: str) -> None:
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}")
        for number in range(30):
            agent.ask(number, tools=999, most=3, pad="task " * 160)

    cleared = [
        body
        for body, action in zip(sent_to(house, agent.model), actions(agent), strict=True)
        if action == "clear"
    ]
    assert len(cleared) >= 2
    # A fifth for the texts that wait, a fifth for the package.
    assert max(map(size, cleared)) < 2 * WINDOW / 5 + 300
    assert max(map(size, cleared)) < CRITICAL
    asked = texts(agent.messages)
    assert len(texts(cleared[-1]["messages"][2:])) < len(asked) / 2
    for body in cleared:
        carried = texts(body["messages"][2:])
        newest = asked.index(carried[-1])
        first = newest + 1 - len(carried)
        assert carried == asked[first : newest + 1]
        if first:
            package = body["messages"][1]["content"]
            assert "Earlier user messages" in package
            assert f"- {asked[first - 1][:20]}" in package


def long_talk() -> list[dict[str, Any]]:
    """Longer than the window."""
    said: list[dict[str, Any]] = [{"role": "system", "content": "Be an agent."}]
    for number in range(10):
        said.append({"role": "user", "content": f"ask {number} tools=0 " + "x" * 2_000})
        said.append({"role": "assistant", "content": f"answer to {number} " + "y" * 2_000})
    return said


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("streams", [True, False])
def test_a_resumed_talk_that_is_too_long_at_once_is_answered(
    house: House, mark: str, is_named: bool, streams: bool
) -> None:
    names = {"x-helmdash-conversation": f"resumed-{mark}"} if is_named else {}
    with house.sdk(**names) as sdk:
        agent = Agent(
            sdk=sdk, model=f"{MODELS['openai']}-{mark}", messages=long_talk(), streams=streams
        )
        assert agent.ask("last") == "answer to last"
        call = house.call(agent.headers[-1]["x-helmdash-call-id"])
        assert agent.ask("more") == "answer to more"
        assert agent.ask("end") == "answer to end"

    system, package, question = sent_to(house, agent.model)[0]["messages"]
    assert (system["content"], question["content"]) == ("Be an agent.", "ask last tools=0 ")
    assert PACKAGE in package["content"]
    assert [attempt["number"] for attempt in call["attempts"]] == [1, 2]
    assert (call["status"], call["generation"]) == ("success", 1)
    # From the second call on it is a conversation like any other.
    assert actions(agent) == ["clear", "clear", "none"]
    assert rounds(agent)[1:] == ["2", "2"]
    # The first call's sizes tell that the second does not fit either.
    assert house.narrow.refusals[agent.model.partition("/")[2]] == 1


def test_a_client_that_prunes_old_results_is_not_cleared_again(house: House, mark: str) -> None:
    names = {"x-helmdash-conversation": f"pruned-{mark}"}
    with house.sdk(**names) as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}", page_bytes=1_500)
        for number in range(20):
            agent.ask(number, tools=2)
            for said in agent.messages[:-8]:
                if said["role"] == "tool":
                    said["content"] = "[old tool result removed]"
            agent.messages[-1]["content"] += " " + "z" * 1_000

    told = actions(agent)
    assert 1 <= told.count("clear") <= 3
    after = told.index("clear")
    assert "clear" not in told[after + 1 : after + 6]


def test_a_client_without_a_name_that_prunes_old_results_goes_on_in_its_round(
    house: House, mark: str
) -> None:
    said = f"ask {'x' * 200} tools=30"  # repeated by the model: two replies tell a talk by length
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}")
        agent.messages.append({"role": "user", "content": said})
        cleared = 0
        while len(agent.headers) < cleared + 6 or not cleared:
            message = agent.generate()
            agent.messages.append(message)
            for call in message["tool_calls"]:
                result = {"role": "tool", "tool_call_id": call["id"], "content": "x" * 1_500}
                agent.messages.append(result)
            if actions(agent)[-1] == "clear":
                cleared = len(agent.headers)
            if len(agent.headers) == cleared + 2:
                for old in agent.messages[: 2 * cleared - 4]:
                    if old["role"] == "tool":
                        old["content"] = "[old tool result removed]"

    assert actions(agent).count("clear") == 1
    assert rounds(agent)[cleared:] == ["2"] * 6
    assert house.narrow.refusals.get(agent.model.partition("/")[2]) is None
    for body in sent_to(house, agent.model)[cleared - 1 :]:
        assert PACKAGE in body["messages"][1]["content"]
    conversation = agent.headers[-1]["x-helmdash-conversation"]
    calls = house.calls(conversation, count=len(agent.headers))
    assert [call["round"] for call in calls] == [1] * (cleared - 1) + [2] * 7


def test_while_the_database_is_silent_a_cleared_talk_goes_on_as_before(
    house: House, mark: str
) -> None:
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['tight']}-{mark}", page_bytes=2_000)
        agent.ask("one", tools=3)
        agent.pages = ["x" * 4 * WINDOW]
        agent.ask("two", tools=1)
        agent.ask("three")
        house.calls(agent.headers[-1]["x-helmdash-conversation"], count=agent.generations)
        with house.without_database():
            assert agent.ask("four") == "answer to four"
            agent.pages = ["x" * 4 * WINDOW]
            assert agent.ask("five", tools=1) == "answer to five"

    # Four goes on after the stored clear; five is too long, and goes on after one of its own.
    assert actions(agent)[-4:] == ["none", "none", "clear", "none"]
    assert rounds(agent)[-4:] == [None] * 4
    for body in sent_to(house, agent.model)[-4:]:
        assert PACKAGE in body["messages"][1]["content"]


def test_after_a_message_that_is_too_long_a_small_one_is_sent_as_it_is(
    house: House, mark: str
) -> None:
    names = {"x-helmdash-conversation": f"huge-{mark}"}
    with house.sdk(**names) as sdk:
        agent = Agent(sdk=sdk, model=f"{MODELS['openai']}-{mark}")
        agent.ask("one")
        with pytest.raises(Exception, match="maximum context length"):
            agent.ask("two", pad="y" * 5 * WINDOW)
        del agent.messages[-1]
        agent.ask("three")

    assert actions(agent)[-1] == "none"
    assert sent_to(house, agent.model)[-1]["messages"] == agent.messages[:-1]


def test_beginnings_are_found_by_history_and_bounded() -> None:
    who = (1, "agent", "")
    talks = [
        [
            HistoryEntry(speaker=Speaker.USER, text=f"Do {number}.", is_own=True),
            HistoryEntry(speaker=Speaker.ASSISTANT),
        ]
        for number in range(3)
    ]
    known = RecentRestarts(most=2)
    for number, talk in enumerate(talks):
        known.keep(who, talk, Beginning(entries=1, package=f"P{number}"))

    assert [known.find(who, talk).package for talk in talks] == ["", "P1", "P2"]
    assert known.find((1, "other", ""), talks[2]) == Beginning()
    assert RecentRestarts(most_chars=1).find(who, talks[0]) == Beginning()


@pytest.mark.one_database
def test_care_stops_where_clears_lead_nowhere(house: House, mark: str) -> None:
    model = f"{MODELS['openai']}-{mark}"
    with house.sdk() as sdk:
        agent = Agent(sdk=sdk, model=model)
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            agent.ask("one", tools=999, most=150)
        conversation = agent.headers[-1]["x-helmdash-conversation"]
        told = house.api.get(f"/conversations/{conversation}").json()["remediation"]
        refused = house.narrow.refusals[model.partition("/")[2]]
        said = [
            [text for text in texts(body["messages"]) if "not clear" in text]
            for body in sent_to(house, model)
        ]

        assert actions(agent).count("clear") == 1
        assert refused == 1  # as it came, and not once more
        assert [headers.get("x-helmdash-care") for headers in agent.headers][-3:] == ["braked"] * 3
        assert told["braked_at"] is not None
        assert max(map(len, said)) == 1

        released = house.api.post(f"/conversations/{conversation}/go-on").json()
        agent.generate()

    assert released["braked_at"] is None
    assert actions(agent)[-1] == "clear"
    assert "x-helmdash-care" not in agent.headers[-1]
