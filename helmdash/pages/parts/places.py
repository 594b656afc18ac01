"""The pages and actions that somebody can go to by name, for who may."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.urls import reverse

from helmdash.core.access.permissions import Right


@dataclass(frozen=True, slots=True)
class Place:
    """A page, or where an action is begun. words: what else it is looked for by. right: who lacks
    it is not led there; query: how its address ends."""

    label: str
    view: str
    words: str = ""
    right: Right = Right.READ
    query: str = ""

    @property
    def address(self) -> str:
        return reverse(self.view) + self.query


PAGES = (
    Place("Overview", "overview", "home start"),
    Place("Conversations", "conversations"),
    Place("Calls", "calls", "requests"),
    Place("Plans", "plans", "routes history"),
    Place("Trims", "trims", "fits compaction cut"),
    Place("Does trimming pay?", "net-value", "net value cache saved compaction clear"),
    Place("Models", "models", "rates latency"),
    Place("Week", "weekly", "report summary"),
    Place("Budgets", "budgets", "limits lines windows", Right.READ_BUDGETS),
    Place("What-if", "what-ifs", "try edits of budgets", Right.READ_BUDGETS),
    Place("Preflight", "preflight", "fallback another model fits"),
    Place("Catalog", "catalog", "packs pipelines tools"),
    Place("Connect", "connect", "agents Claude Code Codex Gemini import set up"),
    Place("Gateway", "gateway", "clients policy"),
    Place("Upstreams", "upstreams", "providers endpoints"),
    Place("Recorder", "recorder", "spool ledger jobs"),
    Place("Settings", "settings", "keys retention"),
    Place("Care settings", "care-settings", "guidance clear"),
    Place("Members", "members", "people roles"),
    Place("Alerts", "alerts", "rules channels messages notify firing"),
    Place("Audit log", "audit", "changes who", Right.READ_AUDIT),
    Place("Admin", "admin:index", "rows tables projects accounts", Right.CHANGE_BUDGETS),
    Place("The API", "api:docs", "reference endpoints OpenAPI"),
    Place("Profile", "profile", "password sessions theme zone"),
    Place("Help", "help", "keys words glossary shortcuts"),
)
ACTIONS = (
    Place("See failed calls", "calls", "errors causes", query="?cause=any"),
    Place("See critical conversations", "conversations", "red full", query="?level=critical"),
    Place("Try a fit", "try-fit", "compaction trim", Right.FIT),
    Place("Try a plan", "try-plan", "intent", Right.PLAN),
    Place("Try a route", "try-route", "intent", Right.PLAN),
    Place("Make an API key", "settings", "token secret", Right.MANAGE_KEYS),
    Place("Add a member", "members", "people role invite", Right.MANAGE_MEMBERS),
    Place("Add a budget", "admin:records_budget_add", "limit line", Right.CHANGE_BUDGETS),
    Place("Change a budget", "budgets", "edit limit line caution critical", Right.CHANGE_BUDGETS),
    Place("See the edits of budgets of this week", "budget-edits", "history revert undo"),
    Place("Try an edit of budgets on recorded calls", "what-ifs", "what-if", Right.CHANGE_BUDGETS),
    Place("Resolve or mute what fails", "overview", "failing triage", Right.TRIAGE, "#failing"),
    Place(
        "Snooze what needs attention", "overview", "done triage", Right.TRIAGE, "#needs-attention"
    ),
    Place("Add an alert", "alert-rule", "rule notify mail webhook", Right.CHANGE_SETTINGS),
    Place("Compare two calls", "compare-calls", "differences before after"),
    Place("Compare two plans", "compare-plans", "differences side by side"),
    Place("Change the color scheme", "profile", "dark light theme"),
    Place("Change your password", "profile", "sign in sessions"),
    Place("Load or remove demo data", "settings", "example sample", Right.MANAGE_DEMO),
    Place("Change the gateway's policy", "gateway", "large requests", Right.CHANGE_SETTINGS),
    Place("Change what care does", "care-settings", "guidance clear", Right.CHANGE_SETTINGS),
    Place("Add an upstream", "admin:records_upstream_add", "provider", Right.MANAGE_UPSTREAMS),
)


def places(among: tuple[Place, ...], *, text: str, rights: Collection[Right]) -> tuple[Place, ...]:
    """Those that have every word that was typed, for who has these rights."""
    wanted = text.lower().split()
    return tuple(
        place
        for place in among
        if place.right in rights
        and all(word in f"{place.label} {place.words}".lower() for word in wanted)
    )
