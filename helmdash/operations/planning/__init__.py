"""Planning: an intent becomes a plan or a route, and what that took is kept (ADR 15).

`making.make_plan` tells the whole story; the other modules are its chapters: `asking` (what was
asked and what is known), `trying` (one call to a model, and what its reply was worth), `filtering`
(asking a model which entries matter), `answering` (the answer's JSON), `plan_rows` (the rows).
"""

from __future__ import annotations

from helmdash.operations.planning.asking import Ask, AskProblem
from helmdash.operations.planning.making import (
    Made,
    PlanFailed,
    Progress,
    begin_plan,
    make_plan,
)
from helmdash.operations.planning.plan_rows import fail_plan

__all__ = [
    "Ask",
    "AskProblem",
    "Made",
    "PlanFailed",
    "Progress",
    "begin_plan",
    "fail_plan",
    "make_plan",
]
