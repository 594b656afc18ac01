"""Plan history: the list, one plan, the plans for like intents, and a caller's own groups."""

from __future__ import annotations

from helmdash.queries.plans.carried_out import carried_out
from helmdash.queries.plans.counted import plan_series
from helmdash.queries.plans.detail import (
    AttemptView,
    ChainLink,
    PlanView,
    StepView,
    find,
)
from helmdash.queries.plans.facets import facets
from helmdash.queries.plans.filters import STALLED_AFTER, spelt_out
from helmdash.queries.plans.items import PlanItem
from helmdash.queries.plans.listing import PlanList, export, first_moment, neighbours, page
from helmdash.queries.plans.mine import MyPlans, PlanGroup, my_plans
from helmdash.queries.plans.nearest import PlanDetail, SimilarPlan, find_detail, similar
from helmdash.queries.plans.newest import MOST_READ, NewestPlans, newest_plans
from helmdash.queries.plans.totals import (
    IntentTotal,
    PlanTotal,
    PlanTotals,
    intents,
    totals,
)

__all__ = [
    "MOST_READ",
    "STALLED_AFTER",
    "AttemptView",
    "ChainLink",
    "IntentTotal",
    "MyPlans",
    "NewestPlans",
    "PlanDetail",
    "PlanGroup",
    "PlanItem",
    "PlanList",
    "PlanTotal",
    "PlanTotals",
    "PlanView",
    "SimilarPlan",
    "StepView",
    "carried_out",
    "export",
    "facets",
    "find",
    "find_detail",
    "first_moment",
    "intents",
    "my_plans",
    "neighbours",
    "newest_plans",
    "page",
    "plan_series",
    "similar",
    "spelt_out",
    "totals",
]
