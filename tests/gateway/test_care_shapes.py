"""Remediation in every client's own format: where guidance stands, and what a clear leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from helmdash.core.care.reminders import HEADINGS
from helmdash.core.care.restarts import Beginning, PartKind, RequestPart
from helmdash.gateway.histories.history import History, history_of
from helmdash.gateway.histories.rewriting import form_of, rewritten
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.prompt_weight import weigh
from helmdash.gateway.remediation.writing import written
from helmdash.gateway.requests.routes import Route, find_route
from helmdash.providers import openai_responses
from tests.gateway.house import MODELS, House
from tests.gateway.narrow import texts

pytestmark = pytest.mark.xdist_group("care")

OURS = "[HelmDash]"
PACKAGE = "## Goal and scope"
PAGE = "x" * 420


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format says things, as its clients write them by hand."""

    name: str
    path: str
    member: str
    first: list[dict[str, Any]]
    rest: dict[str, Any]
    user: Callable[[str], dict[str, Any]]
    # What the model said, as one entry or as several.
    reply: Callable[[dict[str, Any]], Any]
    results: Callable[[Any], list[dict[str, Any]]]


def _anthropic_results(reply: dict[str, Any]) -> list[dict[str, Any]]:
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": PAGE}
        for block in reply["content"]
        if block["type"] == "tool_use"
    ]
    return [{"role": "user", "content": results}] if results else []


def _gemini_results(reply: dict[str, Any]) -> list[dict[str, Any]]:
    results = [
        {"functionResponse": {"name": "look", "response": {"result": PAGE}}}
        for part in reply["parts"]
        if "functionCall" in part
    ]
    return [{"role": "user", "parts": results}] if results else []


def _ollama_results(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_name": "look", "content": PAGE}
        for _ in reply.get("tool_calls") or ()
    ]


def _responses_results(reply: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": PAGE}
        for item in reply
        if item["type"] == "function_call"
    ]


FORMATS = [
    Format(
        name="openai",
        path="/v1/responses",
        member="input",
        first=[{"role": "developer", "content": "Be an agent."}],
        rest={"store": False},
        user=lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}]},
        reply=lambda answer: answer["output"],
        results=_responses_results,
    ),
    Format(
        name="anthropic",
        path="/v1/messages",
        member="messages",
        first=[],
        rest={"max_tokens": 100, "system": "Be an agent.", "tools": []},
        user=lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
        reply=lambda answer: {"role": "assistant", "content": answer["content"]},
        results=_anthropic_results,
    ),
    Format(
        name="gemini",
        path="/v1beta/models/MODEL:generateContent",
        member="contents",
        first=[],
        rest={"systemInstruction": {"parts": [{"text": "Be an agent."}]}},
        user=lambda text: {"role": "user", "parts": [{"text": text}]},
        reply=lambda answer: answer["candidates"][0]["content"],
        results=_gemini_results,
    ),
    Format(
        name="ollama",
        path="/api/chat",
        member="messages",
        first=[{"role": "system", "content": "Be an agent."}],
        rest={"stream": False},
        user=lambda text: {"role": "user", "content": text},
        reply=lambda answer: answer["message"],
        results=_ollama_results,
    ),
]


