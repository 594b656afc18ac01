"""The environment of a test run: nothing of the developer's shell, and the database asked for.

tests/conftest.py calls `prepare` before Django reads its settings. Where workers run
the tests, the process that starts them prepares; they inherit what it set.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import NoReturn

import django
import pytest

from helmdash.core.upstreams.upstream_variables import VARIABLES
from tests.support import ROOT as ROOT
from tests.support import needs
from tests.support.certificates import certificate
from tests.support.postgres import NoPostgres, Postgres
from tests.support.processes import kill_left_over

_OWN = {"HELMDASH_TEST_DB"}
_PRODUCT = ("HOST", "PORT", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "DJANGO_ALLOW_ASYNC_UNSAFE")
# Upstreams are found in the environment: a developer's own keys are not for tests to use.
_VENDORS = (
    "ANTHROPIC_",
    "DEEPSEEK_",
    "GEMINI_",
    "GOOGLE_",
    "GROQ_",
    "MISTRAL_",
    "OLLAMA_",
    "OPENAI_",
    "OPENROUTER_",
)

_postgres: Postgres | None = None
_no_postgres = ""
_data_dir: str | None = None


def is_worker() -> bool:
    """Whether this process runs tests for another one."""
    return "PYTEST_XDIST_WORKER" in os.environ


def database() -> str:
    """sqlite or postgres, by HELMDASH_TEST_DB."""
    name = os.environ.get("HELMDASH_TEST_DB") or "sqlite"
    if name not in {"sqlite", "postgres"}:
        raise pytest.UsageError(f"HELMDASH_TEST_DB={name}: sqlite or postgres")
    return name


def clean() -> dict[str, str]:
    """This process's environment without any setting of HelmDash's, or key of a provider."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in (*_PRODUCT, *VARIABLES)
        and (name in _OWN or not name.startswith("HELMDASH_"))
    }


def prepare() -> None:
    """Set the environment, start PostgreSQL if it is asked for, and set Django up."""
    end_when_asked()
    if not is_worker():
        _prepare_controller()
    django.setup()


def end_when_asked() -> None:
    """Asked to end, end as on Ctrl-C: with what was started stopped and removed.

    Whoever asks twice, as `make` passes on what its whole group is sent, does not break that off.
    """

    def end(number: int, frame: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def _prepare_controller() -> None:
    global _postgres, _no_postgres, _data_dir
    kept = clean()
    os.environ.clear()
    os.environ.update(kept)
    _data_dir = tempfile.mkdtemp(prefix="helmdash-test-")
    os.environ["DJANGO_SETTINGS_MODULE"] = "helmdash.settings_test"
    os.environ["HELMDASH_DATA_DIR"] = _data_dir
    # The one authority of a run. To read the world's takes 50 ms for each client of a test, and
    # 100 at each start of a HelmDash (tests/server/test_installed.py starts with those); no test
    # meets anybody whom they vouch for.
    os.environ["SSL_CERT_FILE"] = str(certificate(Path(_data_dir))[0])
    if database() == "postgres":
        try:
            _postgres = Postgres.start()
        except NoPostgres as error:
            _no_postgres = str(error)
        else:
            os.environ["DATABASE_URL"] = _postgres.url("postgres")


def check() -> None:
    """End the run, loudly, when it should be on PostgreSQL and there is none."""
    if _no_postgres:
        sentence = f"NOT TESTED: nothing ran on PostgreSQL. {_no_postgres}"
        pytest.exit(sentence, returncode=1 if needs.in_ci() else 0)


def finish() -> None:
    """Stop and remove what this run made; does nothing in a worker."""
    global _postgres, _data_dir
    if _data_dir is not None:
        kill_left_over(Path(_data_dir))
    if _postgres is not None:
        _postgres.stop()
        _postgres = None
    if _data_dir is not None:
        shutil.rmtree(_data_dir, ignore_errors=True)
        _data_dir = None
