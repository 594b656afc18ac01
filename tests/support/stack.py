"""The stack's room (helmdash.doors.room) below all tests: 296,000 pieces in tests/access and two
more files were a tenth of their CPU time."""

from __future__ import annotations

import pytest

from helmdash.doors.room import with_room


class RunWithRoom:
    """A plugin of pytest's that runs all tests so: in a worker, or without workers."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """What the loop that would run without this one gives."""
        manager = session.config.pluginmanager
        loop = manager.subset_hook_caller("pytest_runtestloop", [self])
        return with_room(loop, session=session)
