"""What the API says of itself and what it answers, whole: any change of a field shows in the diff.

tests/golden/openapi.json is the document, tests/golden/api/answers.json an answer of every
operation over one project, with what differs each time (times, ids, durations) replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.operations.whatif import running
from helmdash.queries.access.access import default_project
from helmdash.records.models import Project
from tests.api.conftest import Door
from tests.api.planner import INTENT, Planner
from tests.factories import make_suggestion

# Of a JSON Schema, the order of these says nothing.
_SETS = ("required",)

# What is not the same each time, and stays recognizable.
_TEXTS = (
    (re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$"), "<time>"),
    (re.compile(r"\b(call|fit|plan|rem|whatif)_[0-9a-f]{12,}\b"), r"\1_<id>"),
)
_OPAQUE = frozenset({"next", "intent_sha", "args_sha"})
_NUMBERS = frozenset(
    {"latency_ms", "ttft_ms", "overhead_ms", "last_unix", "last_used_unix", "budget_id", "edit_id"}
)

Answers = dict[str, Any]


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {
            name: sorted(member) if name in _SETS and isinstance(member, list) else _sorted(member)
            for name, member in value.items()
        }
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _steady(value: object, name: str = "") -> object:
    if isinstance(value, dict):
        if name == "timings_ms":
            return dict.fromkeys(value, "<number>")
        return {key: _steady(member, key) for key, member in value.items()}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, str):
        if name in _OPAQUE:
            return f"<{name}>"
        for pattern, steady in _TEXTS:
            value = pattern.sub(steady, value)
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "<number>" if is_number and (name in _NUMBERS or name == "id") else value


def _written(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def test_the_openapi_is_the_golden_one(same_as_golden: Callable[[str, str], None]) -> None:
    same_as_golden("openapi.json", _written(_sorted(document())))


@pytest.mark.usefixtures("planner")
def test_every_operation_answers_as_it_did(
    owner: Door, planner: Planner, same_as_golden: Callable[[str, str], None]
) -> None:
    Project.objects.update(payload="full")
    walk = _Walk(owner)

    _calls(walk)
    _conversations(walk)
    _budgets(walk)
    _suggestions(walk)
    _catalogs(walk)
    _plans(walk)
    _what_ifs(walk)
    walk.go("erase_conversation", "DELETE", "/conversations/run")

    assert {name.partition(" ")[0] for name in walk.answers} == set(_OPERATIONS)
    same_as_golden("api/answers.json", _written(walk.answers))


class _Walk:
    """Requests one after another, and their answers by the operation and what is special."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.answers: Answers = {}

    def go(self, name: str, method: str, path: str, body: object = b"", **headers: str) -> Any:
        """Send it; gives the body as JSON, None where there is none."""
        response = self._door.send(method, path, body, **headers)
        raw = response.getvalue()
        is_lines = response.get("Content-Type") == _LINES
        lines = [json.loads(line) for line in raw.splitlines()] if is_lines else None
        told = lines if is_lines else json.loads(raw) if raw else None
        assert name not in self.answers
        self._is_documented(name, response, told)
        self.answers[name] = {"status": response.status_code, "body": _steady(told)}
        return told

    def _is_documented(self, name: str, response: Any, told: object) -> None:
        """The body is what the document says of the operation's status."""
        documented = _OPERATIONS[name.partition(" ")[0]]["responses"][str(response.status_code)]
        for content_type, content in documented.get("content", {}).items():
            assert response["Content-Type"] == content_type
            if content_type != _LINES:
                schema = {**content["schema"], "components": document()["components"]}
                Draft202012Validator(schema).validate(told)


_LINES = "application/x-ndjson"
_OPERATIONS = {
    operation["operationId"]: operation
    for methods in document()["paths"].values()
    for operation in methods.values()
}


def _calls(walk: _Walk) -> None:
    walk.go("record_call", "POST", "/calls", _FULL)
    walk.go("record_call again", "POST", "/calls", _FULL)
    walk.go("record_call failed", "POST", "/calls", {**examples.FAILED_CALL, "id": "failed"})
    walk.go("record_call bare", "POST", "/calls", {"id": "bare", "model": "nobody/knows"})
    walk.go("record_call wrong", "POST", "/calls", {"modle": "m", "usage": 1, "conversation": " "})
    batch = [{**_FULL, "id": f"full-{n}"} for n in (2, 3)]
    batch[1] |= {"usage": {"prompt_tokens": 127_000}, "finish_reason": "length", "content": "{"}
    walk.go("record_batch", "POST", "/calls/batch", {"calls": [*batch, {"id": 1}, _FULL]})
    walk.go("reconcile_calls", "POST", "/calls/reconcile", {"ids": ["full", "nobody"]})
    walk.go("list_calls", "GET", "/calls?limit=3")
    walk.go("list_calls wrong", "GET", "/calls?limit=0&colour=red")
    walk.go("export_calls", "GET", "/calls/export")
    for name in ("full", "full-3", "failed", "bare"):
        walk.go(f"get_call {name}", "GET", f"/calls/{name}")
    walk.go("get_call missing", "GET", "/calls/nobody")


