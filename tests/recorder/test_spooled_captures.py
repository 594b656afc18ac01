"""A call is written once: what stands in the spool, and the whole of it for who stores it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from helmdash.core.calls.capture import Capture
from helmdash.operations.recorder.capture_json import dump_capture, load_capture
from helmdash.operations.recorder.kept_texts import spooled
from helmdash.queries.access.access import ProjectInfo

_CALL: dict[str, Any] = {
    "model": "m",
    "id": "call_1",
    "status": "success",
    "finish_reason": "stop",
    "content": 'It said: "grün"\n',
    "raw_content_len": 17,
    "metadata": {"stream": False},
}


def _project(payload: str) -> ProjectInfo:
    return ProjectInfo(
        id=1, slug="p", name="P", is_default=True, is_demo=False, payload=payload,
        retention_days=None,
    )  # fmt: skip


@pytest.mark.parametrize("over", [{}, {"content": None}, {"content": ""}])
def test_the_whole_of_a_call_is_its_figures_and_what_was_said(over: dict[str, Any]) -> None:
    capture = Capture(**{**_CALL, **over})

    found = spooled(capture, _project("off"))

    assert found.whole is not None
    assert load_capture(orjson.loads(found.whole)) == capture
    assert "content" not in orjson.loads(found.line)


@pytest.mark.parametrize(
    "over",
    [
        {"content": "a\0b"},  # mended when it is written
        {"content": "half \ud800"},
        {"raw_content_len": None},  # its line tells what the capture does not
        {"error_message": "Invalid value: 'my diagnosis'", "error_is_own": False},
        {"messages": ({"role": "user", "content": "hi"},)},
    ],
)
def test_what_is_not_its_figures_and_one_text_is_written_when_it_is_asked_for(
    over: dict[str, Any],
) -> None:
    assert spooled(Capture(**{**_CALL, **over}), _project("off")).whole is None


@pytest.mark.parametrize("payload", ["full", "redacted"])
def test_where_texts_are_kept_the_whole_was_written_already(payload: str) -> None:
    capture = Capture(**_CALL)

    assert spooled(capture, _project(payload)).whole == dump_capture(capture)[1]
