"""Real agents and libraries as npm and PyPI give them, against a HelmDash with simulated vendors.

Their packages take almost two gigabytes, so `make test-clients` installs them and the suite leaves
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
    """The folder with the agents' commands, the Node that runs them, and the libraries' Python."""
    assert _INSTALLED is not None
    return Path(_INSTALLED).absolute()
