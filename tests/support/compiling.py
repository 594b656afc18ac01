"""A plugin that compiles HelmDash and the tests, and collects none: `make test` once in a checkout.

In a fresh one both runs would rewrite the asserts of all tests, at the same time: 13 s
of CPU each. pytest has no public way to have it done before, so a failure here costs time only.
"""

from __future__ import annotations

import compileall
import os
import re
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ROOT

# What pytest itself compiles is not read as it was written.
_REWRITTEN = re.compile(r"/(test_[^/]+|conftest)\.py$")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool:
    # Ten seconds of CPU in all; with one process, a core has nothing to do meanwhile.
    beside = os.fork()
    if beside == 0:
        try:
            for name in ("helmdash", "tests"):
                compileall.compile_dir(ROOT / name, quiet=2, rx=_REWRITTEN)
            _anything()
        finally:
            os._exit(0)
    for file in (ROOT / "tests").rglob("*.py"):
        if _REWRITTEN.search(file.as_posix()):
            _compile(file, session.config)
    os.waitpid(beside, 0)
    return True


@settings(max_examples=1, database=None)
@given(st.text())
def _anything(text: str) -> None:
    """Has Hypothesis keep its table of letters in .hypothesis: 3 s of CPU for each worker else."""


def _compile(file: Path, config: pytest.Config) -> None:
    directory = get_cache_dir(file)
    compiled = directory / (file.stem + PYC_TAIL)
    if _read_pyc(file, compiled) is None and try_makedirs(directory):
        status, code = _rewrite_test(file, config)
        _write_pyc(config.stash[assertstate_key], code, status, compiled)
