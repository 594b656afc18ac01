"""Threads of a server share two heaps, unless the operator says how many there are."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT, environment

# Threads that allocate side by side, each for the first time; then how many heaps there are.
_THREADS = """
import ctypes
import re
import tempfile
import threading

from helmdash.shared_heaps import share_heaps

share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fdopen.restype = ctypes.c_void_p
met = threading.Barrier(8)


def allocate():
    met.wait()
    libc.malloc(1000)
    met.wait()


threads = [threading.Thread(target=allocate) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
with tempfile.TemporaryFile("w+") as file:
    stream = ctypes.c_void_p(libc.fdopen(file.fileno(), b"w"))
    libc.malloc_info(0, stream)
    libc.fflush(stream)
    file.seek(0)
    print(len(re.findall("<heap nr", file.read())))
"""


@pytest.mark.one_database
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="GNU's malloc alone has heaps")
@pytest.mark.parametrize(("asked", "heaps"), [("", 2), ("4", 4)])
def test_threads_share_the_heaps(asked: str, heaps: int) -> None:
    """With one for each, what lay free in them grew for as long as a soak went on."""
    env = {**environment.clean(), **({"MALLOC_ARENA_MAX": asked} if asked else {})}

    ran = subprocess.run(
        [sys.executable, "-c", _THREADS],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (ran.stdout, ran.stderr) == (f"{heaps}\n", "")
