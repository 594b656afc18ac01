"""What an upstream keeps for all projects is gone on from by the project that made it alone."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.gateway.world import (
    OTHER_PROJECT,
    OWN_RESPONSES,
    RESPONSES,
    STRANGER,
    World,
    model_of,
    open_http,
)

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
    ({"input": [{"type": "image_generation_call", "id": "ig_1"}]}, "input", "image_not_found"),
]  # fmt: skip

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
_FILE = {"type": "file", "file": {"file_id": "file-1"}}
_DOCUMENT = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}
_PAGES = {"type": "document", "source": {"type": "content", "content": [_DOCUMENT]}}
# A path, its upstream, a part, and where the part names a file. Parts that nobody translates go to
# an upstream of another format as they are.
FILES: list[tuple[str, str, dict[str, Any], str]] = [
    (CHAT, "openai", _FILE, "messages[1].content[1].file.file_id"),
    (CHAT, RESPONSES, _FILE, "messages[1].content[1].file.file_id"),
    (CHAT, "anthropic", _DOCUMENT, "messages[1].content[1].source.file_id"),
    (MESSAGES, "anthropic", _DOCUMENT, "messages.1.content.1.source.file_id"),
    (MESSAGES, "anthropic", {**_DOCUMENT, "type": "image"}, "messages.1.content.1.source.file_id"),
    (MESSAGES, "anthropic", {**_RESULT, "content": [_PAGES]},
     "messages.1.content.1.content.0.source.content.0.source.file_id"),
    (MESSAGES, "anthropic", {"type": "container_upload", "file_id": "file_1"},
     "messages.1.content.1.file_id"),
    (MESSAGES, "openai", _FILE, "messages.1.content.1.file.file_id"),
    (f"{MESSAGES}/count_tokens", "anthropic", _DOCUMENT, "messages.1.content.1.source.file_id"),
]  # fmt: skip
# What a file holds, a client's own words, and what Anthropic's server made, said to it again.
NO_FILES: list[tuple[str, str, dict[str, Any]]] = [
    (CHAT, "openai", {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,x"}}),
    (MESSAGES, "anthropic",
     {"type": "tool_use", "id": "toolu_1", "name": "open", "input": {"file_id": "file_1"}}),
    (MESSAGES, "anthropic",
     {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content":
      {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0,
       "content": [{"type": "code_execution_output", "file_id": "file_1"}]}}),
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
    # Looked at before anybody has refused a kind that is no word.
    assert world.post(path, {**said, "tools": [{**own, "type": ["function"]}]}).status_code == 400
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


# An upstream of the other project's own, by the name of one that all share; `made` says whether
# there is one.
_OWN_BY_THAT_NAME = """
from helmdash.records.models import Project, Upstream
from helmdash.records.access.secrets import seal
named = dict(name={name!r}, project=Project.objects.get(slug={other!r}))
Upstream.objects.filter(**named).delete()
if {made!r}:
    shared = Upstream.objects.get(name={name!r}, project=None)
    Upstream.objects.create(
        **named, kind="openai", base_url=shared.base_url, key_encrypted=seal("sk-of-the-other"),
        allow_private=True, models_served="answer-*", formats="responses",
    )
