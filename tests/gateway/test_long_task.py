"""A task that outlasts one round goes on after a clear, by what the prompt tells and nothing else.

The model (narrow) knows no conversation: what it has done so far it finds in its prompt, or not.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.house import SYSTEM, House
from tests.gateway.test_care_shapes import FORMATS, PAGE, Format, Talk

pytestmark = pytest.mark.xdist_group("care")

FILES = 100
REMINDER = "<system-reminder>\nThe todo list is empty. Do not tell the user.\n</system-reminder>"
TASK = f"Please read {FILES} files, one after the other, and say when you are through."


def _openai_results(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": PAGE}
        for call in reply.get("tool_calls") or ()
    ]


def _with_reminder(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """As Claude Code sends results: with a text of its own beside them."""
    anthropic = next(form for form in FORMATS if form.name == "anthropic")
    return [
        {**entry, "content": [*entry["content"], {"type": "text", "text": REMINDER}]}
        for entry in anthropic.results(reply)
    ]


OPENAI = Format(
    name="openai",
    path="/v1/chat/completions",
    member="messages",
    first=[{"role": "system", "content": SYSTEM}],
    rest={},
    user=lambda text: {"role": "user", "content": text},
    reply=lambda answer: answer["choices"][0]["message"],
    results=_openai_results,
)
ALL = [
    OPENAI,
    *(replace(f, results=_with_reminder) if f.name == "anthropic" else f for f in FORMATS),
]


@pytest.mark.parametrize("form", ALL, ids=lambda form: form.name)
def test_a_task_goes_on_over_several_rounds(house: House, mark: str, form: Format) -> None:
    house.narrow.faults.clear()
    talk = Talk(house, form, mark)
    talk.say(REMINDER)
    talk.say(TASK)

    generations = 1
    while talk.generate():
        generations += 1
        assert generations < 3 * FILES

    read = [int(number) for number in re.findall(r"file\W+(\d+)", json.dumps(talk.history))]
    actions = [told["x-helmdash-remediation"] for told in talk.told]
    assert read == list(range(1, FILES + 1))
    assert f"read all {FILES}" in json.dumps(talk.history[-1])
    assert actions.count("clear") >= 2
    assert house.narrow.faults == []
    assert house.narrow.refusals.get(talk.model.partition("/")[2]) is None
    package = talk.sent[len(form.first)]
    assert f"Drafted by HelmDash: {TASK}" in json.dumps(package)
    assert all(form.user(TASK) in request[form.member] for request in _sent(house, talk))


def _sent(house: House, talk: Talk) -> list[dict[str, Any]]:
    return house.narrow.sent(talk.model.partition("/")[2])
