"""The addresses of pages and API lists that are timed, in a project that has calls of a year.

Each page of helmdash.pages.urls is here by its name: with no filter, with those that people use,
with a query, far back, and over long ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote, urlencode

from django.urls import reverse
from django.utils import timezone

from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import conversations, listing
from helmdash.queries.conversations.conversations import ConversationView
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TrimFilters

# The first conversation that the first part of bench.large makes.
LONG_CONVERSATION = "t0-agent-000000"
Named = Iterator[tuple[str, str]]
"""What an address is called, and the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What there is to look at; "" where there is none of it."""

    conversation: str
    """The longest."""
    generation: int
    """One in the middle of it."""
    call: str
    plan: str
    other_plan: str
    trim: str
    deep: str
    """A cursor of calls, ten days back."""
    stem: str
    """What the ids of its calls and conversations begin with, of those that were made first."""


def known(project: ProjectInfo) -> Known:
    """What the addresses are of."""
    now = timezone.now()
    call = call_listing.page(project_id=project.id, filters=CallFilters(), limit=1).items[0]
    found = [each.id for each in plans.page(project_id=project.id, now=now, limit=2).items]
    fits = trims.page(project_id=project.id, filters=TrimFilters(), limit=1).items
    deep = CallFilters(until=now - timedelta(days=10))
    longest = _longest_conversation(project)
    return Known(
        conversation=longest.id,
        generation=(longest.generation + 1) // 2,
        stem=longest.id.rpartition("agent-")[0],
        call=call.id,
        plan=next(iter(found), ""),
        other_plan=next(iter(found[1:]), ""),
        trim=next((each.id for each in fits), ""),
        deep=call_listing.page(project_id=project.id, filters=deep, limit=1).next or "",
    )


def pages(of: Known) -> Named:
    """The pages that the goals name, by names that notes of earlier runs know."""
    yield "overview", "/"
    yield "conversations", "/conversations/"
    yield "conversations, one level", "/conversations/?level=critical"
    yield "conversations, search", "/conversations/?q=0123"
    yield "one conversation, the longest", f"/conversations/{of.conversation}/"
    yield "calls", "/calls/"
    yield "calls, one model and cause", "/calls/?model=openai%2Fgpt-4o&cause=refused"
    yield "calls, search", f"/calls/?q={of.stem}call-0001"
    yield "one call", f"/calls/{of.call}/"


def more_pages(of: Known) -> Named:
    """All others."""
    now = timezone.now()
    half = urlencode({"until": (now - timedelta(days=180)).isoformat()})
    week = urlencode({"since": (now - timedelta(days=187)).isoformat()}) + "&" + half
    for days in (1, 30, 365):
        yield f"models, {days} days", f"/models/?since={24 * days}h"
    yield "models", "/models/"
    yield "models, by variant", "/models/?by=variant"
    yield "models, one purpose", "/models/?purpose=plan&range=30d"
    for preset in ("1h", "7d", "30d", "all"):
        yield f"overview, {preset}", f"/?range={preset}"
    yield "overview, a week of half a year ago", f"/?{week}"
    yield "calls of half a year ago", f"/calls/?{half}"
    yield "calls, deep cursor", f"/calls/?{urlencode({'cursor': of.deep})}"
    for name, query in _CALLS:
        yield f"calls, {name}", f"/calls/?{query}"
    yield "conversations, one name", f"/conversations/?q={LONG_CONVERSATION}"
    yield "conversations of half a year ago", f"/conversations/?{half}"
    for name, query in _CONVERSATIONS:
        yield f"conversations, {name}", f"/conversations/?{query}"
    for name, query in _TRIMS:
        yield f"trims{name}", f"/trims/?{query}"
    yield "trims of half a year ago", f"/trims/?{half}"
    for name, query in _PLANS:
        yield f"plans{name}", f"/plans/?{query}"
    yield "plans of half a year ago", f"/plans/?{half}"
    yield "find", "/find/?q=agent-00"
    yield "find, a call", f"/find/?q={quote(of.call)}"
    yield "query help", "/query/calls/?query=level%3Acritical"
    yield "generation", reverse("generation", args=[of.generation, of.conversation])
    yield "conversation, lines", reverse("conversation-budget", args=[of.conversation])
    yield "call, lines", reverse("call-budget", args=[of.call])
    yield "compare calls", f"/compare/calls/?b={quote(of.call)}"
    yield "reminders", reverse("reminders", args=[of.conversation])
    if of.plan:
        yield "one plan", reverse("plan", args=[of.plan])
        yield "compare plans", "/compare/plans/?" + urlencode({"a": of.other_plan, "b": of.plan})
    if of.trim:
        yield "one trim", reverse("trim", args=[of.trim])
        yield "compare trim", reverse("compare-trim", args=[of.trim])
    for name in _PLAIN:
        yield name, reverse(name)


_CALLS = (
    ("one level", "level=critical"),
    ("one level, 30 days", "level=critical&range=30d"),
    ("one client", "client=nobody"),
    ("failed", "cause=any"),
    ("one model", "model=openai%2Fgpt-4o"),
    ("a rare model", "model=local%2Fphi-4"),
    ("one size", "size=over+64+KB"),
    ("one purpose", "purpose=verify"),
    ("one pack", "pack=coder"),
    ("one variant", "variant=single_pick"),
    ("tokens over", "tokens_over=300000"),
    ("no tokens over", "tokens_over=90000000"),
    ("a query", urlencode({"query": "latency:>2s -cause:timeout"})),
    ("a query of many terms", urlencode({"query": "model:openai/* -level:healthy has:trim"})),
    ("a query that nothing fits", urlencode({"query": "latency:>2000s has:cut"})),
    ("a query of one hour", urlencode({"query": "output:>800", "range": "1h"})),
)
_CONVERSATIONS = (
    ("newest", "order=newest"),
    ("one model", "model=ollama%2Fllama3.1%3A8b"),
    ("more than one call", "min_calls=2"),
    ("ten calls and more", "min_calls=10"),
    ("one call", "min_calls=1"),
    ("30 days", "range=30d"),
    ("nothing found", "q=nothing"),
    ("level and model", "level=critical&model=openai%2Fgpt-4o"),
)
_TRIMS = (
    ("", ""),
    (", 30 days", "range=30d"),
    (", one model", "model=openai%2Fgpt-4o"),
    (", over", "outcome=over"),
    (", one cut", "cut=descriptions"),
    (", one catalog", "catalog=c1"),
)
_PLANS = (
    ("", ""),
    (", 30 days", "range=30d"),
    (", one model", "model=openai%2Fgpt-4o"),
    (", failed", "outcome=failed"),
    (", running", "outcome=running"),
    (", routes", "kind=route"),
    (", one variant", "variant=single_pick"),
    (", one tool", "tool=mailer"),
    (", search", "q=report"),
    (", search, nothing", "q=nothing"),
    (", by intent", "by=intent"),
)
# Pages without anything to choose.
_PLAIN = (
    "weekly",
    "weekly-file",
    "connect",
    "budgets",
    "catalog",
    "try-fit",
    "try-plan",
    "try-route",
    "find",
    "help",
    "reds",
    "settings",
    "members",
    "audit",
    "alerts",
    "alert-rule",
    "alert-channel",
    "care-settings",
    "gateway",
    "upstreams",
    "recorder",
    "profile",
    "compare-calls",
    "compare-plans",
)


def lists(of: Known) -> Named:
    """The lists of the API, by those who read them."""
    day = timezone.now() - timedelta(days=10)
    range_ = {"since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()}
    end = timezone.now() - timedelta(days=180)
    old = {"since": (end - timedelta(days=1)).isoformat(), "until": end.isoformat()}
    for name, query in (
        ("GET /calls", {}),
        ("GET /calls, 500 rows", {"limit": 500}),
        ("GET /calls, deep cursor", {"cursor": of.deep}),
        ("GET /calls by conversation", {"conversation": of.conversation}),
        ("GET /calls by model", {"model": "ollama/llama3.1:8b"}),
        ("GET /calls by level", {"level": "critical"}),
        ("GET /calls by cause", {"cause": "refused"}),
        ("GET /calls by finish reason", {"finish_reason": "refusal"}),
        ("GET /calls by common finish reason", {"finish_reason": "stop"}),
        ("GET /calls by purpose", {"purpose": "verify"}),
        ("GET /calls by pack", {"pack": "coder"}),
        ("GET /calls by a pack nobody has", {"pack": "nobody"}),
        ("GET /calls by tokens", {"tokens_over": 300_000}),
        ("GET /calls in a time range", range_),
        ("GET /calls search, one id", {"q": f"{of.stem}call-00001234"}),
        ("GET /calls search, many ids", {"q": f"{of.stem}call-0"}),
        ("GET /calls search, the oldest ids", {"q": f"{of.stem}call-0001"}),
        ("GET /calls search, conversations", {"q": f"{of.stem}agent-00"}),
        ("GET /calls search, nothing", {"q": "nothing"}),
        (
            "GET /calls, filters that exclude each other",
            {"level": "critical", "cause": "timed_out"},
        ),
    ):
        yield name, f"/api/v1/calls?{urlencode(query)}"
    for name, query in (
        ("GET /conversations", {}),
        ("GET /conversations by level", {"level": "critical"}),
        ("GET /conversations by model", {"model": "ollama/llama3.1:8b"}),
        ("GET /conversations of ten calls", {"min_calls": 10}),
        ("GET /conversations search", {"q": "0123"}),
        ("GET /conversations search, nothing", {"q": "nothing"}),
        ("GET /conversations in a time range", range_),
        ("GET /conversations, a day of half a year ago", old),
    ):
        yield name, f"/api/v1/conversations?{urlencode(query)}"
    yield "GET /calls/{id}", f"/api/v1/calls/{quote(of.call)}"
    yield "GET /conversations/{id}", f"/api/v1/conversations/{of.conversation}"
    yield "GET /conversations/{id}/timeline", f"/api/v1/conversations/{of.conversation}/timeline"
    for name, query in (
        ("GET /plans", {}),
        ("GET /plans by model", {"model": "openai/gpt-4o"}),
        ("GET /plans by outcome", {"outcome": "failed"}),
        ("GET /plans by tool", {"tool": "mailer"}),
        ("GET /plans by caller", {"caller": "nobody"}),
        ("GET /plans search, nothing", {"q": "nothing"}),
        ("GET /plans in a time range", range_),
    ):
        yield name, f"/api/v1/plans?{urlencode(query)}"
    if of.plan:
        yield "GET /plans/{id}", f"/api/v1/plans/{of.plan}"
    for path in ("budgets", "catalogs", "my-plans", "my-defaults", "suggestions"):
        yield f"GET /{path}", f"/api/v1/{path}"
    model = urlencode({"model": "openai/gpt-4o"})
    yield "GET /learned-limits", f"/api/v1/learned-limits?{model}"
    yield "GET /budgets/resolve", f"/api/v1/budgets/resolve?{model}"


def _longest_conversation(project: ProjectInfo) -> ConversationView:
    """The one of a large load that is made long; else the longest of the newest 500."""
    made = conversations.standing(project_id=project.id, conversation_id=LONG_CONVERSATION)
    if made is not None:
        return made
    newest = listing.page(project_id=project.id, filters=ConversationFilters(), limit=500).items
    return max(newest, key=lambda row: row.generation)