class Talk:
    """A conversation in one format, generation by generation."""

    def __init__(self, house: House, form: Format, mark: str) -> None:
        self.house, self.form = house, form
        self.model = f"{MODELS[form.name]}-{mark}"
        self.history = list(form.first)
        self.told: list[Any] = []

    def say(self, text: str) -> None:
        self.history.append(self.form.user(text))

    def generate(self) -> bool:
        """One call; gives whether tools were called, whose results are then in the history."""
        body = {"model": self.model, self.form.member: self.history, **self.form.rest}
        path = self.form.path.replace("MODEL", self.model)
        answer = self.house.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        self.told.append(answer.headers)
        reply = self.form.reply(answer.json())
        results = self.form.results(reply)
        self.history += [*(reply if isinstance(reply, list) else [reply]), *results]
        return bool(results)

    @property
    def action(self) -> str:
        return str(self.told[-1]["x-helmdash-remediation"])

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The entries of the newest request, as the provider got them."""
        found: list[dict[str, Any]] = self.house.narrow.sent(self.model.partition("/")[2])[-1][
            self.form.member
        ]
        return found


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_guidance_and_a_clear(house: House, mark: str, form: Format) -> None:
    talk = Talk(house, form, mark)
    house.narrow.faults.clear()
    seen: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    talk.say("ask one tools=999")
    for _ in range(80):
        before = list(talk.history)
        has_prompt = before[-1] == form.user("ask more tools=999")
        talk.generate()
        key = (talk.action, has_prompt)
        if key not in seen:
            seen[key] = talk.sent
            _check(form, key, before=before, sent=talk.sent)
        if talk.action == "clear":
            break
        if key == ("guide", False) and ("guide", True) not in seen:
            talk.say("ask more tools=999")

    cleared = seen["clear", False]
    talk.generate()
    assert talk.action == "none"
    assert talk.sent[: len(cleared)] == cleared
    assert {("guide", False), ("guide", True), ("record_prompt", False)} <= set(seen)
    assert house.narrow.faults == []


# A turn of an agent in each format, as clients write it: its call and the result.
_TURNS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": PAGE},
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "é"}]},
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
    ],
    "ollama": [
        {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"role": "tool", "tool_name": "look", "content": PAGE, "images": ["aGk="]},
    ],
}


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_request_that_only_gets_longer_says_what_reading_all_of_it_says(
    form: Format, turns: int
) -> None:
    route = find_route(form.path.replace("MODEL", "m"), {}, b"")
    assert route is not None
    entries = [*form.first, form.user("Look."), *turns * _TURNS[form.name]]
    parsed = {"model": "m", **form.rest, form.member: entries}
    came = _read(route, json.dumps(parsed).encode(), parsed)
    history = history_of(route.client, came, budget=None)
    assert history is not None

    sent = written(history, Beginning(), guide="Write é down.", route=route, client=route.client)

    assert sent == _read(route, sent.body, json.loads(sent.body))
    assert sent.chat != came.chat
    assert came.body[:-2] in sent.body or not turns


def _read(route: Route, body: bytes, parsed: dict[str, Any]) -> OutgoingRequest:
    chat = route.client.read_request(parsed, model=route.model, stream=route.stream)
    images, composition = weigh(chat)
    return OutgoingRequest(
        body=body, parsed=parsed, chat=chat, images=images, composition=composition
    )


def _check(
    form: Format,
    key: tuple[str, bool],
    *,
    before: list[dict[str, Any]],
    sent: list[dict[str, Any]],
) -> None:
    action, has_prompt = key
    if action == "none":
        assert sent == before
    elif action == "clear":
        assert sent[: len(form.first)] == form.first
        package, *pending = sent[len(form.first) :]
        assert PACKAGE in texts([package])[0]
        asked = [entry for entry in before if any("ask" in text for text in texts([entry]))]
        assert pending == asked
    elif has_prompt:
        assert sent[-1] == before[-1]
        assert texts([sent[-2]])[0].startswith(OURS)
    else:
        assert texts([sent[-1]])[0].startswith(OURS)
        assert sent[-2] == before[-1]


def test_generate_of_ollama_has_no_history_and_is_left_alone(house: House, mark: str) -> None:
    body = {"model": f"{MODELS['ollama']}-{mark}", "prompt": "Hi", "stream": False}
    answer = house.http.post("/api/generate", json=body)

    assert "x-helmdash-remediation" not in answer.headers


def test_a_text_for_an_input_becomes_an_item_where_another_comes_beside_it() -> None:
    form, body = form_of(openai_responses.CLIENT), b'{"input": "Hi"}'
    assert form is not None
    own = RequestPart(piece=PartKind.KEPT, index=0)
    said = RequestPart(piece=PartKind.SAID, text="First.")

    assert rewritten(form, body, {"input": "Hi"}, [own]) == (body, {"input": "Hi"})
    written, parsed = rewritten(form, body, {"input": "Hi"}, [said, own])

    assert [item["content"][0]["text"] for item in parsed["input"]] == ["First.", "Hi"]
    assert json.loads(written) == parsed


def _history(path: str, parsed: dict[str, Any]) -> tuple[History, Route]:
    route = find_route(path, {}, b"")
    assert route is not None
    history = history_of(
        route.client, _read(route, json.dumps(parsed).encode(), parsed), budget=None
    )
    assert history is not None
    return history, route


def _programs() -> list[dict[str, Any]]:
    """A tool is called by code that runs at Anthropic, which goes on with the result."""
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}, "caller": caller}
    run = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": PAGE}
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [run, use]},
        {"role": "user", "content": [result]},
    ]


def test_nothing_is_said_beside_results_that_a_program_waits_for() -> None:
    messages = _programs()
    parsed = {"model": "m", "max_tokens": 9, "messages": messages}
    history, route = _history("/v1/messages", parsed)

    told = written(history, Beginning(), guide="Write.", route=route, client=route.client).parsed
    cleared = written(history, history.bare(), route=route, client=route.client).parsed

    assert told["messages"][-2:] == messages[-2:]
    assert "Write." in texts(told["messages"][:-2])
    assert cleared["messages"][-2:] == messages[-2:]
    # Called by the model itself, the same results may have a text behind them.
    del messages[1]["content"][1]["caller"]
    history, route = _history("/v1/messages", {**parsed, "messages": messages})
    told = written(history, Beginning(), guide="Write.", route=route, client=route.client).parsed
    assert texts(told["messages"][-1:]) == ["Write."]


def test_leave_to_call_a_tool_is_not_parted_from_who_asked_for_it() -> None:
    asked: list[dict[str, Any]] = [
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "server_label": "s",
            "name": "look",
            "arguments": "{}",
        },
    ]
    given = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    user = {"role": "user", "content": "Look."}
    for items in ([user, *asked, given], [user, *asked, user, given]):
        history, route = _history("/v1/responses", {"model": "m", "input": items})

        cleared = written(history, history.bare(), route=route, client=route.client).parsed
        told = written(history, Beginning(), guide="Write.", route=route, client=route.client)

        sent = cleared["input"]
        assert (given in sent) == all(item in sent for item in asked), sent
        assert not (given in sent and sent.index(given) < sent.index(asked[-1]))
        assert [item for item in told.parsed["input"] if item in items] == items
    history, _ = _history("/v1/responses", {"model": "m", "input": [user, *asked, given]})
    assert history.for_clear().draft()[HEADINGS[1]].endswith("- look({}) -> approved")
