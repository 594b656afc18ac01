"""Forked workers run each test once, and tell of it what one process would."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.forking import WORKS_HERE
from tests.support.processes import run_python
from tests.support.sharing_out import batches, group_of

_CONFTEST = """
import pytest
from tests.support.workers import take_over
pytest_cmdline_main = pytest.hookimpl(tryfirst=True)(take_over)
"""
_TESTS = """
import functools, os, pathlib, time, warnings
import pytest

notes = pathlib.Path(__file__).with_name("notes")

def note(word):
    with notes.open("a") as file:
        file.write(f"{word} {os.getpid()}\\n")

@functools.cache
def meet():
    # Or the first worker has done them all on a busy machine before the second has begun.
    end = time.monotonic() + 20
    while notes.with_name("meet").exists() and time.monotonic() < end:
        if len({line for line in notes.read_text().splitlines() if "good" in line}) > 1:
            break
        time.sleep(0.01)

@pytest.fixture(scope="session")
def session():
    yield
    note("ended")

@pytest.mark.parametrize("n", range(30))
def test_good(n, session, tmp_path):
    (tmp_path / "file").write_text("")
    note("good")
    meet()

@pytest.mark.parametrize("n", range(5))
@pytest.mark.xdist_group("one")
def test_grouped(n):
    note("grouped")

@pytest.mark.xdist_group("deadly")
@pytest.mark.parametrize("n", range(3))
def test_deadly(n):
    if n == 1:
        os._exit(3)
    note("survived")

def test_bad(capfd):
    print("said before")
    assert 1 + 1 == 3

@pytest.fixture
def broken():
    yield
    print("said at the end")
    raise OSError("torn")

def test_torn(broken): pass
def test_left_out(): pytest.skip("for a reason")
@pytest.mark.xfail(strict=True)
def test_known(): assert False
class Odd(UserWarning): pass
def test_warned(): warnings.warn(Odd("beware"))
def test_many(subtests):
    for n in range(3):
        with subtests.test(n=n):
            assert n != 1
"""
# As much of what is tested: it logs the errors that it knows nothing of, and goes on.
_HANGS = """
import time

def test_a():
    try:
        time.sleep(30)
    except Exception:
        pass
"""


@pytest.mark.skipif(not WORKS_HERE, reason="a fork is not safe here")
def test_workers_run_each_test_once_and_tell_what_one_process_does(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_all.py").write_text(_TESTS)
    options = ("-rA", "-k", "not deadly", "--durations=1", "--durations-min=0.0001")

    alone = run(tmp_path, "-n", "0", *options)
    (tmp_path / "notes").unlink()
    (tmp_path / "meet").touch()
    shared = run(tmp_path, "-n", "3", *options)

    assert shared.returncode == alone.returncode == 1
    assert results(shared) == results(alone) != [], shared.stdout
    for part in (
        *("assert (1 + 1) == 3", "said before", "OSError: torn", "said at the end"),
        *("Odd: beware", "for a reason", "slowest 1 durations", "SUBFAILED"),
    ):
        assert part in shared.stdout, shared.stdout
    noted = notes(tmp_path)
    assert sum(word == "good" for word, _ in noted) == 30
    assert len({pid for word, pid in noted if word == "grouped"}) == 1
    workers = {pid for word, pid in noted if word == "good"}
    assert len(workers) > 1
    assert {pid for word, pid in noted if word == "ended"} == workers, "each ends what it set up"


@pytest.mark.skipif(not WORKS_HERE, reason="a fork is not safe here")
def test_a_worker_that_dies_fails_its_test_and_another_goes_on(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_all.py").write_text(_TESTS)

    told = run(tmp_path, "-n", "1", "-rA", "-k", "deadly or good")

    assert (told.returncode, results(told)[0]) == (1, "FAILED test_deadly[1]"), told.stdout
    assert "worker gw0 has ended with 3" in told.stdout
    assert len(results(told)) == 33 + len(["warnings"])
    assert len({pid for word, pid in notes(tmp_path) if word == "survived"}) == 2


@pytest.mark.skipif(not WORKS_HERE, reason="a fork is not safe here")
@pytest.mark.parametrize(
    ("tests", "options", "code", "said"),
    [
        ("def test_a(:", [], 2, "error"),
        ("def test_a(): assert 0\ndef test_b(): assert 0", ["-x"], 1, "stopping after 1 failures"),
        ("", [], 5, ""),
        ("def test_a(): raise KeyboardInterrupt", [], 2, "KeyboardInterrupt"),
        (_HANGS, ["--timeout=1"], 1, "Failed: Timeout (>1.0s) from pytest-timeout"),
    ],
    ids=["what cannot be read", "a first failure", "nothing", "an interrupt", "one that hangs"],
)
def test_a_run_ends_with_the_code_that_one_process_gives(
    tmp_path: Path, tests: str, options: list[str], code: int, said: str
) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_all.py").write_text(tests)

    told = run(tmp_path, "-n", "2", *options)

    assert (told.returncode, said in told.stdout) == (code, True), told.stdout


def test_all_are_shared_out_once_and_each_group_whole(request: pytest.FixtureRequest) -> None:
    items = request.session.items

    shared = batches(items)

    assert sorted(place for batch in shared for place in batch) == [*range(len(items))]
    of_groups = [{group_of(items[place]) for place in batch} for batch in shared]
    assert all(len(groups) == 1 for groups in of_groups)
    named = [group for groups in of_groups for group in groups if group is not None]
    assert len(named) == len(set(named))


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest in a directory of its own, without what HelmDash's suite adds."""
    plugins = ("-p", "no:django", "-p", "no:randomly", "-p", "no:cacheprovider")
    env = {"PATH": os.defpath, "HOME": str(directory)}
    arguments = ("-m", "pytest", "-c", os.devnull, "--rootdir", str(directory), *plugins)
    return run_python(*arguments, *options, str(directory), env=env, timeout=120)


def results(told: subprocess.CompletedProcess[str]) -> list[str]:
    """What is said of each test at the end, without its file, sorted; and how many warnings."""
    said = re.findall(r"^([A-Z]+(?:\(.*\))?) \S*?::(\S+)", told.stdout, re.MULTILINE)
    warned = re.findall(r"\d+ warnings?", told.stdout.splitlines()[-1])
    return [*sorted(f"{how} {which}" for how, which in said), *warned]


def notes(directory: Path) -> list[tuple[str, str]]:
    """What the tests noted there: a word, and the id of their process."""
    lines = (directory / "notes").read_text().splitlines()
    return [(word, pid) for word, pid in map(str.split, lines)]
