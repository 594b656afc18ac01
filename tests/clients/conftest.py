"""Real agents as npm gives them, run headless against a HelmDash with simulated vendors behind it.

Their packages take almost a gigabyte, so `make test-clients` installs them and the suite leaves
this folder out.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.gateway.conftest import fleet, mark, world

__all__ = ["fleet", "mark", "world"]

_INSTALLED = os.environ.get("CLIENTS_DIR")
collect_ignore_glob = [] if _INSTALLED else ["test_*.py"]


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with the agents' commands and the Node that runs them."""
    assert _INSTALLED is not None
    return Path(_INSTALLED).absolute()
