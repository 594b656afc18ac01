"""What weak models answer in place of a plan or a route, and what must come of it.

Twenty rows of each kind and task. `ids` are what the steps (or the recommendation) call, "unknown"
for a gap and "" for a route to nothing; none for a failure. The catalog is CATALOG.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Expected(StrEnum):
    """What an answer comes to: whole, in part, or a typed failure."""

    WHOLE = "whole"
    PARTIAL = "partial"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reply of a model."""

    kind: str
    raw: str
    expected: Expected
    ids: tuple[str, ...] = ()
    finish_reason: str = "stop"


CATALOG: dict[str, Any] = {
    "packs": [
        {"name": "blog.publish", "description": "Publish a post."},
        {"name": "content.ground", "description": "Check the claims of a text."},
        {"name": "web.scrape", "description": "Read a page."},
        {"name": "helmdeck.memory_store", "description": "Remember something."},
        {"name": "helmdeck.plan", "description": "Plan."},
        {"name": "helmdeck.route", "description": "Route."},
    ],
    "pipelines": [{"id": "builtin.brief-blog", "name": "Blog from a brief"}],
}
TOOLS = ("web.scrape", "content.ground", "blog.publish")
_PLAN = {
    "steps": [
        {"order": at, "tool": tool, "args": {"n": at}, "rationale": f"does {tool}"}
        for at, tool in enumerate(TOOLS, start=1)
    ],
    "complexity": "pack-chain",
    "reasoning": "One after the other.",
}
WHOLE_PLAN = json.dumps(_PLAN)
_ROUTE = {
    "recommendation": {
        "kind": "pipeline",
        "id": "builtin.brief-blog",
        "suggested_inputs": {"brief": "launch"},
        "why": "It covers all of it.",
    },
    "alternatives": [{"kind": "pack", "id": "blog.publish", "why": "publishes only"}],
    "gap_warning": None,
    "reasoning": "It fits.",
}
_ROUTED = ("builtin.brief-blog",)

# Each stands around an answer, which comes in for @.
_FENCES = """
```json|@|```
```|@|```
```JSON|@|```
```json5|@|```
````json|@|````
~~~json|@|~~~
~~~|@|~~~
```json @ ```
```@```
``` json|@|```
 ```json|@|```
```json|@
Here:|```json|@|```
Here:|```json|@|```|Done.
```json|@|```|Hope it helps!
```json|{"example": 1}|```|then|```json|@|```
```text|nothing|```|```json|@|```
```json||@||```
```json|@|``` ```
~~~~json|@|~~~~
"""
_PROSE = """
Sure! Here it is: @
@ Let me know if you need more.
It's simple: @ That's all.
He said "go: @ and more
The set {a, b} is what we need. @
Use [1] and [2]. @ See [3].
@ {see above}
Answer:|@
**Plan**||@||**End**
I'd take {steps}, so: @
@|</html>
1. Think.|2. Answer.|@
JSON: @; that is it.
"@
<answer>@</answer>
Final answer → @
@ @
An example is {"a": 1}. The answer is @
{"a": 1}|@
[{"a": 1}] and then @
"""
_THOUGHTS = """
<think>I could {do} that.</think>@
<think>{"steps": [{"tool": "fs.wipe"}]}</think>@
<think>{"recommendation": {"kind": "pack", "id": "fs.wipe"}}</think>|@
<reasoning>{"a": {"b": 1}}</reasoning>@
[REASONING]{"a": 1}[/REASONING]@
<think>|line|line {|</think>||@
{"steps": [{"tool": "fs.wipe"}]} no wait</think>@
I think {this}</think>|@
<THINK>{</THINK>@
<think>a<think>{b}</think>c</think>@
<think>}</think>@
<think>]]}</think>@
<think>"</think>@
<think></think>@
<think mode="deep">{x: 1}</think>@
<think>```json|{"steps": []}|```</think>@
<think>{1}</think>```json|@|```
<think>one {</think><think>two }</think>@
@<think>{"steps": []}</think>
<think>Let me write @ now.</think>@
"""


def plan_rows() -> list[Row]:
    """All replies to a request for a plan of all steps."""
    return [
        *_truncated_plans(),
        *_around("fenced", _FENCES, WHOLE_PLAN, TOOLS),
        *_around("prose", _PROSE, WHOLE_PLAN, TOOLS),
        *_around("thoughts", _THOUGHTS, WHOLE_PLAN, TOOLS),
        *_typed("wrong types", _WRONG_PLANS),
        *_failures("alien", [*_ALIEN, *_ALIEN_TO_PLANS]),
        *_hallucinated_plans(),
        *_self_calling_plans(),
        *_failures("empty", [*_EMPTY, *_EMPTY_PLANS]),
    ]