"""


def _own_by_that_name(world: World, *, made: bool) -> None:
    code = _OWN_BY_THAT_NAME.format(name=RESPONSES, other=OTHER_PROJECT, made=made)
    done = world.served.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr
    time.sleep(1.0)  # what holds for a key is at most 0.9 s old


def test_what_an_own_server_calls_a_reply_is_not_what_the_shared_one_keeps(
    world: World, mark: str
) -> None:
    """A server of the other project's choice may say any id, also that of somebody's response."""
    model = model_of(RESPONSES, "plain", mark)
    made = world.post(PATHS[0], {"model": model, "input": "Hello?"}).json()["id"]
    said = {"model": model, "input": [], "previous_response_id": made}
    with open_http(world.url, STRANGER) as stranger:
        _own_by_that_name(world, made=True)
        claimed = stranger.post(PATHS[0], json={"model": model, "input": "Hello?"}).json()["id"]
        own = [stranger.get(f"{PATHS[0]}/{made}"), stranger.post(PATHS[0], json=said)]

        _own_by_that_name(world, made=False)
        shared = [
            stranger.get(f"{PATHS[0]}/{made}"),
            stranger.delete(f"{PATHS[0]}/{made}"),
            *(stranger.post(path, json=said) for path in PATHS),
        ]

    assert claimed == made
    assert [each.status_code for each in own] == [200, 200]
    assert [each.status_code for each in shared] == [404, 404, 400, 400, 400]
    assert world.http.get(f"{PATHS[0]}/{made}").status_code == 200


def test_what_a_projects_own_key_reaches_is_the_projects(world: World, mark: str) -> None:
    model = model_of(OWN_RESPONSES, "plain", mark)

    for said, _, _ in NOBODYS:
        answer = world.post(PATHS[0], {"model": model, "input": "Hello?", **said})
        assert "not_found" not in answer.text
    assert len(world.fleet.responses.seen(mark)) == len(NOBODYS)


def _saying(model: str, part: dict[str, Any]) -> dict[str, Any]:
    role = "assistant" if part["type"] in ("tool_use", "code_execution_tool_result") else "user"
    said = [{"type": "text", "text": "Look."}, part]
    messages = [{"role": "user", "content": "Hello?"}, {"role": role, "content": said}]
    return {"model": model, "max_tokens": 100, "messages": messages}


_SAID = [{"role": "user", "content": "Hello?"}]
_MADE = {"max_tokens": 100, "messages": _SAID}
_OWN_SKILL = {"type": "custom", "skill_id": "skill_1", "version": "latest"}
# What Anthropic keeps beside files; what it keeps for everybody.
CONTAINERS: list[tuple[dict[str, Any], str, str]] = [
    ({"container": "container_1"}, "container", "Container"),
    ({"container": {"id": "container_1"}}, "container.id", "Container"),
    ({"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}, _OWN_SKILL]}},
     "container.skills.1.skill_id", "Skill"),
]  # fmt: skip
_EVERYBODYS = {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}}


def test_containers_and_skills_of_a_shared_account_are_nobodys(world: World, mark: str) -> None:
    model = model_of("anthropic", "plain", mark)

    for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
        for said, where, what in CONTAINERS:
            answer = world.post(path, {"model": model, **_MADE, **said})
            assert answer.status_code == 400, (path, said)
            assert answer.json()["error"]["message"].startswith(f"{where}: {what} not found.")
    assert world.fleet.anthropic.seen(mark) == []
    world.post(MESSAGES, {"model": model, **_MADE, **_EVERYBODYS})
    assert len(world.fleet.anthropic.seen(mark)) == 1
    # It stays in its own format: no other upstream gets it.
    other = model_of("openai", "plain", mark)
    assert world.post(MESSAGES, {"model": other, **_MADE, **CONTAINERS[0][0]}).status_code == 200


@pytest.mark.parametrize("path", [MESSAGES, f"{MESSAGES}/count_tokens"])
def test_a_prompt_is_compared_with_those_of_the_project_alone(
    world: World, path: str, mark: str
) -> None:
    model = model_of("anthropic", "plain", mark)

    def body(previous: object) -> dict[str, Any]:
        return {"model": model, **_MADE, "diagnostics": {"previous_message_id": previous}}

    version = {"anthropic-version": "2023-06-01"}
    made = world.http.post(MESSAGES, json=body(None), headers=version).json()["id"]
    with open_http(world.url, STRANGER) as stranger:
        stranger.headers.update(version)
        refused = [stranger.post(path, json=body(each)) for each in (made, "msg_nobodys", 7)]
        began = stranger.post(MESSAGES, json=body(None))
    own = world.http.post(path, json=body(made), headers=version)

    for answer in refused:
        assert answer.status_code == 400, answer.text
        message = answer.json()["error"]["message"]
        assert message.startswith("diagnostics.previous_message_id: Message not found.")
    assert (began.status_code, own.status_code) == (200, 200)
    assert len(world.fleet.anthropic.seen(mark)) == 3
    nothing = {"model": model, **_MADE, "diagnostics": None}
    assert world.http.post(MESSAGES, json=nothing, headers=version).status_code == 200


_GOOGLES = "https://generativelanguage.googleapis.com/v1beta/files/abc"


def _file_part(address: str) -> dict[str, Any]:
    return {"fileData": {"mimeType": "image/png", "fileUri": address}}


def _part_said(part: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "Look."}, part]}]}


_TEXT = _part_said({"text": "Hello?"})
_SNAKE = {"file_data": {"mime_type": "image/png", "file_uri": "files/abc"}}
_STORES = {"fileSearchStoreNames": ["fileSearchStores/s"]}
GEMINIS: list[tuple[dict[str, Any], str]] = [
    (_part_said(_file_part(_GOOGLES)), "contents[0].parts[1].fileData.fileUri: File"),
    (_part_said(_file_part("gs://bucket/object")), "contents[0].parts[1].fileData.fileUri: File"),
    (_part_said(_SNAKE), "contents[0].parts[1].fileData.fileUri: File"),
    (_part_said({"functionResponse": {"name": "f", "parts": [_file_part("files/abc")]}}),
     "contents[0].parts[1].functionResponse.parts[0].fileData.fileUri: File"),
    (_TEXT | {"systemInstruction": {"parts": [_file_part("files/abc")]}},
     "systemInstruction.parts[0].fileData.fileUri: File"),
    (_TEXT | {"cachedContent": "cachedContents/abc"}, "cachedContent: Cached content"),
    (_TEXT | {"cached_content": "cachedContents/abc"}, "cachedContent: Cached content"),
    (_TEXT | {"tools": [{"fileSearch": _STORES}]}, "tools[0].fileSearch: File search store"),
]  # fmt: skip


def test_what_gemini_keeps_for_a_shared_account_is_nobodys(world: World, mark: str) -> None:
    path = f"/v1beta/models/{model_of('gemini', 'plain', mark)}"

    for said, words in GEMINIS:
        for verb in ("generateContent", "streamGenerateContent?alt=sse", "countTokens"):
            answer = world.post(f"{path}:{verb}", said)
            assert answer.status_code == 400, (verb, said)
            assert answer.json()["error"]["message"].startswith(f"{words} not found.")
        counted = world.post(f"{path}:countTokens", {"generateContentRequest": said})
        assert counted.json()["error"]["message"].startswith("generateContentRequest.")
    # An address of an image in another format would become such a file.
    url = {"type": "image_url", "image_url": {"url": _GOOGLES}}
    shown = {"type": "input_image", "image_url": _GOOGLES}
    source = {"type": "image", "source": {"type": "url", "url": _GOOGLES}}
    model = model_of("gemini", "plain", mark)
    for other, body in (
        (CHAT, {"messages": [{"role": "user", "content": [url]}]}),
        (MESSAGES, {"max_tokens": 9, "messages": [{"role": "user", "content": [source]}]}),
        (PATHS[0], {"input": [{"role": "user", "content": [shown]}]}),
    ):
        answer = world.post(other, {"model": model, **body})
        assert answer.status_code == 400, (other, answer.text)
        assert "File not found" in answer.json()["error"]["message"]
    assert world.fleet.gemini.seen(mark) == []
    # What everybody may read.
    public = _part_said(_file_part("https://www.youtube.com/watch?v=abc"))
    assert world.post(f"{path}:generateContent", public).status_code == 200


def test_files_of_a_shared_account_are_taken_in_no_format(world: World, mark: str) -> None:
    for path, provider, part, where in FILES:
        answer = world.post(path, _saying(model_of(provider, "plain", mark), part))

        assert answer.status_code == 400, (path, provider, part, answer.text)
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith(f"{where}: File not found.")
        if path == CHAT:
            assert (error["code"], error["param"]) == ("file_not_found", "messages")
        else:
            assert answer.json()["type"] == "error"
    for provider in ("openai", "anthropic", "responses"):
        assert getattr(world.fleet, provider).seen(mark) == []

    for path, provider, part in NO_FILES:
        answer = world.post(path, _saying(model_of(provider, "plain", mark), part))
        assert "File not found" not in answer.text
        # The simulated server does not know all of Anthropic's blocks.
        assert answer.status_code == 200 or "expected tags" in answer.text, (part, answer.text)
    own = world.post(CHAT, _saying(model_of(OWN_RESPONSES, "plain", mark), _FILE))
    assert "File not found" not in own.text
    assert len(world.fleet.responses.seen(mark)) == 1
