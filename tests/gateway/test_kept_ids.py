"""What an upstream keeps for all projects is gone on from by the project that made it alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.world import OWN_RESPONSES, RESPONSES, STRANGER, World, model_of, open_http

pytestmark = pytest.mark.xdist_group("gateway")

PATHS = ("/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens")
_PREVIOUS = "previous_response_id"
NOBODYS: list[tuple[dict[str, Any], str, str]] = [
    ({_PREVIOUS: "resp_of_nobody"}, _PREVIOUS, "previous_response_not_found"),
    ({"conversation": "conv_of_somebody"}, "conversation", "conversation_not_found"),
    ({"conversation": {"id": "conv_of_somebody"}}, "conversation", "conversation_not_found"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input", "item_not_found"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt", "prompt_not_found"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
     "input", "file_not_found"),
    ({"input": [{"type": "computer_call_output", "call_id": "c", "output": {"file_id": "file-1"}}]},
     "input", "file_not_found"),
    ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
     "tools", "vector_store_not_found"),
    ({"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}]},
     "tools", "file_not_found"),
    ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]},
     "tools", "container_not_found"),
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_ids_that_the_project_has_not_made_do_not_go_on(world: World, path: str, mark: str) -> None:
    model = model_of(RESPONSES, "plain", mark)

    for said, member, code in NOBODYS:
        answer = world.post(path, {"model": model, "input": [], **said})

        assert answer.status_code == 400, said
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == (code, member)
        assert error["type"] == "invalid_request_error"
        assert member in error["message"]
    # What a client's own tool is about is its own affair.
    schema = {"type": "object", "properties": {"file_id": {"default": "x"}}, "file_id": "x"}
    own = {"type": "function", "name": "open", "parameters": schema}
    said = {"model": model_of(RESPONSES, "plain"), "input": [{"role": "user", "content": "Hi"}]}
    assert world.post(path, {**said, "tools": [own]}).status_code == 200
    # The type may be left out.
    for item in ({"id": "msg_1"}, {"type": None, "id": "msg_1"}):
        assert world.post(path, {"model": model, "input": [item]}).status_code == 400

    assert world.fleet.responses.seen(mark) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_response_is_no_other_projects(world: World, path: str, mark: str) -> None:
    model = model_of(RESPONSES, "chained", mark)
    made = world.post(PATHS[0], {"model": model, "input": "Hello?"}).json()["id"]
    said = {"model": model, "input": [], "previous_response_id": made}

    assert world.post(path, said).status_code == 200
    with open_http(world.url, STRANGER) as stranger:
        # As forged in a report, by the name that a release in the making had for it.
        for name in (f"reply:{made}", f"\x1freply:{made}"):
            told = {"id": name, "model": "m", "provider": RESPONSES, "status": "success"}
            stranger.post("/api/v1/calls", json=told)
        refused = stranger.post(path, json=said)

    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "previous_response_not_found"
    assert len(world.fleet.responses.seen(mark)) == 2


def test_what_a_projects_own_key_reaches_is_the_projects(world: World, mark: str) -> None:
    model = model_of(OWN_RESPONSES, "plain", mark)

    for said, _, _ in NOBODYS:
        answer = world.post(PATHS[0], {"model": model, "input": "Hello?", **said})
        assert "not_found" not in answer.text
    assert len(world.fleet.responses.seen(mark)) == len(NOBODYS)
