"""The context manager for local models, against a server that cuts prompts as Ollama does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.assembly.assembly import NoRoom, OverBudget
from helmdash.core.assembly.chunks import Chunk
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.windows import wanted_window, within_window
from helmdash.providers.ollama.context_array import ContextDropper, without_context
from helmdash.providers.ollama.shown import num_ctx_of, read_show, with_num_ctx
from helmdash.providers.ollama.stream_reader import OllamaStreamReader
from helmdash.providers.wire import ChatRequest
from helmdash.upstream.logs.request_log import RequestLog
from helmdash.upstream.ollama import (
    ContextManager,
    NativeClient,
    OllamaError,
    OllamaTimeout,
    OpenAIClient,
    SentPrompt,
    UnknownWindow,
    Verdict,
    check_prompt,
    discover,
)
from helmdash.upstream.ollama.windows import Windows
from tests.builders import make_budget
from tests.support.processes import free_port
from tests.support.upstreams.ollama_shim import MODEL, Ollama, run_shim
from tests.upstream.servers import calling, endpoint, run

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def running() -> Iterator[Ollama]:
    with run_shim() as ollama:
        yield ollama


@pytest.fixture
def ollama(running: Ollama) -> Ollama:
    running.reset()
    return running


@asynccontextmanager
async def native(url: str, **over: Any) -> AsyncIterator[NativeClient]:
    async with NativeClient(url, **{"allow_private": True, "timeout_s": 5.0, **over}) as client:
        yield client


def row(**over: Any) -> EffectiveBudget:
    return make_budget(key="m", **{"input_tokens": 3000, "output_tokens": 1000, **over})


# --- windows


@pytest.mark.parametrize(
    ("body", "window"),
    [
        # The smaller of the two that are known.
        ({"model_info": {"general.architecture": "llama", "llama.context_length": 8192}}, 8192),
        (
            {
                "model_info": {"general.architecture": "llama", "llama.context_length": 8192},
                "parameters": 'stop "x"\nnum_ctx                        4096',
            },
            4096,
        ),
        ({"parameters": "num_ctx 2048"}, 2048),
        # Keys that only contain the words.
        (
            {
                "model_info": {
                    "general.architecture": "phi3",
                    "phi3.rope.scaling.original_context_length": 4096,
                    "phi3.vision.context_length": 77,
                }
            },
            None,
        ),
        # Another architecture's key.
        ({"model_info": {"general.architecture": "clip", "llama.context_length": 8192}}, None),
        # Nothing is guessed from names, and nonsense is nothing.
        ({"details": {"family": "llama3"}}, None),
        ({"model_info": {"general.architecture": "a", "a.context_length": True}}, None),
        ({"model_info": {"general.architecture": "a", "a.context_length": -1}}, None),
        ({"parameters": "num_ctx many\nnum_ctx_draft 5"}, None),
        ({"parameters": f"num_ctx {'9' * 5000}"}, None),
        ({"parameters": ["num_ctx 2048"], "model_info": []}, None),
    ],
)
def test_a_window_is_what_the_server_tells(body: dict[str, Any], window: int | None) -> None:
    shown = read_show(json.dumps(body).encode())

    assert shown is not None
    assert shown.window_tokens == window


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (b'{"model":"m"}', b'{"options":{"num_ctx":2048},"model":"m"}'),
        (
            b'{ "model": "m", "options": {"seed": 7} }',
            b'{ "model": "m", "options": {"seed":7,"num_ctx":2048} }',
        ),
        (b'{"options": null, "a":1}', b'{"options": {"num_ctx":2048}, "a":1}'),
        # The client's own stays, and so does what the server should complain about.
        (b'{"options": {"num_ctx": 512}}', b'{"options": {"num_ctx": 512}}'),
        (b'{"Options": {"num_ctx": 512}}', b'{"Options": {"num_ctx": 512}}'),
        (b'{"options": {"num_ctx": "big"}}', b'{"options": {"num_ctx": "big"}}'),
        (b'{"options": [1]}', b'{"options": [1]}'),
    ],
)
def test_num_ctx_changes_nothing_else(body: bytes, sent: bytes) -> None:
    told, says = with_num_ctx(body, json.loads(body), 2048)

    assert told == sent
    assert says == json.loads(sent)


def test_a_window_of_the_clients_that_is_none_counts_as_named_and_unknown() -> None:
    assert num_ctx_of({"options": {"num_ctx": "big"}}) == (True, None)
    assert num_ctx_of({"options": {"num_ctx": 512.0}}) == (True, 512)
    assert num_ctx_of({"options": {"num_ctx": None}}) == (False, None)
    assert num_ctx_of({"options": {"num_ctx": 2**63}}) == (True, None)


def test_a_budget_wants_its_window_or_room_for_the_reply_on_top_of_the_prompt() -> None:
    assert wanted_window(row()) == 4000
    assert wanted_window(row(context_length=32_768)) == 32_768
    assert wanted_window(row(input_length=6000)) == 7000


def test_a_smaller_window_narrows_every_line_of_the_budget() -> None:
    narrowed = within_window(row(context_length=32_768), 2048)

    assert (narrowed.limit_tokens, narrowed.limit_source) == (2048, LimitSource.CONTEXT_LENGTH)
    assert narrowed.critical_max_tokens == 1843
    assert narrowed.input_tokens == 1048  # less the reply's 1,000
    assert within_window(row(), 2048, most_reply_tokens=48).input_tokens == 2000
    assert within_window(row(), None) == row()


@given(st.integers(1, 300_000), st.integers(1, 300_000) | st.none())
def test_a_window_only_ever_lowers(window: int, length: int | None) -> None:
    budget = row(context_length=length)
    narrowed = within_window(budget, window)

    assert budget.limit_tokens is not None
    assert budget.critical_max_tokens is not None
    assert narrowed.limit_tokens == min(budget.limit_tokens, window)
    assert 1 <= narrowed.input_tokens <= budget.input_tokens
    assert narrowed.critical_max_tokens is not None
    assert narrowed.critical_max_tokens <= budget.critical_max_tokens


def test_windows_are_looked_up_beside_the_call_and_then_known(ollama: Ollama) -> None:
    async def look() -> list[int | None]:
        async with calling() as client:
            windows = Windows(client)
            server = endpoint(0, base_url=ollama.url)
            for name in (MODEL, "none", MODEL):
                windows.learn(server, name)

            async def known(name: str) -> int | None:
                return (await windows.of_model(server, name, waits=False)).tokens

            found = [await known(MODEL), await known("none")]
            while (window := await known(MODEL)) is None:
                await asyncio.sleep(0.01)
            # Each is looked up by itself, and a busy machine may begin with one much later.
            while len(ollama.asked("/api/show")) < before + 2:
                await asyncio.sleep(0.01)
            windows.learn(server, MODEL)
            await asyncio.sleep(0.05)
            found += [window, await known("none")]
            windows.close()
            return found

    before = len(ollama.asked("/api/show"))

    assert run(look()) == [None, None, 8192, None]
    assert len(ollama.asked("/api/show")) == before + 2


# --- the array of ids


def test_only_the_context_of_a_reply_is_dropped() -> None:
    body = b'{"response": "a \\"context\\" b", "done":true, "context":[1, 2,3],"eval_count": 3}'

    assert without_context(body) == (
        b'{"response": "a \\"context\\" b", "done":true,"eval_count": 3}'
    )
    for other in (b'{"a": {"context": 1}}', b'nonsense with a "context"', b""):
        assert without_context(other) == other


@given(st.lists(st.integers(1, 40), max_size=12))
def test_a_stream_without_context_is_the_same_however_it_is_split(cuts: list[int]) -> None:
    lines = b'{"response":"a","done":false}\n\n {"response":"","done":true,"context":[1,2]}\r\n'
    dropper = ContextDropper(OllamaStreamReader(request=ChatRequest(model="m", messages=())))
    out, rest = b"", lines
    for cut in cuts:
        out += dropper.feed(rest[:cut])[0]
        rest = rest[cut:]
    out += dropper.feed(rest)[0] + dropper.flush()[0]

    assert out == lines.replace(b',"context":[1,2]', b"")


# --- clients


@pytest.mark.parametrize("ending", ["", "/", "//", "/v1", "/v1/", "/api/"])
def test_every_ending_of_the_address_is_the_same_server(ollama: Ollama, ending: str) -> None:
    async def ask() -> tuple[str, ...]:
        async with (
            native(ollama.url + ending) as client,
            OpenAIClient(ollama.url + ending, allow_private=True) as openai,
        ):
            told = await openai.chat(MODEL, [{"role": "user", "content": "Hello"}], max_tokens=3)
            assert told["choices"]
            return (*(await client.models()), *(await openai.ping()).models)

    assert run(ask()) == (MODEL, MODEL)


def test_a_reply_has_its_counts_and_no_context(ollama: Ollama) -> None:
    async def ask() -> None:
        async with native(ollama.url) as client:
            answer = await client.generate(MODEL, "one two three", system="be kind", num_ctx=512)
            assert (answer.text, answer.done_reason) == ("I read 5 words.", "stop")
            assert (answer.prompt_eval_count, answer.eval_count) == (5, 4)
            assert answer.context is None
            assert "context" not in answer.raw
            chatted = await client.chat(MODEL, [{"role": "user", "content": "hello"}], num_ctx=64)
            assert chatted.message == {"role": "assistant", "content": "I read 1 words."}

    run(ask())
    sent = ollama.server.seen()[-2:]
    assert [each.json["options"] for each in sent] == [{"num_ctx": 512}, {"num_ctx": 64}]
    assert all(each.json["stream"] is False for each in sent)


def test_context_is_there_when_asked_for_and_can_be_sent_back(ollama: Ollama) -> None:
    async def ask() -> None:
        async with native(ollama.url) as client:
            first = await client.generate(MODEL, "one two", include_context=True)
            assert first.context == (0, 1)
            await client.generate(MODEL, "three", context=first.context)
        async with native(ollama.url, include_context=True) as client:
            assert (await client.generate(MODEL, "one")).context == (0,)
            assert (await client.generate(MODEL, "one", include_context=False)).context is None

    run(ask())
    assert ollama.server.seen()[-3].json["context"] == [0, 1]


def test_a_stream_ends_with_the_whole_reply(ollama: Ollama) -> None:
    async def ask() -> None:
        async with native(ollama.url) as client:
            for pieces in (
                client.stream_generate(MODEL, "one two", include_context=True),
                client.stream_chat(MODEL, [{"role": "user", "content": "one two"}]),
            ):
                got = [piece async for piece in pieces]
                assert "".join(piece.text for piece in got) == "I read 2 words."
                assert [piece.answer is None for piece in got] == [True, True, False]
                assert got[-1].answer is not None
                assert got[-1].answer.text == "I read 2 words."
                assert got[-1].answer.prompt_eval_count == 2

    run(ask())


def test_a_missing_count_is_unknown(ollama: Ollama) -> None:
    ollama.ways.counts = "none"

    async def ask() -> int | None:
        async with native(ollama.url) as client:
            return (await client.generate(MODEL, "one two")).prompt_eval_count

    assert run(ask()) is None


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b'{"error":"model \'x\' not found"}', "model 'x' not found"),
        (500, b"<html><body>Bad gateway</body></html>", "Bad gateway"),
        (503, b"", "Ollama answered 503."),
        (200, b'{"error":"out of memory"}', "out of memory"),
        (200, b"nonsense", "the answer is no JSON object"),
        (400, b'{"error":"bad key sk-abcdefghijklmnopqrstuv"}', "bad key [key]"),
    ],
)
def test_an_error_tells_status_endpoint_and_message(
    ollama: Ollama, status: int, body: bytes, message: str
) -> None:
    ollama.ways.broken["/api/generate"] = (status, body)

    async def ask() -> None:
        async with native(ollama.url) as client:
            await client.generate(MODEL, "one")

    with pytest.raises(OllamaError) as caught:
        run(ask())
    assert (caught.value.status, caught.value.endpoint) == (status, "/api/generate")
    assert message in caught.value.message
    assert not isinstance(caught.value, OllamaTimeout)


def test_a_timeout_is_an_error_of_its_own(ollama: Ollama) -> None:
    ollama.ways.hangs = {"/api/generate", "/api/tags"}

    async def ask() -> None:
        async with native(ollama.url, timeout_s=0.2) as client:
            ping = await client.ping(timeout_s=0.2)
            assert (ping.is_available, ping.models) == (False, ())
            await client.generate(MODEL, "one")

    with pytest.raises(OllamaTimeout, match=r"/api/generate: no answer within 0\.2 seconds"):
        run(ask())


def test_a_stream_that_breaks_off_is_an_error(ollama: Ollama) -> None:
    ollama.ways.breaks_stream = True

    async def ask() -> None:
        async with native(ollama.url) as client:
            async for _ in client.stream_generate(MODEL, "one"):
                pass

    with pytest.raises(OllamaError) as caught:
        run(ask())
    assert caught.value.endpoint == "/api/generate"


def test_a_private_address_needs_leave(ollama: Ollama) -> None:
    async def ask() -> str | None:
        async with native(ollama.url, allow_private=False) as client:
            return (await client.ping()).error

    before = len(ollama.server.seen())

    assert "may not be called" in (run(ask()) or "")
    assert len(ollama.server.seen()) == before


def test_a_server_that_is_not_there_is_not_available() -> None:
    async def ask() -> str | None:
        async with native(f"http://127.0.0.1:{free_port()}") as client:
            return (await client.ping()).error

    assert "cannot be connected to" in (run(ask()) or "")


def test_discovery_tells_windows_and_what_is_unknown(ollama: Ollama) -> None:
    async def look() -> list[int | None]:
        async with native(ollama.url) as client:
            found = [(await discover(client))[0].window_tokens]
            ollama.ways.configured = 1024
            found.append((await discover(client))[0].window_tokens)
            ollama.ways.broken["/api/show"] = (500, b"")
            found.append((await discover(client))[0].window_tokens)
            return found

    assert run(look()) == [8192, 1024, None]


# --- the manager


def test_the_window_of_the_budget_is_the_one_that_is_sent(ollama: Ollama) -> None:
    async def send() -> SentPrompt:
        async with native(ollama.url) as client:
            manager = await ContextManager.open(client, MODEL, budget=row(), reserve_tokens=500)
            assert (manager.window_tokens, manager.budget_tokens) == (4000, 3500)
            chunks = [Chunk(id="a", text="alpha", source="a.md", score=1.0)]
            return await manager.chat(
                manager.assemble(system="Be kind.", user_query="What?", chunks=chunks)
            )

    sent = run(send())

    (_, last) = ollama.server.seen()[-2:]
    assert last.json["options"] == {"num_ctx": 4000}
    assert [message["role"] for message in last.json["messages"]] == ["system", "user"]
    assert sent.check.verdict is Verdict.PLAUSIBLE
    assert sent.check.reported_tokens == sent.answer.prompt_eval_count


@pytest.mark.parametrize(
    ("trained", "configured", "wanted", "window"),
    [
        (8192, None, 32_768, 8192),  # lowered to the model
        (8192, 2600, 32_768, 2600),
        (131_072, None, 4096, 4096),  # never raised
        (None, None, 4096, 4096),
        (8192, None, None, 8192),
    ],
)
def test_a_window_is_lowered_to_the_models_own(
    ollama: Ollama,
    trained: int | None,
    configured: int | None,
    wanted: int | None,
    window: int,
) -> None:
    ollama.ways.trained, ollama.ways.configured = trained, configured

    async def open_it() -> int:
        async with native(ollama.url) as client:
            return (await ContextManager.open(client, MODEL, window_tokens=wanted)).window_tokens

    assert run(open_it()) == window


def test_a_window_that_nobody_knows_is_not_guessed(ollama: Ollama) -> None:
    ollama.ways.trained = None

    async def open_it(**over: Any) -> None:
        async with native(ollama.url) as client:
            await ContextManager.open(client, MODEL, **over)

    with pytest.raises(UnknownWindow, match="Give window_tokens"):
        run(open_it())
    with pytest.raises(NoRoom, match="reserve_tokens"):
        run(open_it(window_tokens=1000))


def test_what_is_over_the_budget_makes_no_request(ollama: Ollama) -> None:
    async def send() -> None:
        async with native(ollama.url) as client:
            manager = ContextManager(client, model=MODEL, window_tokens=32_768)
            await manager.generate(manager.assemble(user_query="字" * 100_000))

    before = len(ollama.server.seen())

    with pytest.raises(OverBudget) as caught:
        run(send())
    assert caught.value.budget_tokens == 30_768
    assert len(ollama.server.seen()) == before


def test_nobody_may_send_another_window_than_the_budgets(ollama: Ollama) -> None:
    async def send() -> None:
        async with native(ollama.url) as client:
            manager = ContextManager(client, model=MODEL, window_tokens=4096)
            await manager.generate(manager.assemble(user_query="Hi"), options={"num_ctx": 9})

    with pytest.raises(ValueError, match="num_ctx"):
        run(send())


def test_a_streamed_chat_ends_with_what_was_sent(ollama: Ollama) -> None:
    async def send() -> list[str | SentPrompt]:
        async with native(ollama.url) as client:
            manager = ContextManager(client, model=MODEL, window_tokens=4096)
            return [piece async for piece in manager.stream_chat(manager.assemble(user_query="Hi"))]

    *texts, sent = run(send())

    assert "".join(str(text) for text in texts) == "I read 1 words."
    assert isinstance(sent, SentPrompt)


@pytest.mark.parametrize(
    ("estimated", "reported", "verdict"),
    [
        (1000, None, Verdict.UNKNOWN),
        (1000, 0, Verdict.UNKNOWN),
        (1000, 900, Verdict.PLAUSIBLE),
        (1000, 1400, Verdict.PLAUSIBLE),  # code takes more than estimated
        (3900, 2050, Verdict.SUSPECTED_CUT),  # half of the window and two
        (2400, 2050, Verdict.PLAUSIBLE),  # a prompt that just is of that size
        (3000, 4096, Verdict.SUSPECTED_CUT),  # the window to its last token
        (4000, 900, Verdict.SUSPECTED_CUT),  # far below
    ],
)
def test_a_count_is_held_against_the_estimate(
    estimated: int, reported: int | None, verdict: Verdict
) -> None:
    check = check_prompt(estimated_tokens=estimated, reported_tokens=reported, num_ctx=4096)

    assert check.verdict is verdict
    assert check.why.endswith(".")


def test_a_call_leaves_a_line_with_its_manifest_and_no_texts(
    ollama: Ollama, tmp_path: Path
) -> None:
    log = RequestLog(tmp_path / "ollama")

    async def send() -> None:
        async with native(ollama.url, log=log, clock=lambda: NOW) as client:
            manager = ContextManager(client, model=MODEL, window_tokens=4096)
            chunks = [Chunk(id="a", text="alphabet", source="a.md", score=1.0)]
            assembled = manager.assemble(user_query="question", chunks=chunks)
            await manager.generate(assembled, conversation="talk-1")
            ollama.ways.broken["/api/generate"] = (500, b'{"error":"key sk-abcdefghijklmnopq"}')
            with pytest.raises(OllamaError):
                await manager.generate(assembled)

    run(send())
    log.close()

    text = (tmp_path / "ollama" / "ollama-2026-03-01.jsonl").read_text(encoding="utf-8")
    good, bad = map(json.loads, text.splitlines())
    assert "alphabet" not in text
    assert "question" not in text
    assert good["timestamp"] == "2026-03-01T12:00:00.000Z"
    assert (good["model"], good["conversationId"], good["numCtx"]) == (MODEL, "talk-1", 4096)
    assert good["actualPromptTokens"] == good["responseMetadata"]["promptEvalCount"] > 0
    assert good["tokenEstimate"] > 0
    assert len(good["promptHash"]) == 64
    assert [(each["id"], each["included"]) for each in good["chunkManifest"]] == [("a", True)]
    assert set(good["responseMetadata"]) == {
        "done",
        "doneReason",
        "evalCount",
        "promptEvalCount",
        "durationMs",
    }
    assert bad["error"] == {"code": "http_500", "message": "key [key]"}
    assert good["requestId"] != bad["requestId"]