def _conversations(walk: _Walk) -> None:
    run = "/conversations/run"
    walk.go("get_conversation missing", "GET", "/conversations/nobody")
    told = walk.go("add_reminder", "POST", f"{run}/reminders", examples.REMINDER)
    walk.go("add_reminder wrong", "POST", f"{run}/reminders", {"content": " "})
    one = f"{run}/reminders/{told['id']}"
    walk.go("change_reminder", "PATCH", one, {"kind": "re_entry"})
    walk.go("list_reminders", "GET", f"{run}/reminders")
    hook = {"session_id": "run", "context_window": {"context_window_size": 200_000}}
    walk.go("claude_code_hook", "POST", "/hooks/claude-code", hook)
    walk.go("advance_conversation", "POST", f"{run}/advance", {"user_prompt": "And now?"})
    walk.go("advance_conversation healthy", "POST", "/conversations/new/advance")
    walk.go("go_on", "POST", f"{run}/go-on")
    walk.go("get_conversation critical", "GET", run)
    walk.go("clear_conversation", "POST", f"{run}/clear", {"reminder_content": "All done."})
    walk.go("record_call next round", "POST", "/calls", {**_FULL, "id": "full-4", "model": "m"})
    walk.go("get_conversation", "GET", run)
    walk.go("get_timeline", "GET", f"{run}/timeline?limit=3")
    walk.go("get_timeline all", "GET", f"{run}/timeline")
    walk.go("list_conversations", "GET", "/conversations")
    walk.go("delete_reminder", "DELETE", one)


def _budgets(walk: _Walk) -> None:
    row = walk.go("create_budget", "POST", "/budgets", examples.BUDGET)
    one = f"/budgets/{row['id']}"
    walk.go("change_budget", "PATCH", one, examples.BUDGET_CHANGE)
    walk.go("get_preflight", "GET", "/preflight")
    walk.go("get_budget", "GET", one)
    walk.go("list_budgets", "GET", "/budgets?limit=2")
    walk.go("resolve_budget", "GET", "/budgets/resolve?model=openai/gpt-4o-mini:free")
    walk.go("resolve_budget own", "GET", "/budgets/resolve?model=acme/model-1")
    told = walk.go("get_context_budgets", "GET", "/context-budgets")
    # The shipped rows change with their sources; two of them tell the shape.
    shown = walk.answers["get_context_budgets"]["body"]
    shown["budgets"] = [each for each in shown["budgets"] if each["key"] in _SHOWN_BUDGETS]
    assert len(told["budgets"]) > len(shown["budgets"]) == len(_SHOWN_BUDGETS)
    walk.go("delete_budget", "DELETE", one)


def _suggestions(walk: _Walk) -> None:
    project = default_project()
    first = f"/suggestions/{make_suggestion(project=project).pk}"
    second = f"/suggestions/{make_suggestion(project=project, upstream='west').pk}"
    walk.go("dismiss_suggestion wrong", "POST", f"{second}/dismiss", {"reason": " "})
    walk.go("dismiss_suggestion", "POST", f"{second}/dismiss", examples.DISMISSAL)
    walk.go("try_suggestion wrong", "POST", f"{first}/trial", {"share": 2, "days": 0})
    walk.go("try_suggestion", "POST", f"{first}/trial", examples.TRIAL)
    walk.go("try_suggestion again", "POST", f"{first}/trial", {})
    walk.go("accept_suggestion", "POST", f"{first}/accept")
    walk.go("accept_suggestion again", "POST", f"{first}/accept")
    walk.go("list_suggestions", "GET", "/suggestions?state=accepted")
    walk.go("get_net_value", "GET", "/net-value?limit=1")
    walk.go("get_learned_limits", "GET", "/learned-limits?model=openai/gpt-4o")


