"""Which conversation a call belongs to: told by a header or metadata, or found by its beginning."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from helmdash.installation import FIXTURES
from tests.gateway.clients import TOOL
from tests.gateway.world import RESPONSES, World, model_of, open_http
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

Messages = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str = WHOLE) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def say(world: World, messages: Messages, *, behaviour: str = "plain", **headers: Any) -> Any:
    """Ask in OpenAI's API; gives the record."""
    body = {"model": model_of("openai", behaviour), "messages": messages}
    answer = world.post("/v1/chat/completions", body, **headers)
    assert answer.status_code == 200, answer.text
    return world.call_of(answer)


def test_a_header_names_the_conversation(world: World, mark: str) -> None:
    calls = [
        say(world, [user(f"{mark} {turn}")], x_helmdash_conversation=f"talk-{mark}")
        for turn in range(3)
    ]

    assert [call["conversation"] for call in calls] == [f"talk-{mark}"] * 3
    assert [call["generation"] for call in calls] == [1, 2, 3]


@pytest.mark.parametrize(
    "metadata",
    [
        {"conversation_id": "MARK"},
        {"session_id": "MARK", "user": "somebody"},
        {"thread_id": "MARK"},
        {"helmdash_conversation": "MARK", "session_id": "another"},
    ],
)
def test_metadata_names_the_conversation(world: World, metadata: dict[str, str], mark: str) -> None:
    told = {name: value.replace("MARK", mark) for name, value in metadata.items()}
    body = {"model": model_of("openai"), "messages": [user("Hello?")], "metadata": told}

    call = world.call_of(world.post("/v1/chat/completions", body))

    assert call["conversation"] == mark


def test_the_header_beats_the_metadata(world: World, mark: str) -> None:
    body = {
        "model": model_of("openai"),
        "messages": [user("Hello?")],
        "metadata": {"conversation_id": f"metadata-{mark}"},
    }
    answer = world.post("/v1/chat/completions", body, x_helmdash_conversation=f"header-{mark}")

    assert world.call_of(answer)["conversation"] == f"header-{mark}"


def test_the_other_headers_are_kept_with_the_call(world: World, mark: str) -> None:
    call = say(
        world,
        [user("Hello?")],
        x_helmdash_pack="browser.pack",
        x_helmdash_purpose="verify",
        x_helmdash_correlation_id=mark,
        x_helmdash_project="default",
    )

    assert (call["pack"], call["purpose"]) == ("browser.pack", "verify")
    assert call["correlation_id"] == mark


def test_a_chat_that_goes_on_is_one_conversation(world: World, mark: str) -> None:
    history: Messages = [user(f"Tell me about {mark}.")]
    calls = []
    for turn in range(4):
        calls.append(say(world, history))
        history = [*history, assistant(), user(f"And then? {turn}")]

    assert calls[0]["conversation"] is not None
    assert len({call["conversation"] for call in calls}) == 1
    assert [call["generation"] for call in calls] == [1, 2, 3, 4]
    assert {call["round"] for call in calls} == {1}


def test_a_streamed_chat_goes_on_too(world: World, mark: str) -> None:
    body = {"model": model_of("openai"), "messages": [user(f"About {mark}?")], "stream": True}
    first = world.call_of(world.post("/v1/chat/completions", body))

    second = say(world, [user(f"About {mark}?"), assistant(), user("And then?")])

    assert second["conversation"] == first["conversation"]


def test_a_chat_may_go_on_in_another_api(world: World, mark: str) -> None:
    first = say(world, [user(f"Tell me about {mark}.")])
    messages = [user(f"Tell me about {mark}."), assistant(), user("And then?")]
    anthropic = {"model": model_of("anthropic"), "max_tokens": 99, "messages": messages}
    second = world.call_of(world.post("/v1/messages", anthropic))
    contents = [
        {"role": "model" if each["role"] == "assistant" else "user", "parts": [{"text": text}]}
        for each in [*messages, assistant(), user("Go on.")]
        if (text := each["content"])
    ]
    path = f"/v1beta/models/{model_of('gemini')}:generateContent"
    third = world.call_of(world.post(path, {"contents": contents}))

    assert first["conversation"] == second["conversation"] == third["conversation"]
    assert third["generation"] == 3


