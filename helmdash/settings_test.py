"""Settings of the test runs: the real ones, without the slow parts that tests do not test."""

from __future__ import annotations

import os
import tempfile

# Before helmdash.settings reads the environment: a run leaves nothing in the checkout's var/.
if "HELMDASH_DATA_DIR" not in os.environ:
    os.environ["HELMDASH_DATA_DIR"] = tempfile.mkdtemp(prefix="helmdash-test-")
os.environ.setdefault("HELMDASH_SECRET_KEY", "tests-only-not-a-secret")

from helmdash.settings import *  # noqa: F403
from helmdash.settings import DATABASES, STORAGES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, not memory: threads of one test must share it as server threads do.
    DATABASES["default"]["TEST"] = {
        "NAME": os.path.join(os.environ["HELMDASH_DATA_DIR"], "test.sqlite3")
    }
    DATABASES["default"]["OPTIONS"] = {
        **DATABASES["default"]["OPTIONS"],
        "init_command": "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
        " PRAGMA secure_delete=ON;",
    }
else:
    # Each test process opens and closes its own connections.
    DATABASES["default"]["OPTIONS"].pop("pool", None)
