"""OpenAI's Responses API on the gateway: passed through, and translated for who has another."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.clients import PIXEL, TOOL, Client
from tests.gateway.world import (
    COMPLETION,
    OWN_RESPONSES,
    PLAIN_RESPONSES,
    PROMPT,
    PROVIDERS,
    RESPONSES,
    STRANGER,
    World,
    model_of,
    open_http,
)
from tests.support.upstreams.plays import WHOLE
from tests.support.upstreams.responses import RESPONSE_ID

pytestmark = pytest.mark.xdist_group("gateway")

PATH = "/v1/responses"


def asked(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "input": "Hello?", **more}


@pytest.mark.parametrize("stream", [False, True])
def test_to_an_upstream_that_speaks_it_every_byte_goes_on(
    world: World, stream: bool, mark: str
) -> None:
    model = model_of(RESPONSES, "cached", mark)
    items = [{"type": "sparkle", "glow": 1.50}, {"role": "user", "content": "ü ✓"}]
    body = json.dumps(asked(model, input=items, stream=stream, x_new={"a": 1.50}), indent=3)

    answer = world.post(PATH, content=body.encode())

    (seen,) = world.fleet.responses.seen(mark)
    assert seen.path == PATH
    assert seen.body.decode() == body.replace(f"{RESPONSES}/", "")
    assert answer.content == bytes(seen.sent)
    assert answer.headers["content-type"] == (
        "text/event-stream; charset=utf-8" if stream else "application/json"
    )
    call = world.call_of(answer)
    assert (call["status"], call["cause"]) == ("success", None)
    assert (call["finish_reason"], call["finish_reason_raw"]) == ("stop", "completed")
    usage = call["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (PROMPT, COMPLETION)
    assert (usage["cached_tokens"], usage["cache_write_tokens"]) == (1000, 100)
    assert call["raw_content_len"] == len(WHOLE.encode())
    assert call["upstream_model"].startswith("answer-cached")


@pytest.mark.one_database
@pytest.mark.parametrize("provider", [RESPONSES, "openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("behaviour", "status", "reason", "finish"),
    [
        ("plain", "completed", None, "stop"),
        ("reasoning", "completed", None, "stop"),
        ("cut-short", "incomplete", "max_output_tokens", "length"),
    ],
)
def test_how_a_response_ends(
    world: World, provider: str, stream: bool, behaviour: str, status: str, reason: str | None,
    finish: str, mark: str,
) -> None:  # fmt: skip
    answer = world.post(PATH, asked(model_of(provider, behaviour, mark), stream=stream))

    response = last_of(answer.text) if stream else answer.json()
    assert response["status"] == status
    assert (response["incomplete_details"] or {}).get("reason") == reason
    assert response["usage"]["input_tokens"] == PROMPT
    call = world.call_of(answer)
    assert (call["finish_reason"], call["status"]) == (finish, "success")


def last_of(stream: str) -> Any:
    """What the last event holds."""
    data = [line[6:] for line in stream.splitlines() if line.startswith("data: ")]
    return json.loads(data[-1])["response"]


@pytest.mark.one_database
def test_refusals_and_filters_are_told_apart(world: World, mark: str) -> None:
    for provider in (RESPONSES, "openai"):
        refused = world.post(PATH, asked(model_of(provider, "refusal", mark)))
        filtered = world.post(PATH, asked(model_of(provider, "filter", mark)))

        message = refused.json()["output"][-1]
        assert message["content"] == [{"type": "refusal", "refusal": "I cannot help with that."}]
        assert filtered.json()["incomplete_details"] == {"reason": "content_filter"}
        assert world.call_of(refused)["finish_reason"] == "refusal"
        assert world.call_of(filtered)["finish_reason"] == "content_filter"


def test_an_upstream_without_it_is_asked_once_and_then_translated(world: World, mark: str) -> None:
    first = world.post(PATH, asked(model_of("openai", "plain", f"a{mark}")))
    second = world.post(PATH, asked(model_of("openai", "plain", f"b{mark}")))

    assert first.json()["output"][0]["content"][0]["text"] == WHOLE
    assert second.json()["output"][0]["content"][0]["text"] == WHOLE
    paths = [seen.path for seen in world.fleet.openai.seen(mark)]
    # Another test may have asked before this one.
    assert paths[-2:] == ["/v1/chat/completions"] * 2
    assert paths[:-2] in ([], [PATH])
    for answer in (first, second):
        assert world.call_of(answer)["attempt"] == 1


CAUSES = {"error-midway": "upstream_error_in_200", "cut-midway": "upstream_error"}


def test_a_stream_that_fails_or_breaks_off(world: World, mark: str) -> None:
    for provider in (RESPONSES, "openai"):
        for behaviour, cause in CAUSES.items():
            answer = world.post(PATH, asked(model_of(provider, behaviour, mark), stream=True))

            names = [line[7:] for line in answer.text.splitlines() if line.startswith("event: ")]
            assert names[-1] in ("response.failed", "error"), (provider, behaviour)
            assert "response.completed" not in names
            call = world.call_of(answer)
            assert call["status"] == "error"
            assert call["cause"]["name"] == cause


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"input": [{"type": "compaction", "encrypted_content": "gAAA"}]}, "compaction"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "item_reference"),
        ({"input": [{"type": "from_tomorrow"}]}, "from_tomorrow"),
        ({"tool_choice": {"type": "web_search"}, "tools": [{"type": "web_search"}]}, "tool_choice"),
        ({"input": None}, "input"),
        ({"input": [{"role": "nobody", "content": "x"}]}, r"input\[0\].role"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, r"input\[0\].name"),
        ({"tools": [{"type": "function"}]}, r"tools\[0\].name"),
        ({"text": {"format": "json"}}, "text.format"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ],
)
def test_what_cannot_be_said_is_refused_in_openais_words(
    clients: dict[str, Client], world: World, said: dict[str, Any], words: str, mark: str
) -> None:
    sdk: openai.OpenAI = clients[RESPONSES].sdk  # type: ignore[attr-defined]
    model = model_of("gemini", "plain", mark)

    with pytest.raises(openai.BadRequestError, match=words):
        sdk.responses.create(model=model, extra_body=asked(model, **said))

    assert world.fleet.gemini.seen(mark) == []


@pytest.mark.one_database
def test_what_can_be_done_without_is_left_out_with_a_sentence(world: World, mark: str) -> None:
    tools = [
        {"type": "web_search"},
        {"type": "function", "name": TOOL, "parameters": {"type": "object"}},
    ]
    items = [
        {"role": "user", "content": "Look it up."},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"role": "user", "content": "Again?"},
    ]

    answer = world.post(
        PATH,
        asked(
            model_of("openai", "plain", mark),
            input=items,
            tools=tools,
            truncation="auto",
            service_tier="flex",
        ),
    )

    assert answer.status_code == 200
    for words in ("web_search ", "web_search_call", "truncation", "service_tier"):
        assert words in answer.headers["x-helmdash-note"]
    sent = world.fleet.openai.seen(mark)[-1].json
    assert [tool["function"]["name"] for tool in sent["tools"]] == [TOOL]
    assert [message["content"] for message in sent["messages"]] == [
        "Look it up.", "It rains.", "Again?",
    ]  # fmt: skip
    call = world.call_of(answer)
    assert len(call["notes"]) == 4
    assert call["notes"] == call["metadata"]["notes"]
    assert call["finish_reason"] == "tool_calls"


def test_a_fragment_is_measured_by_nothing_it_sends(world: World, mark: str) -> None:
    """The server has the rest of the prompt: a long input with few tokens is no cut."""
    model = model_of(RESPONSES, "plain", mark)
    long = "word " * 20_000
    world.post(PATH, asked(model))
    compacted = {"type": "compaction", "encrypted_content": "gAAA"}

    for said in (
        {"previous_response_id": RESPONSE_ID},
        {"input": [compacted, {"role": "user", "content": long}]},
    ):
        call = world.call_of(world.post(PATH, asked(model, **{"input": long, **said})))

        assert call["health"]["level"] == "healthy"
        assert call.get("suspected_cut") in (None, {})
        assert call["estimate_tokens"] is None


@pytest.mark.one_database
def test_images_files_and_parsed_replies(
    clients: dict[str, Client], world: World, mark: str
) -> None:
    class Weather(BaseModel):
        city: str

    sdk: openai.OpenAI = clients[RESPONSES].sdk  # type: ignore[attr-defined]
    for provider in PROVIDERS:
        parsed = sdk.responses.parse(
            model=model_of(provider, "plain", mark), input="Weather?", text_format=Weather
        )
        assert isinstance(parsed.output_parsed, Weather)
        assert world.call_to(model_of(provider, "plain", mark))["response_format"] == "json_schema"
    image: Any = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    result: Any = {"type": "function_call_output", "call_id": "c", "output": [image]}
    call: Any = {"type": "function_call", "call_id": "c", "name": TOOL, "arguments": "{}"}
    seen = sdk.responses.create(
        model=model_of("openai", "plain", mark),
        input=[{"role": "user", "content": "See?"}, call, result],
    )
    assert seen.output_text == "I see 1 image(s)."


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("provider", "behaviour", "error", "status"),
    [
        (RESPONSES, "busy", "RateLimitError", 429),
        (RESPONSES, "overflow", "BadRequestError", 400),
        (RESPONSES, "no-such-model", "NotFoundError", 404),
        ("anthropic", "busy", "RateLimitError", 429),
        ("anthropic", "overflow", "BadRequestError", 400),
        ("openai", "overflow", "BadRequestError", 400),
        ("openai", "no-such-model", "NotFoundError", 404),
    ],
)
def test_an_upstreams_error_is_the_sdks_own(
    clients: dict[str, Client], world: World, provider: str, behaviour: str, error: str,
    status: int,
) -> None:  # fmt: skip
    sdk: openai.OpenAI = clients[RESPONSES].sdk  # type: ignore[attr-defined]

    with pytest.raises(getattr(openai, error)) as caught:
        sdk.responses.create(model=model_of(provider, behaviour), input="Hello?")

    assert caught.value.status_code == status
    if behaviour == "overflow":
        assert caught.value.code == "context_length_exceeded"
    call = world.call_of(caught.value.response)
    assert (call["status"], call["http_status"]) == ("error", status)


def test_a_chain_of_responses_is_one_conversation(world: World, mark: str) -> None:
    """Each request holds what is new; a response that has been gone on from branches off."""
    model = model_of(RESPONSES, "chained", mark)

    def say(**more: Any) -> Any:
        answer = world.post(PATH, asked(model, **more))
        return answer.json()["id"], world.call_of(answer)

    first_id, first = say(input=f"One {mark}")
    failed = world.call_of(
        world.post(
            PATH, asked(f"{RESPONSES}/answer-overflow.{mark}", previous_response_id=first_id)
        )
    )
    second_id, second = say(previous_response_id=first_id)
    _, third = say(previous_response_id=second_id, input=[])
    _, branch = say(previous_response_id=first_id)
    _, unkept = say(input=f"One {mark}", store=False)

    calls = (first, failed, second, third)
    assert {call["conversation"] for call in calls} == {first["conversation"]}
    assert [call["generation"] for call in calls] == [1, 2, 3, 4]
    assert [call["placed_by"] for call in calls[1:]] == ["kept-reply-1 continue"] * 3
    assert branch["placed_by"] == "kept-reply-1 branch"
    names = {call["conversation"] for call in (first, branch, unkept)}
    assert len(names) == 3


def test_a_history_that_names_its_replies_by_their_ids_is_one_conversation(
    world: World, mark: str
) -> None:
    """As the AI SDK (tried: 7.0.173) sends it, unless it is told not to have replies stored: what a
    model said, and all that it thought, by the ids of the items; calls of tools in full."""
    model = model_of(OWN_RESPONSES, "plain", mark)
    tools = [{"type": "function", "name": TOOL, "parameters": {"type": "object"}}]
    history: list[dict[str, Any]] = []

    def step(*more: dict[str, Any]) -> Any:
        history.extend(more)
        answer = world.post(PATH, asked(model, input=history, tools=tools, store=True))
        used = [item for item in answer.json()["output"] if item["type"] == "function_call"]
        history.append({"type": "item_reference", "id": f"rs_{len(history)}"})
        if used:
            call_id = used[0]["call_id"]
            history.append(
                {name: used[0][name] for name in ("type", "call_id", "name", "arguments")}
            )
            history.append({"type": "function_call_output", "call_id": call_id, "output": "rain"})
        else:
            history.append({"type": "item_reference", "id": f"msg_{len(history)}"})
        return world.call_of(answer)

    calls = [step({"role": "user", "content": f"Hi {mark}"}), step()]
    calls += [step({"role": "user", "content": "And now?"}), step()]

    assert [call["finish_reason"] for call in calls] == ["tool_calls", "stop"] * 2
    assert [call["generation"] for call in calls] == [1, 2, 3, 4]
    assert len({call["conversation"] for call in calls}) == 1


def test_a_conversation_of_the_servers_is_named_by_its_id(world: World, mark: str) -> None:
    for said in ({"conversation": f"conv_{mark}"}, {"conversation": {"id": f"conv_{mark}"}}):
        answer = world.post(PATH, asked(model_of(OWN_RESPONSES, "plain", mark), **said))

        assert world.call_of(answer)["conversation"] == f"conv_{mark}"


@pytest.mark.parametrize(("truncation", "rule"), [("auto", "truncation_auto"), ("disabled", "*")])
def test_a_prompt_that_was_cut_as_it_was_asked_for_is_told_so(
    world: World, truncation: str, rule: str, mark: str
) -> None:
    said = {"input": "word " * 20_000, "truncation": truncation, "store": False}

    call = world.call_of(world.post(PATH, asked(model_of(RESPONSES, "plain", mark), **said)))

    assert call["health"]["level"] == "unknown"
    assert call["suspected_cut"]["rule"] == rule or rule == "*"


def test_a_kept_response_is_asked_for_by_the_project_that_made_it(
    world: World, clients: dict[str, Client], mark: str
) -> None:
    sdk: openai.OpenAI = clients[RESPONSES].sdk  # type: ignore[attr-defined]
    model = model_of(RESPONSES, "chained", mark)
    made = world.post(PATH, asked(model)).json()["id"]
    unkept = world.post(PATH, asked(model, store=False)).json()["id"]

    assert sdk.responses.retrieve(made, include=["reasoning.encrypted_content"]).id == made
    assert sdk.responses.cancel(made).status == "cancelled"
    assert [item.id for item in sdk.responses.input_items.list(made, limit=2)] == ["msg_in"]
    assert sdk.responses.delete(made) is None
    seen = [each for each in world.fleet.responses.seen() if made in each.path]
    assert [f"{each.method} {each.path.partition(made)[2]}" for each in seen] == [
        "GET ", "POST /cancel", "GET /input_items", "DELETE ",
    ]  # fmt: skip
    assert [each.query for each in seen[::2]] == [
        "include%5B%5D=reasoning.encrypted_content",
        "limit=2",
    ]
    for reply_id in (unkept, "resp_of_somebody"):
        with pytest.raises(openai.NotFoundError, match="not found"):
            sdk.responses.retrieve(reply_id)
    crowded = world.http.get(f"{PATH}/{made}?" + "&".join(f"include[]={n}" for n in range(33)))
    assert (crowded.status_code, crowded.json()["error"]["type"]) == (400, "invalid_request_error")
    with open_http(world.url, STRANGER) as stranger:
        assert stranger.get(f"{PATH}/{made}").status_code == 404
        assert stranger.delete(f"{PATH}/{made}").status_code == 404
    refused = world.http.put(f"{PATH}/{made}")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, DELETE")
    assert "takes GET or DELETE, not PUT" in refused.text
    assert world.http.get(f"{PATH}/..%2Fmodels").status_code == 404


@pytest.mark.one_database
def test_tokens_are_counted_by_who_can(world: World, clients: dict[str, Client], mark: str) -> None:
    sdk: openai.OpenAI = clients[RESPONSES].sdk  # type: ignore[attr-defined]

    counted = sdk.responses.input_tokens.count(model=model_of(RESPONSES, "plain", mark), input="Hi")
    estimated = world.post(
        f"{PATH}/input_tokens", {"model": model_of("gemini", "plain", mark), "input": "word " * 99}
    )

    assert (counted.object, counted.input_tokens) == ("response.input_tokens", 11)
    assert estimated.headers["x-helmdash-estimated"] == "1"
    assert 50 < estimated.json()["input_tokens"] < 500
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        sdk.responses.input_tokens.count(
            model=model_of("gemini", "plain", mark), previous_response_id="resp_1"
        )


@pytest.mark.parametrize("provider", [RESPONSES, PLAIN_RESPONSES, "openai", "anthropic"])
def test_a_history_is_compacted(world: World, provider: str, mark: str) -> None:
    """Sealed where the upstream does it; in words, which any model reads, where we do."""
    model = model_of(provider, "plain", mark)
    history: Any = [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "Done."},
    ]

    compacted = world.post(f"{PATH}/compact", {"model": model, "input": history}).json()
    went_on = world.post(PATH, asked(model, input=[*compacted["output"], history[0]]))

    assert compacted["object"] == "response.compaction"
    assert [item["type"] for item in compacted["output"]] == ["message", "compaction"]
    assert went_on.status_code == 200
    second, first = world.calls_to(model, count=2)
    assert (first["purpose"], first["lane"], first["cause"]) == ("compaction", "side", None)
    assert second["lane"] == "main"
    if provider != RESPONSES:
        server = RESPONSES if provider == PLAIN_RESPONSES else provider
        sent = world.fleet[server].seen(mark)[-1].text
        assert json.dumps(WHOLE, ensure_ascii=False)[1:-1] in sent
        assert "Sum up the conversation" not in sent


@pytest.mark.one_database
def test_a_compaction_without_a_summary_is_an_error(world: World, mark: str) -> None:
    answer = world.post(
        f"{PATH}/compact", {"model": model_of("openai", "silent-stop", mark), "input": "Do it."}
    )

    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "server_error")
    assert world.call_of(answer)["status"] == "error"


def test_a_stream_that_a_client_asks_for_again_is_another_attempt(world: World, mark: str) -> None:
    calls = []
    for provider, behaviour in ((RESPONSES, "cut-midway"), ("openai", "cut-midway")):
        model = model_of(provider, behaviour, mark)
        for _ in range(3):
            answer = world.post(
                PATH,
                asked(model, stream=True),
                x_helmdash_conversation=f"{provider}-{mark}",
                x_helmdash_remediation="on",
            )
            calls.append(world.call_of(answer))

    assert [call["attempt"] for call in calls] == [1, 2, 3, 1, 2, 3]
    assert {call["generation"] for call in calls} == {1}


def test_a_response_that_is_made_in_the_background_is_no_empty_one(world: World, mark: str) -> None:
    said = asked(model_of(RESPONSES, "plain", mark), background=True)
    answer = world.post(PATH, said, x_helmdash_conversation=mark)

    call = world.call_of(answer)
    assert (call["status"], call["cause"], call["raw_content_len"]) == ("success", None, None)
    assert (call["finish_reason"], call["finish_reason_raw"]) == (None, "queued")
    assert call["usage"]["prompt_tokens"] is None
    assert call["health"]["level"] == "unknown"

    # Whoever asks for it later is told the usage, and so is its call.
    for _ in range(2):
        later = world.http.get(f"{PATH}/{answer.json()['id']}")
        assert later.json()["status"] == "completed"
    call = world.call_of(answer)
    assert (call["finish_reason"], call["usage"]["prompt_tokens"]) == ("stop", PROMPT)
    assert call["health"]["level"] == "healthy"
    whole = world.api.get(f"/conversations/{mark}").json()
    assert (whole["health"]["level"], whole["generation"]) == ("healthy", 1)


def test_a_response_goes_on_in_the_background_when_its_client_has_left(
    world: World, mark: str
) -> None:
    said = asked(model_of(RESPONSES, "endless", mark), background=True, stream=True)
    named = {"x-helmdash-conversation": mark}
    with world.http.stream("POST", PATH, json=said, headers=named) as answer:
        next(answer.iter_bytes())
    assert world.call_of(answer)["cause"]["name"] == "client_disconnected"

    world.http.get(f"{PATH}/resp_later_{mark}?stream=true&starting_after=1")

    call = world.call_of(answer)
    assert (call["status"], call["cause"]) == ("success", None)
    assert (call["finish_reason"], call["usage"]["prompt_tokens"]) == ("stop", PROMPT)
    assert world.api.get(f"/conversations/{mark}").json()["health"]["level"] == "healthy"


def test_a_stream_about_such_a_response_tells_its_end_too(world: World, mark: str) -> None:
    said = asked(model_of(RESPONSES, "plain", mark), background=True)
    answer = world.post(PATH, said, x_helmdash_conversation=mark)
    assert world.call_of(answer)["usage"]["prompt_tokens"] is None
    address = f"{PATH}/{answer.json()['id']}"

    # It goes on behind what was read before.
    later = world.http.get(f"{address}?stream=true&starting_after=2")
    assert later.text.endswith("\n\n")
    assert "response.created" not in later.text

    call = world.call_of(answer)
    assert (call["finish_reason"], call["usage"]["prompt_tokens"]) == ("stop", PROMPT)
