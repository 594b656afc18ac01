"""How much of the SQLite file a connection keeps in memory: what serves people has many of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import environment

_ASK = """
import django
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    print(cursor.execute("PRAGMA cache_size").fetchone()[0])
"""


@pytest.mark.parametrize(
    ("settings", "kib"), [("helmdash.settings", 2_000), ("helmdash.settings_writer", 8_000)]
)
def test_a_connection_caches_little_and_the_writers_more(
    tmp_path: Path, settings: str, kib: int
) -> None:
    own = {"DJANGO_SETTINGS_MODULE": settings, "HELMDASH_DATA_DIR": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", _ASK],
        env={**environment.clean(), **own},
        capture_output=True,
        text=True,
        check=True,
    )

    # Below nought SQLite counts kibibytes, not pages.
    assert int(done.stdout) == -kib