def route_rows() -> list[Row]:
    """All replies to a request for a route."""
    whole = _dumped(_ROUTE)
    return [
        *_truncated_routes(),
        *_around("fenced", _FENCES, whole, _ROUTED),
        *_around("prose", _PROSE, whole, _ROUTED),
        *_around("thoughts", _THOUGHTS, whole, _ROUTED),
        *_typed("wrong types", _WRONG_ROUTES),
        *_failures("alien", [*_ALIEN, *_ALIEN_TO_ROUTES]),
        *(_routed("hallucinated", id, "") for id in _INVENTED),
        *(_routed("self-call", id, "") for id in _SELF),
        *_failures("empty", [*_EMPTY, *_EMPTY_ROUTES]),
    ]


def _dumped(value: object) -> str:
    return json.dumps(value)


def _around(kind: str, table: str, answer: str, ids: tuple[str, ...]) -> Iterator[Row]:
    for line in table.strip().splitlines():
        raw = line.replace("|", "\n").replace("@", answer)
        yield Row(kind=kind, raw=raw, expected=Expected.WHOLE, ids=ids)


def _failures(kind: str, raws: list[str]) -> Iterator[Row]:
    for raw in raws:
        yield Row(kind=kind, raw=raw, expected=Expected.FAILURE)


def _typed(kind: str, table: list[tuple[object, Expected, tuple[str, ...]]]) -> Iterator[Row]:
    for value, expected, ids in table:
        yield Row(kind=kind, raw=_dumped(value), expected=expected, ids=ids)


# --- truncated ---------------------------------------------------------------------------------


def _truncated_plans() -> Iterator[Row]:
    """Cut at twenty places: the steps before the cut stay, a plan without one is a failure."""
    raw = WHOLE_PLAN
    ends = [raw.index(f"does {tool}") + len(f'does {tool}"}}') for tool in TOOLS]
    for cut in _cuts(raw):
        ids = TOOLS[: sum(end <= cut for end in ends)]
        yield _cut_row(raw[:cut], ids)


def _truncated_routes() -> Iterator[Row]:
    """The same: a recommendation whose id was written stays."""
    raw = _dumped(_ROUTE)
    told = raw.index("builtin.brief-blog") + len('builtin.brief-blog"')
    for cut in _cuts(raw):
        yield _cut_row(raw[:cut], _ROUTED if cut >= told else ())


def _cuts(raw: str) -> list[int]:
    return [len(raw) * at // 21 for at in range(1, 21)]


def _cut_row(raw: str, ids: tuple[str, ...]) -> Row:
    expected = Expected.PARTIAL if ids else Expected.FAILURE
    return Row(kind="truncated", raw=raw, expected=expected, ids=ids, finish_reason="length")


# --- wrong types -------------------------------------------------------------------------------

_ONE = {"tool": "web.scrape", "args": {}}
_WHOLE, _PARTIAL, _FAILURE = Expected.WHOLE, Expected.PARTIAL, Expected.FAILURE
_WRONG_PLANS: list[tuple[object, Expected, tuple[str, ...]]] = [
    ({"steps": [{**_ONE, "order": "1"}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{**_ONE, "order": None}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{**_ONE, "order": {"n": 1}}]}, _WHOLE, ("web.scrape",)),
    ({"steps": _ONE}, _WHOLE, ("web.scrape",)),  # one object in place of a list
    ({"steps": {"1": _ONE, "2": _ONE}}, _WHOLE, ("web.scrape", "web.scrape")),
    ({"steps": [{"tool": "web.scrape", "args": '{"url": "u"}'}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool": "web.scrape", "args": "a page"}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool": "web.scrape", "args": [1]}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool": "web.scrape", "args": None}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool": "web.scrape", "rationale": ["a"]}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool_name": "web.scrape", "arguments": {}}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"function": {"name": "web.scrape"}}]}, _WHOLE, ("web.scrape",)),
    ({"steps": [{"tool": 7}]}, _WHOLE, ("unknown",)),
    ({"steps": [{"tool": ["web.scrape"]}]}, _WHOLE, ("unknown",)),
    ({"steps": [{}]}, _WHOLE, ("unknown",)),
    ({"steps": ["web.scrape"]}, _WHOLE, ("web.scrape",)),
    ({"steps": ["Read the page"]}, _WHOLE, ("unknown",)),
    ({"steps": [None, _ONE, 3]}, _PARTIAL, ("web.scrape",)),
    ({"steps": [None, 3, [], True]}, _FAILURE, ()),
    ({"steps": "web.scrape"}, _FAILURE, ()),
]
_GO = {"kind": "pack", "id": "web.scrape"}
_WRONG_ROUTES: list[tuple[object, Expected, tuple[str, ...]]] = [
    ({"recommendation": {"kind": "pipeline", "id": "web.scrape"}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {"kind": 1, "id": "web.scrape"}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {"id": "web.scrape"}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": "web.scrape"}, _WHOLE, ("web.scrape",)),
    ({"recommendation": [_GO]}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {"type": "pack", "name": "web.scrape"}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {**_GO, "suggested_inputs": '{"a": 1}'}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {**_GO, "suggested_inputs": [1]}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {**_GO, "why": 3}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "alternatives": "blog.publish"}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "alternatives": {"id": "x"}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "alternatives": [None, 3, []]}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "gap_warning": "no captions"}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "gap_warning": [1]}, _WHOLE, ("web.scrape",)),
    ({"recommendation": _GO, "reasoning": {"a": 1}}, _WHOLE, ("web.scrape",)),
    ({"recommendation": {"kind": "pack", "id": 7}}, _WHOLE, ("",)),
    ({"recommendation": {}}, _WHOLE, ("",)),
    ({"recommendation": []}, _WHOLE, ("",)),
    ({"recommendation": 7}, _FAILURE, ()),
    ({"recommendation": [7]}, _FAILURE, ()),
]

