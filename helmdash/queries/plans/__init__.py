"""Plan history: the list, one plan, the plans for like intents, and a caller's own groups."""

from __future__ import annotations

from helmdash.queries.plans.detail import (
    AttemptView,
    ChainLink,
    PlanView,
    StepView,
    find,
)
from helmdash.queries.plans.items import STALLED_AFTER, PlanItem, PlanList, neighbours, page
from helmdash.queries.plans.mine import MyPlans, PlanGroup, my_plans
from helmdash.queries.plans.nearest import PlanDetail, SimilarPlan, find_detail, similar

__all__ = [
    "STALLED_AFTER",
    "AttemptView",
    "ChainLink",
    "MyPlans",
    "PlanDetail",
    "PlanGroup",
    "PlanItem",
    "PlanList",
    "PlanView",
    "SimilarPlan",
    "StepView",
    "find",
    "find_detail",
    "my_plans",
    "neighbours",
    "page",
    "similar",
]