def test_a_branch_is_a_conversation_of_its_own(world: World, mark: str) -> None:
    beginning = [user(f"Tell me about {mark}.")]
    first = say(world, beginning)
    trunk = say(world, [*beginning, assistant(), user("Go left.")])
    say(world, [*beginning, assistant(), user("Go left."), assistant(), user("Further.")])

    branch = say(world, [*beginning, assistant(), user("Go right.")])

    assert trunk["conversation"] == first["conversation"]
    assert branch["conversation"] not in (None, first["conversation"])


def test_chats_that_begin_alike_are_two(world: World, mark: str) -> None:
    first = say(world, [user(f"hi {mark}")])
    second = say(world, [user(f"hi {mark}")])

    assert first["conversation"] != second["conversation"]


def test_a_retry_of_the_clients_library_is_no_new_chat(world: World, mark: str) -> None:
    first = say(world, [user(f"Tell me about {mark}.")])
    again = say(world, [user(f"Tell me about {mark}.")], x_stainless_retry_count="1")

    assert again["conversation"] == first["conversation"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads of SQLite wait for nobody")
def test_a_first_try_that_fails_is_over_when_its_client_is_told(world: World, mark: str) -> None:
    """Its time begins when it comes, not when its key has been looked up: else it would seem to go
    on while the client tries again."""
    body = {"model": f"groq/gpt-plain.{mark}", "messages": [user(f"Tell me about {mark}.")]}
    key = f"hd_test_{mark}"
    code = f"""
from helmdash.records.models import ApiKey, Project
key = ApiKey(name="{mark}", project=Project.objects.get(is_default=True), scopes=["record"])
key.issue("{key}")
key.save()
"""
    assert world.served.manage("shell", "-c", code).returncode == 0
    with (
        open_http(world.url, key) as client,
        ThreadPoolExecutor(1) as thread,
        psycopg.connect(world.served.database_url) as other,
    ):
        other.execute("LOCK TABLE records_apikey IN ACCESS EXCLUSIVE MODE")
        first = thread.submit(client.post, "/v1/chat/completions", json=body)
        time.sleep(0.5)
        other.rollback()
        tries = [first.result(), client.post("/v1/chat/completions", json=body)]
        told = datetime.now(UTC)

    calls = [world.call_of(each) for each in tries]
    starts = [datetime.fromisoformat(each["started_at"]) for each in calls]
    assert starts[0] + timedelta(milliseconds=calls[0]["latency_ms"]) <= starts[1]
    assert starts[1] + timedelta(milliseconds=calls[1]["latency_ms"]) <= told
    assert len({each["conversation"] for each in calls}) == 1


def test_a_changing_system_prompt_does_not_part_a_chat(world: World, mark: str) -> None:
    first = say(
        world, [{"role": "system", "content": "It is 9:00."}, user(f"Tell me about {mark}.")]
    )
    second = say(
        world,
        [
            {"role": "system", "content": "It is 9:05."},
            user(f"Tell me about {mark}."),
            assistant(),
            user("And then?"),
        ],
    )

    assert second["conversation"] == first["conversation"]


def test_a_tool_loop_is_one_conversation(world: World, mark: str) -> None:
    tools = [{"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}]
    history: Messages = [user(f"Weather of {mark}?")]
    calls = []
    for _ in range(3):
        body = {"model": model_of("openai"), "messages": history, "tools": tools}
        answer = world.post("/v1/chat/completions", body)
        calls.append(world.call_of(answer))
        message = answer.json()["choices"][0]["message"]
        history = [*history, message]
        history += [
            {"role": "tool", "tool_call_id": each["id"], "content": "Rain."}
            for each in message.get("tool_calls") or []
        ]
        if message.get("content"):
            history = [*history, user("And tomorrow?")]

    assert len({call["conversation"] for call in calls}) == 1
    assert [call["generation"] for call in calls] == [1, 2, 3]


def test_a_clients_compaction_is_a_new_round(world: World, mark: str) -> None:
    telling = f"The deployment of {mark} failed because the certificate had expired on Monday. "
    history: Messages = [user(telling * 3)]
    before = []
    for turn in range(4):
        before.append(say(world, history, behaviour="retell"))
        told = assistant(f"You said: {history[-1]['content']}")
        history = [*history, told, user(f"{telling * 2} What about step {turn}?")]

    # The oldest turns give way to a summary; the newest stay word for word.
    compacted = [user("Summary of the conversation so far: it was the certificate."), *history[-4:]]
    after = say(world, compacted)

    assert {call["conversation"] for call in before} == {after["conversation"]}
    assert [call["round"] for call in before] == [1, 1, 1, 1]
    assert after["round"] == 2


def test_calls_of_a_model_without_messages_have_no_conversation(world: World, mark: str) -> None:
    body = {"model": "openai/text-embedding-sim", "input": mark}

    assert world.call_of(world.post("/v1/embeddings", body))["conversation"] is None


def test_a_session_of_claude_code_with_a_sub_agent_and_a_compaction(
    world: World, mark: str
) -> None:
    told = json.loads((FIXTURES / "clients/claude-code/2_turn.json").read_text())["says"]
    session = told["conversation"]

    def replay(path: Path) -> dict[str, Any]:
        """As it was recorded, in a session of its own."""
        sample = json.loads(path.read_text().replace(session, mark))
        # The simulated provider knows no system messages among the others, which are in beta.
        messages = [each for each in sample["body"]["messages"] if each["role"] != "system"]
        body = {**sample["body"], "messages": messages, "model": model_of("anthropic")}
        answer = world.post(sample["path"], {**body, "stream": False}, **sample["headers"])
        assert answer.status_code == 200, answer.text
        return world.call_of(answer)

    recorded = sorted((FIXTURES / "clients/claude-code").glob("[1-6]_*.json"))
    calls = [replay(path) for path in recorded]

    places = [
        tuple(call[name] for name in ("purpose", "lane", "generation", "round")) for call in calls
    ]
    assert places == [
        ("title", "side", None, None),
        ("chat", "main", 1, 1),
        ("chat", "main", 1, 1),
        ("chat", "main", 2, 1),
        ("compaction", "side", None, None),
        ("chat", "main", 3, 2),
    ]
    assert [call["conversation"] == mark for call in calls] == [True, True, False, True, True, True]
    part = world.api.get(f"/conversations/{calls[2]['conversation']}").json()
    whole = world.api.get(f"/conversations/{mark}").json()
    assert (part["parent"], whole["parent"]) == (mark, None)
    assert [each["id"] for each in whole["sub_agents"]] == [part["id"]]
    assert [each["opened_by"] for each in whole["rounds"]] == [None, "client_compaction"]
    assert whole["client"]["name"] == "claude-code"


def test_a_compaction_that_names_no_session_opens_a_round_of_the_one_that_it_summed_up(
    world: World, mark: str
) -> None:
    """As pi 1.6.0 compacts. To go back to before it is no further round."""
    agent = {"user_agent": "pi/1.6.0 (linux; node/v24.19.0; x64)"}
    session = {**agent, "session_id": mark, "x_session_affinity": mark}
    summarizer = {"role": "system", "content": "You are a context summarization assistant. Sum up!"}
    summed_up = (
        "The conversation history before this point was compacted into the following summary"
    )
    before = [user("Count!"), assistant("Seven."), user("And now?")]
    after = [user(f"{summed_up} summary:\n\n<summary>Counted.</summary>"), user("And now?")]

    turn = say(world, before, **session)
    side = say(world, [summarizer, user("# Conversation\n[User]: Count!")], **agent)
    turns = [say(world, messages, **session) for messages in (after, after, before)]

    assert (side["conversation"], side["purpose"], side["lane"]) == (None, "compaction", "side")
    assert [(call["conversation"], call["round"]) for call in (turn, *turns)] == [
        (mark, 1),
        (mark, 2),
        (mark, 2),
        (mark, 2),
    ]
    whole = world.api.get(f"/conversations/{mark}").json()
    assert [each["opened_by"] for each in whole["rounds"]] == [None, "client_compaction"]


def test_sub_agents_are_parts_of_what_our_own_header_names(world: World, mark: str) -> None:
    headers = {"x_helmdash_conversation": mark, "x_claude_code_session_id": f"s-{mark}"}
    main = say(world, [user("Hello?")], x_app="cli", **headers, x_claude_code_request_class="main")
    part = say(world, [user("Look!")], **headers, x_claude_code_agent_id="a1")

    assert (main["conversation"], part["conversation"]) == (mark, f"{mark}:a1")
    assert world.api.get(f"/conversations/{mark}:a1").json()["parent"] == mark


def test_an_item_of_a_kind_that_nobody_knows_is_the_models(world: World, mark: str) -> None:
    """As OpenAI adds kinds of items, and SDKs send all that a reply held."""
    history: list[dict[str, Any]] = []
    calls = []
    for turn in range(3):
        history.append(user(f"{mark} {turn}"))
        body = {"model": model_of(RESPONSES, "cached"), "input": history}
        answer = world.post("/v1/responses", body)
        output = answer.json()["output"]
        assert [item["type"] for item in output] == ["sparkle", "message"]
        history += output
        calls.append(world.call_of(answer))

    assert len({call["conversation"] for call in calls}) == 1
    assert [call["generation"] for call in calls] == [1, 2, 3]


def test_an_agent_without_a_user_agent_of_its_own_is_named(world: World, mark: str) -> None:
    system = {"role": "system", "content": "You are the GitHub Copilot CLI, a terminal assistant."}
    asked = {"role": "user", "content": f"Hello {mark}?"}
    body = {"model": model_of("openai"), "messages": [system, asked]}

    call = world.call_of(
        world.post("/v1/chat/completions", body, user_agent="OpenAI/JS 5.20.1", x_initiator="user")
    )

    assert call["client"] == {"name": "copilot", "version": None}


@pytest.mark.parametrize(
    ("behaviour", "placed_by"),
    [("random-ids", "called-tool-2 continue"), ("plain", "chain-1 new")],
)
def test_a_reply_that_is_sent_back_otherwise_is_known_by_the_id_of_its_tool_call(
    world: World, behaviour: str, placed_by: str, mark: str
) -> None:
    """As Semantic Kernel 1.45.0 does. An id like `call_sim0` could be anybody's."""
    tool = {"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}
    body = {"model": model_of("openai", behaviour), "tools": [tool]}

    def ask(*messages: dict[str, Any]) -> Any:
        said = {**body, "messages": [user(f"Hi {mark}"), *messages]}
        return world.post("/v1/chat/completions", said)

    def use_of(answer: Any) -> dict[str, Any]:
        use: dict[str, Any] = answer.json()["choices"][0]["message"]["tool_calls"][0]
        return use

    answers = [ask() for _ in range(2)]
    calls = []
    for answer in answers:
        use = use_of(answer)
        result = {"role": "tool", "tool_call_id": use["id"], "content": "Rain."}
        calls.append(world.call_of(ask({**assistant("Let me see."), "tool_calls": [use]}, result)))

    assert [call["placed_by"] for call in calls] == [placed_by] * 2
    if behaviour == "random-ids":
        assert [call["conversation"] for call in calls] == [
            world.call_of(answer)["conversation"] for answer in answers
        ]


@pytest.mark.parametrize(
    ("behaviour", "placed_by"),
    [("random-ids", "called-tool-2 continue"), ("plain", "chain-1 new")],
)
@pytest.mark.parametrize("agent", ["qwen-code", "smolagents"])
def test_a_history_that_is_written_anew_is_known_by_the_id_of_its_last_tool_call(
    world: World, agent: str, behaviour: str, placed_by: str, mark: str
) -> None:
    """As Qwen Code 0.24.4 goes on with a session, and smolagents 1.26.0 after a call of a tool.
    Two chats in the same words are told apart."""
    tool = {"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}
    body = {"model": model_of("openai", behaviour), "tools": [tool]}

    def ask(*messages: dict[str, Any]) -> Any:
        return world.post("/v1/chat/completions", {**body, "messages": list(messages)})

    def begin() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        first = ask(user(f"Hi {mark}"))
        use = first.json()["choices"][0]["message"]["tool_calls"][0]
        if agent == "smolagents":
            written = f"Calling tools:\n{[{'id': use['id'], 'type': 'function', 'function': {}}]}"
            return world.call_of(first), [assistant(written), user("Observation:\nRain.")]
        called = {"role": "assistant", "content": None, "tool_calls": [use]}
        history = [called, {"role": "tool", "tool_call_id": use["id"], "content": "Rain."}]
        second = ask(user(f"Hi {mark}"), *history)
        said = second.json()["choices"][0]["message"]["content"]
        return world.call_of(second), [*history, assistant(said), user("And now?")]

    begun = [begin() for _ in range(2)]
    asks = f"Hi {mark}" if agent == "smolagents" else f"It is late. Hi {mark}"
    calls = [world.call_of(ask(user(asks), *history)) for _, history in begun]

    assert [call["placed_by"] for call in calls] == [placed_by] * 2
    if behaviour == "random-ids":
        assert [call["conversation"] for call in calls] == [
            before["conversation"] for before, _ in begun
        ]
        assert [call["round"] for call in calls] == [1, 1]
