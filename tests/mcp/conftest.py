"""One HelmDash for all tests of the MCP face, with a scripted model behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.mcp.world import World, answer, furnish
from tests.support.server import Served
from tests.support.upstreams.scripted import run_scripted


@pytest.fixture(scope="session")
def world(serve: Callable[..., Served]) -> Iterator[World]:
    """A HelmDash with a catalog, keys of several rights, and one upstream."""
    with run_scripted(answer) as model:
        served = serve(HELMDASH_PUBLIC_URL="https://helm.example.org")
        furnish(served, model.base_url)
        with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as http:
            yield World(served=served, model=model, http=http)
