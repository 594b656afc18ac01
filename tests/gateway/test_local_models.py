"""Ollama behind the gateway: the budget's window is the real one, and what is logged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import ollama as sdk
import pytest

from helmdash.core.calls.withheld import NOT_KEPT
from tests.gateway.clients import open_client
from tests.gateway.world import open_http
from tests.support.model import LocalModel
from tests.support.server import Served
from tests.support.upstreams.http import Seen
from tests.support.upstreams.ollama_shim import MODEL, Ollama, run_shim

pytestmark = pytest.mark.xdist_group("gateway")

_WAIT_SECONDS = 10
USER: Any = [{"role": "user", "content": "Hello there"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A HelmDash with one Ollama behind it, which has rows for `ollama/tiny`."""

    served: Served
    ollama: Ollama
    http: httpx.Client
    api: httpx.Client

    def post(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, json={"model": f"ollama/{MODEL}", **body}, headers=named)

    def sent(self, path: str = "/api/chat") -> Seen:
        """The newest request that reached the server."""
        return self.ollama.asked(path)[-1]

    def call(self, call_id: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            answer = self.api.get(f"/calls/{call_id}")
            return answer.json() if answer.status_code == 200 else None

        return wait_for(look)

    def line(self, call_id: str) -> dict[str, Any]:
        """The call's line in the request log."""

        def look() -> dict[str, Any] | None:
            folder = self.logs
            paths = folder.iterdir() if folder.is_dir() else ()
            lines = [line for path in paths for line in path.read_text().splitlines()]
            return next((json.loads(each) for each in lines if call_id in each), None)

        return wait_for(look)

    @property
    def logs(self) -> Path:
        return self.served.data_dir / "logs" / "ollama"


def wait_for(look: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    deadline = time.monotonic() + _WAIT_SECONDS
    while (found := look()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def with_window(house: House, upstream: str) -> dict[str, Any] | None:
    """The options of a call that carried the model's own window; None as long as none did."""
    body = {"model": f"{upstream}/{MODEL}", "messages": USER, "stream": False}
    assert house.http.post("/api/chat", json=body).status_code == 200
    options: dict[str, Any] = house.sent().json.get("options") or {}
    return options if options.get("num_ctx") == 8192 else None


@pytest.fixture(scope="module")
def running(serve: Callable[..., Served]) -> Iterator[House]:
    with run_shim() as ollama:
        served = serve(OLLAMA_HOST=ollama.url)
        with (
            open_http(served.base_url, served.api_key) as http,
            open_http(f"{served.base_url}/api/v1", served.api_key) as api,
        ):
            row = {
                "key": "ollama/tiny",
                "input_tokens": 6000,
                "output_tokens": 1000,
                "tier": "C",
                "context_length": 32_768,
                "evidence": "the simulated server of the tests",
            }
            assert api.post("/budgets", json=row).status_code == 201
            time.sleep(1)  # "live everywhere within a second"
            house = House(served=served, ollama=ollama, http=http, api=api)
            # The first call makes the gateway ask for the model's own window.
            wait_for(lambda: with_window(house, "ollama"))
            yield house


@pytest.fixture
def house(running: House) -> House:
    running.ollama.reset()
    return running


def test_the_first_call_waits_for_nobody_and_says_the_budgets_window(house: House) -> None:
    first = house.ollama.asked("/api/chat")[0]

    assert first.json["options"] == {"num_ctx": 32_768}


@pytest.mark.parametrize(
    ("path", "body", "reached"),
    [
        ("/api/chat", {"messages": USER}, "/api/chat"),
        ("/api/generate", {"prompt": "Hello there"}, "/api/generate"),
        ("/v1/chat/completions", {"messages": USER}, "/api/chat"),
        ("/v1/messages", {"messages": USER, "max_tokens": 50}, "/api/chat"),
    ],
)
def test_every_clients_call_carries_the_window(
    house: House, path: str, body: dict[str, Any], reached: str
) -> None:
    answer = house.post(path, {**body, "stream": False})

    assert answer.status_code == 200
    assert house.sent(reached).json["options"]["num_ctx"] == 8192  # the model's own


def test_the_rest_of_the_body_stays_byte_for_byte(house: House) -> None:
    body = (
        b'{ "messages":[ {"role":"user","content":"H\\u00e9 \xc3\xa9"} ],  "stream":false,'
        b' "options" : {"seed": 7}, "model":"ollama/tiny:latest" , "x" : 1.50 }'
    )
    answer = house.http.post(
        "/api/chat", content=body, headers={"content-type": "application/json"}
    )

    assert answer.status_code == 200
    assert house.sent().body == body.replace(b"ollama/tiny:latest", b"tiny:latest").replace(
        b'{"seed": 7}', b'{"seed":7,"num_ctx":8192}'
    )


def test_a_clients_own_window_stays_and_is_the_limit(house: House) -> None:
    body = {"messages": USER, "stream": False, "options": {"num_ctx": 1024}}
    answer = house.post("/api/chat", body)

    assert house.sent().json["options"] == {"num_ctx": 1024}
    health = house.call(answer.headers["x-helmdash-call-id"])["health"]
    assert (health["limit_tokens"], health["limit_source"]) == (1024, "context_length")
    assert health["critical_max_tokens"] == 921


def test_the_limit_is_never_more_than_what_was_sent(house: House) -> None:
    answer = house.post("/api/chat", {"messages": USER, "stream": False})

    health = house.call(answer.headers["x-helmdash-call-id"])["health"]
    assert health["limit_tokens"] == 8192
    assert health["level"] == answer.headers["x-helmdash-level"] == "healthy"


def test_a_prompt_that_fills_a_clients_small_window_is_critical(house: House) -> None:
    """Against the row's 32,768 tokens it would be as healthy as can be."""
    words = [{"role": "user", "content": "word " * 950}]
    answer = house.post(
        "/api/chat", {"messages": words, "stream": False, "options": {"num_ctx": 1000}}
    )

    assert answer.headers["x-helmdash-level"] == "critical"


@pytest.mark.parametrize(
    ("over", "words", "status"),
    [
        ({}, 500, 200),
        ({"options": {"num_ctx": 1024}}, 500, 400),  # over the window less its reply
        ({"options": {"num_ctx": 1024, "num_predict": 10}}, 500, 200),  # a short reply
        ({}, 6000, 400),  # over the budget
    ],
)
def test_enforced_the_window_counts_too(
    house: House, over: dict[str, Any], words: int, status: int
) -> None:
    before = len(house.ollama.server.seen())
    body = {"messages": [{"role": "user", "content": "word " * words}], "stream": False, **over}

    answer = house.post("/api/chat", body, x_helmdash_budget="enforce")

    assert answer.status_code == status
    assert len(house.ollama.server.seen()) == before + (status == 200)
    if status == 400:
        assert "nothing was sent" in answer.json()["error"]


def test_generate_comes_without_its_context(house: House) -> None:
    whole = house.post("/api/generate", {"prompt": "Hello there", "stream": False})
    streamed = house.post("/api/generate", {"prompt": "Hello there"})

    sent = bytes(house.sent("/api/generate").sent)
    assert b'"context"' in sent
    assert b'"context"' not in whole.content + streamed.content
    assert whole.json()["prompt_eval_count"] == 2
    assert streamed.content == sent.replace(b', "context": [0, 1]', b"")
    assert json.loads(streamed.content.splitlines()[-1])["done"] is True


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("over", "headers"),
    [({"context": [1, 2, 3]}, {}), ({}, {"x_helmdash_ollama_context": "keep"})],
)
def test_context_is_kept_for_who_works_with_it(
    house: House, over: dict[str, Any], headers: dict[str, str], is_streamed: bool
) -> None:
    body = {"prompt": "Hello there", "stream": is_streamed, **over}
    answer = house.post("/api/generate", body, **headers)

    assert answer.content == bytes(house.sent("/api/generate").sent)
    assert json.loads(answer.content.splitlines()[-1])["context"] == [0, 1]


def test_each_call_leaves_a_line_in_the_request_log(house: House) -> None:
    good = house.post("/v1/chat/completions", {"messages": USER}, x_helmdash_conversation="talk")
    house.ollama.ways.broken["/api/chat"] = (400, b'{"error":"no sk-abcdefghijklmnopq"}')
    bad = house.post("/api/chat", {"messages": USER, "stream": False})

    line = house.line(good.headers["x-helmdash-call-id"])
    assert line["requestId"] == line["callId"] == good.headers["x-helmdash-call-id"]
    assert (line["conversationId"], line["upstream"], line["numCtx"]) == ("talk", "ollama", 8192)
    assert line["actualPromptTokens"] == line["responseMetadata"]["promptEvalCount"] == 2
    assert line["tokenEstimate"] > 2
    assert line["chunkManifest"] == []
    assert "Hello there" not in json.dumps(line)
    failed = house.line(bad.headers["x-helmdash-call-id"])
    # The project keeps no texts, so the provider's own words are not kept either.
    assert failed["error"] == {"code": "http_400", "message": NOT_KEPT}
    assert failed["responseMetadata"]["durationMs"] >= 0
    assert house.logs.stat().st_mode & 0o777 == 0o700


def change(house: House, **values: object) -> None:
    """Change the settings of the project, and wait until they are in force."""
    code = f"from helmdash.records.models import Project; Project.objects.update(**{values!r})"
    assert house.served.manage("shell", "-c", code).returncode == 0
    time.sleep(1)


def test_what_a_project_masks_is_masked_in_the_request_log(house: House) -> None:
    change(house, payload="redacted", redaction_patterns=["EMP-[0-9]+"])
    try:
        house.ollama.ways.broken["/api/chat"] = (400, b'{"error":"nobody called EMP-4711"}')
        bad = house.post("/api/chat", {"messages": USER, "stream": False})
    finally:
        change(house, payload="off", redaction_patterns=None)

    said = house.line(bad.headers["x-helmdash-call-id"])["error"]["message"]
    assert "nobody called" in said
    assert "EMP-4711" not in said


def test_the_official_client_needs_to_change_nothing(house: House) -> None:
    with open_client("ollama", house.served.base_url, house.served.api_key) as client:
        mine: sdk.Client = client.sdk
        answer = mine.generate(f"ollama/{MODEL}", "Hello there")
        pieces = list(mine.chat(f"ollama/{MODEL}", messages=USER, stream=True))

    assert (answer.response, answer.context) == ("I read 2 words.", None)
    assert "".join(piece.message.content or "" for piece in pieces) == "I read 2 words."
    assert pieces[-1].prompt_eval_count == 2
    assert house.sent().json["options"]["num_ctx"] == 8192


def test_a_model_without_a_row_gets_a_window_once_its_own_is_known(
    serve: Callable[..., Served],
) -> None:
    """Under another name than `ollama`, only the fallback row stands for it."""
    with run_shim() as ollama:
        served = serve()
        code = f"""
from helmdash.records.models import Upstream
Upstream.objects.create(name="box", kind="ollama", base_url={ollama.url!r}, allow_private=True)
"""
        ran = served.manage("shell", "-c", code)
        assert ran.returncode == 0, ran.stderr
        with open_http(served.base_url, served.api_key) as http:
            house = House(served=served, ollama=ollama, http=http, api=http)
            last = wait_for(lambda: with_window(house, "box"))
        first = ollama.asked("/api/chat")[0]

    assert "options" not in first.json
    assert last == {"num_ctx": 8192}


def test_the_shipped_row_is_not_forced_on_a_model_whose_server_tells_more(
    serve: Callable[..., Served],
) -> None:
    """And an operator's row is, also on one that has more."""
    with run_shim() as ollama:
        served = serve(OLLAMA_HOST=ollama.url)
        with (
            open_http(served.base_url, served.api_key) as http,
            open_http(f"{served.base_url}/api/v1", served.api_key) as api,
        ):
            house = House(served=served, ollama=ollama, http=http, api=api)
            words = [{"role": "user", "content": "word " * 4000}]
            body = {"messages": words, "stream": False, "options": {"num_predict": 10}}
            answer = house.post("/api/chat", body, x_helmdash_budget="enforce")

            assert answer.status_code == 200
            assert house.sent().json["options"] == {"num_predict": 10, "num_ctx": 8192}
            assert answer.headers["x-helmdash-level"] == "healthy"
            health = house.call(answer.headers["x-helmdash-call-id"])["health"]
            assert (health["limit_tokens"], health["limit_source"]) == (8192, "server")
            told = api.get("/budgets/resolve", params={"model": "ollama/tiny"}).json()["budget"]
            assert (told["limit_tokens"], told["limit_source"]) == (8192, "server")
            assert [claim["source"] for claim in told["windows"]] == ["server", "budget"]

            row = {"key": "ollama/", "input_tokens": 3000, "output_tokens": 500, "tier": "C",
                   "context_length": 4096}  # fmt: skip
            assert api.post("/budgets", json=row).status_code == 201
            wait_for(lambda: _sends(house, 4096))


def _sends(house: House, num_ctx: int) -> dict[str, Any] | None:
    assert house.post("/api/chat", {"messages": USER, "stream": False}).status_code == 200
    options: dict[str, Any] = house.sent().json["options"]
    return options if options == {"num_ctx": num_ctx} else None


@pytest.mark.model
def test_a_real_models_prompt_is_whole_with_the_window_and_cut_without(
    serve: Callable[..., Served], local_model: LocalModel
) -> None:
    long = "The quick brown fox jumps over the lazy dog. " * 30  # some 300 tokens
    with run_shim(local_model) as ollama:
        ollama.ways.default = 256
        served = serve(OLLAMA_HOST=ollama.url)
        with open_http(f"{served.base_url}/api/v1", served.api_key) as api:
            row = {
                "key": "ollama/smollm2",
                "input_tokens": 1000,
                "output_tokens": 500,
                "tier": "C",
                "context_length": 2048,
                "evidence": "half of the model's own window",
            }
            assert api.post("/budgets", json=row).status_code == 201
        options = {"num_predict": 1}
        direct = sdk.Client(host=ollama.url)
        cut = direct.generate(ollama.name, long, options=options)
        with open_client("ollama", served.base_url, served.api_key) as client:
            whole = client.sdk.generate(f"ollama/{ollama.name}", long, options=options)
        direct._client.close()

    assert cut.prompt_eval_count == 256 // 2 + 2
    assert whole.prompt_eval_count is not None
    assert whole.prompt_eval_count > 256