def _catalogs(walk: _Walk) -> None:
    walk.go("put_catalog", "PUT", "/catalogs/tools", examples.CATALOG)
    walk.go("put_catalog again", "PUT", "/catalogs/tools", examples.CATALOG)
    walk.go("list_catalogs", "GET", "/catalogs")
    walk.go("get_catalog", "GET", "/catalogs/tools")
    fitted = walk.go("fit", "POST", "/fit", examples.FIT)
    walk.go("get_fit", "GET", f"/fits/{fitted['fit_id']}")
    walk.go("get_fit unknown", "GET", "/fits/fit_unknown")
    walk.go("fit current", "POST", "/fit", {"model": "acme/small", "intent": "scrape a page"})
    walk.go("rank", "POST", "/rank", examples.RANK)
    walk.go("decode_reply", "POST", "/decode", examples.DECODE)
    walk.go("decode_reply failed", "POST", "/decode", {"raw": "no JSON"})
    walk.go("assemble", "POST", "/assemble", examples.ASSEMBLE)
    walk.go("assemble strict", "POST", "/assemble", examples.ASSEMBLE_STRICT)
    over = {**examples.ASSEMBLE, "budget_tokens": 1}
    walk.go("assemble over_budget", "POST", "/assemble", over)


def _plans(walk: _Walk) -> None:
    ask = {"user_intent": INTENT, "model": "sim/gpt-plan", "catalog": examples.CATALOG}
    told = walk.go("plan", "POST", "/plan", ask)
    walk.go("plan gap", "POST", "/plan", {**ask, "model": "sim/gpt-gap", "user_intent": "Dub it"})
    walk.go("plan failed", "POST", "/plan", {**ask, "model": "sim/gpt-filtered"})
    pick = {**ask, "model": "sim/gpt-pick", "prompt_variant": "single_pick", "catalog": _many()}
    walk.go("plan again", "POST", "/plan", {**pick, "continues": told["plan_id"]})
    walk.go("plan cut", "POST", "/plan", {**pick, "user_intent": "Read it"})
    route = walk.go("route_intent", "POST", "/route", {**ask, "model": "sim/gpt-route"})
    walk.go("list_plans", "GET", "/plans?limit=3")
    walk.go("list_trims", "GET", "/trims?limit=1&q=-outcome:over")
    walk.go("record_feedback", "POST", f"/plans/{told['plan_id']}/feedback", {"followed": True})
    walk.go("get_plan", "GET", f"/plans/{told['plan_id']}")
    walk.go("get_plan route", "GET", f"/plans/{route['plan_id']}")
    walk.go("get_my_plans", "GET", "/my-plans")
    # By the second of the newest plan, which may be the same.
    walk.answers["get_my_plans"]["body"]["groups"].sort(key=lambda group: group["models"])
    walk.go("get_my_defaults", "GET", "/my-defaults")


def _what_ifs(walk: _Walk) -> None:
    told = walk.go("ask_what_if", "POST", "/what-ifs", {**examples.WHAT_IF, "since": None})
    walk.go("ask_what_if wrong", "POST", "/what-ifs", {"edits": [{"key": "m", "changes": {}}]})
    one = f"/what-ifs/{told['id']}"
    running.run_all(lambda words, done, of: None)
    walk.go("get_what_if", "GET", one)
    walk.go("get_what_if missing", "GET", "/what-ifs/nobody")
    walk.go("list_what_if_items", "GET", f"{one}/items?figure=calls&limit=1")
    walk.go("list_what_if_items fits", "GET", f"{one}/items?figure=replayed&limit=1")
    walk.go("cancel_what_if", "POST", f"{one}/cancel")
    walk.go("apply_what_if", "POST", f"{one}/apply")
    walk.go("apply_what_if again", "POST", f"{one}/apply")
    walk.go("list_what_ifs", "GET", "/what-ifs")


def _many() -> dict[str, Any]:
    """A catalog that has to be cut."""
    packs = [{"name": f"tool.{n}", "description": f"Does the thing {n}. " * 40} for n in range(40)]
    return {"packs": [*packs, *examples.CATALOG["packs"]], "pipelines": []}  # type: ignore[misc]


_SHOWN_BUDGETS = ("acme/model-1", "openai/gpt-4o")
_FULL: dict[str, Any] = {
    **examples.CALL,
    "id": "full",
    "conversation": "run",
    "provider": "azure",
    "client": {"name": "Claude-Code", "version": "2.1"},
    "client_window": 128_000,
    "correlation_id": "story",
    "attempt": 2,
    "attempts": [{"n": 1, "status": 429}, {"n": 2}],
    "upstream_model": "gpt-4o-2024-11-20",
    "prompt_variant": "full_steps",
    "response_format": "json_object",
    "ttft_ms": 300,
    "overhead_ms": 2,
    "http_status": 200,
    "trim": {"before_bytes": 9000, "after_bytes": 4000, "dropped": ["pack.metadata"]},
    "parent": "whole",
    "lane": "main",
    "composition": {"system": 700, "tool_results": 3000, "results_by_tool": {"read": 2000}},
    "sent": {"bytes": 5000, "messages": 2, "tools_bytes": 0, "images": 1},
    "messages": [{"role": "user", "content": "Hello"}],
    "content": "Hi",
    "metadata": {"run": {"n": 12345678901234567890}},
    "fit_id": "fit-of-mine",
}