# --- alien and empty ---------------------------------------------------------------------------

_ALIEN = [
    '{"error": {"message": "overloaded"}}',
    '{"id": "x", "choices": [{"message": {"content": "hi"}}]}',
    '{"name": "Ada", "age": 36}',
    '{"ids": [1, 2, 3]}',
    '["web.scrape", "blog.publish"]',
    "[1, 2, 3]",
    '"web.scrape"',
    "42",
    "true",
    '{"plan": "first read, then write"}',
    '{"steps": "first read, then write"}',
    '{"type": "object", "properties": {"steps": {"type": "array"}}}',
    '{"packs": [{"name": "web.scrape", "description": "Read a page."}]}',
    '{"pipelines": [{"id": "p", "metadata": {"supersedes": ["a"], "steps": [{"pack": "a"}]}}]}',
    '{"thought": "I should", "action": "wait"}',
    '{"title": "Launch", "body": "We launched."}',
    '[{"title": "a"}, {"title": "b"}]',
    "I cannot help with that.",
]
_ALIEN_TO_PLANS = [
    '{"recommendation": {"kind": "pack", "id": "web.scrape"}}',
    '{"name": "web.scrape", "description": "d", "parameters": {"type": "object"}}',
]
_ALIEN_TO_ROUTES = [
    '{"steps": [{"tool": "web.scrape", "args": {}}]}',
    '{"recommendation": "You should publish the post first."}',
]
_EMPTY = [
    "",
    " ",
    "\n\n\t",
    "null",
    "{}",
    "[]",
    '""',
    "{ }",
    "[{}]",
    "[null]",
    "```json\n```",
    "```json\n{}\n```",
    "```\nnull\n```",
    "<think>Let me think.</think>",
    "<think>{}</think>{}",
    "None",
    "...",
]
_EMPTY_PLANS = ['{"steps": []}', '{"steps": null, "reasoning": "r"}', '{"plan": {"steps": []}}']
_EMPTY_ROUTES = ['{"route": {}}', '{"recommendations": []}', '{"alternatives": []}']

# --- tools that are none -----------------------------------------------------------------------

_INVENTED = [
    "youtube.transcript",
    "web.scraper_pro",
    "blog",
    "publish",
    "blog.publish.now",
    "fs.wipe",
    "web",
    "search the web",
    "builtin.blog",
    "brief-blog",
    "Blog from a brief",
    "unknown_tool",
    "<pack name>",
    "web.scrape, blog.publish",
    "web.scrape + content.ground",
    "gpt-4",
    "a" * 5_000,
    "检索",
    "blog\u0000post!",
    "mcp__helmdeck__fs-wipe",
]
_SELF = [
    "helmdeck.plan",
    "helmdeck.route",
    "helmdeck__plan",
    "helmdeck__route",
    "helmdeck-plan",
    "helmdeck_plan",
    "Helmdeck.Plan",
    "HELMDECK.ROUTE",
    "`helmdeck.plan`",
    '"helmdeck.plan"',
    " helmdeck.plan ",
    "mcp__helmdeck__plan",
    "mcp_helmdeck_plan",
    "helmdeck__helmdeck-plan",
    "mcp__helmdeck__helmdeck-route",
    "helmdash__plan",
    "mcp__helmdash__route",
    "plan",
    "functions.helmdeck__plan",
    "helmdeck.plan()",
]


def _hallucinated_plans() -> Iterator[Row]:
    for tool in _INVENTED:
        steps = [_ONE, {"tool": tool, "args": {"a": 1}, "rationale": "it must"}]
        raw = _dumped({"steps": steps})
        yield Row(kind="hallucinated", raw=raw, expected=_WHOLE, ids=("web.scrape", "unknown"))


def _self_calling_plans() -> Iterator[Row]:
    for at, tool in enumerate(_SELF):
        run = {"tool": "helmdeck__pipeline-run", "args": {"id": tool}}
        steps = [run if at % 2 else {"tool": tool, "args": {}}, _ONE]
        raw = _dumped({"steps": steps})
        yield Row(kind="self-call", raw=raw, expected=_WHOLE, ids=("unknown", "web.scrape"))


def _routed(kind: str, asked: str, id: str) -> Row:
    value = {"recommendation": {"kind": "pack", "id": asked}, "alternatives": [_GO]}
    return Row(kind=kind, raw=_dumped(value), expected=_WHOLE, ids=(id,))
