"""When the servers of a run end: with the fixture or the test that started them.

One that nobody asks anything still takes 0.7 % of a core, for its looks at jobs and clocks. A lane
starts some forty: kept to its end, they took a tenth of both cores from all that ran meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import environment
from tests.support.server import Served, serve
from tests.support.sharing_out import group_of

# The fixture by which tests start servers.
_FIXTURE = "serve"


class Servers:
    """Those of this process. A plugin of pytest's, since a conftest.py hears of no fixture that is
    a session's.
    """

    def __init__(self) -> None:
        self._owners: list[pytest.FixtureRequest | pytest.Item] = []
        self._end_kept: Callable[[], object] = lambda: None

    def start(self, parent: Path, *, first: bool = False, **settings: str) -> Served:
        """Start one as tests.support.server does; it ends with what is set up, or run, just now."""
        served = serve(parent, first=first, **settings)
        self._owners[-1].addfinalizer(served.close)
        return served

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: Any
    ) -> Generator[None, object, object]:
        """A fixture owns what it starts."""
        if fixturedef.argname == _FIXTURE:
            # With it end the fixtures that ask for it.
            self._end_kept = partial(fixturedef.finish, request)
        self._owners.append(request)
        try:
            return (yield)
        finally:
            self._owners.pop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test owns what it starts."""
        self._owners.append(item)
        try:
            return (yield)
        finally:
            self._owners.pop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, None, None]:
        """End with the last of a group what fixtures of the session keep for it.

        pytest would keep it to the end of the run, and no test outside asks for it, or hardly one;
        who does gets a new one. Without workers, the tests of a group do not follow each other.
        """
        yield
        following = group_of(nextitem) if nextitem is not None else None
        if environment.is_worker() and group_of(item) not in (None, following):
            self._end_kept()
