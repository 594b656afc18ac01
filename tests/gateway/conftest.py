"""One HelmDash for all tests of the gateway, with simulated vendors behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest

from tests.gateway.clients import Client, open_client
from tests.gateway.house import House
from tests.gateway.narrow import Narrow, run_narrow
from tests.gateway.responses_client import ResponsesClient
from tests.gateway.world import PROVIDERS, RESPONSES, World, budgets, furnish, open_http
from tests.support.server import Served
from tests.support.upstreams import Fleet, run_fleet


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """The simulated vendors."""
    with run_fleet() as fleet:
        yield fleet


@pytest.fixture(scope="session")
def world(serve: Callable[..., Served], fleet: Fleet) -> Iterator[World]:
    """A HelmDash whose upstreams are the simulated vendors, with budgets for their models."""
    served = serve(**fleet.environment())
    with (
        open_http(served.base_url, served.api_key) as http,
        open_http(f"{served.base_url}/api/v1", served.api_key) as api,
    ):
        for row in budgets():
            answer = api.post("/budgets", json=row)
            assert answer.status_code == 201, answer.text
        furnish(served, fleet)
        yield World(served=served, fleet=fleet, key=served.api_key, http=http, api=api)


@pytest.fixture
def mark() -> str:
    """A word that makes a model's name this test's own."""
    return uuid4().hex[:10]


@pytest.fixture(scope="session")
def clients(world: World) -> Iterator[dict[str, Client]]:
    """The SDKs, pointed at HelmDash."""
    with ExitStack() as stack:
        yield {
            **{
                shape: stack.enter_context(open_client(shape, world.url, world.key))
                for shape in PROVIDERS
            },
            RESPONSES: stack.enter_context(closing(ResponsesClient(world.url, world.key))),
        }


@pytest.fixture(scope="session")
def narrow() -> Iterator[Narrow]:
    """A model with a narrow window."""
    with run_narrow() as narrow:
        yield narrow


@pytest.fixture(scope="session")
def house(serve: Callable[..., Served], narrow: Narrow) -> Iterator[House]:
    """A HelmDash in front of it; remediation is on in the default project."""
    served = serve(**narrow.environment())
    with (
        open_http(served.base_url, served.api_key) as http,
        open_http(f"{served.base_url}/api/v1", served.api_key) as api,
    ):
        house = House(served=served, narrow=narrow, http=http, api=api)
        house.furnish()
        yield house
