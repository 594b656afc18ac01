"""The OpenAPI against the API: nothing that it allows or forbids leads to a surprise.

Deterministic and small here; `make bench ARGS=fuzz` runs for ten minutes, all doors included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase
from schemathesis.schemas import BaseSchema

from helmdash.api.idempotency import HEADER
from helmdash.api.preconditions import HEADER as GUARD
from tests.api.conftest import Door
from tests.api.planner import NAME
from tests.support import environment

# What a schema cannot say: whether a cursor, a catalog's name or a fallback exists, how the lines
# of a budget lie to each other, whether a text holds JSON, which models are served, whether ids
# repeat and a prompt fits, which blanks Unicode knows, and U+0000 deep inside free objects.
HAS_RULES_BEYOND_ITS_SCHEMA = {
    "list_calls", "list_conversations", "get_timeline", "list_budgets", "create_budget",
    "change_budget", "record_call", "advance_conversation", "clear_conversation", "add_reminder",
    "change_reminder", "fit", "rank", "decode_reply", "put_catalog",
    "plan", "route_intent", "list_plans", "list_trims", "export_calls", "assemble",
    "list_suggestions", "claude_code_hook", "list_what_ifs", "ask_what_if",
}  # fmt: skip

# What the simulated models of `planner` answer to.
PLANS = {"plan": "plan", "route_intent": "route"}

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
ON_SQLITE = environment.database() == "sqlite"
# What the schema forbids is refused before any database: once is enough.
MODES = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if ON_SQLITE else [])]
schema.config.generation.update(modes=MODES)
# Words of our sources as values: two seconds to gather, for strings that the schema names anyway.
schema.config.analysis.constants.enabled = False
# Their fields are those of `record_call`, `create_budget`, `add_reminder`, `plan` and `list_calls`,
# for the same columns; the last two are answered from what they are sent.
SAID_BY_OTHERS = {
    "record_batch", "change_budget", "change_reminder", "route_intent", "export_calls",
    "rank", "assemble",
}  # fmt: skip
OPERATIONS = [
    operation["operationId"]
    for methods in schema.raw_schema["paths"].values()
    for operation in methods.values()
    if ON_SQLITE or operation["operationId"] not in SAID_BY_OTHERS
]
_running: list[str] = []


@pytest.fixture(params=OPERATIONS)
def api(request: pytest.FixtureRequest) -> BaseSchema:
    """The schema, while `law` runs for one operation of it."""
    _running[:] = [request.param]
    return schema


# What an operation's cases are takes a second to draw. `schema.parametrize` draws those of all 38
# while it is collected, in each worker; this where the test runs. It drops the filter of a schema
# that a fixture gives, hence its own.
law = schemathesis.pytest.from_fixture("api").include(
    lambda it: it.operation.definition.raw["operationId"] in _running
)


@pytest.fixture
def kept_connection() -> Iterator[None]:
    """As Django's test client does: the end of a request does not end the test's transaction."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_connection", "planner")
@settings(
    max_examples=3,
    derandomize=True,
    database=None,
    deadline=None,
    # On PostgreSQL, where only what the database refuses is new: the edges of fields, which come
    # as explicit examples, and none drawn by chance.
    phases=[Phase.explicit, *([Phase.generate] if ON_SQLITE else [])],
    suppress_health_check=list(HealthCheck),
)
@law.parametrize()
def test_the_api_does_as_its_openapi_says(case: Any, owner: Door) -> None:
    name = case.operation.definition.raw["operationId"]
    if name in PLANS and case.meta.generation.mode is GenerationMode.POSITIVE:
        # No generated name is one of a model that is served.
        case.body = {**case.body, "model": f"{NAME}/gpt-{PLANS[name]}"}
    # Nor can it say that a key of an earlier example may not come with another body, or which ETags
    # there are.
    may_be_refused = name in HAS_RULES_BEYOND_ITS_SCHEMA or not {HEADER, GUARD}.isdisjoint(
        case.headers or {}
    )
    excluded = ["positive_data_acceptance"] if may_be_refused else []
    if name in PLANS:
        excluded.append("not_a_server_error")  # 502 is documented: the model gave no plan
    if not ON_SQLITE or case.meta.phase.name is not TestPhase.FUZZING:
        # Sends all again, without a key: once for a few cases of each operation is enough.
        excluded.append("ignored_auth")

    response = case.call_and_validate(
        headers={"Authorization": f"Bearer {owner.key}"},
        excluded_checks=[CHECKS.get_one(check) for check in excluded],
    )

    assert response.status_code != 500
