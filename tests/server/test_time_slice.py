"""The writer process takes the longest time slice that Linux gives, and keeps all else."""

from __future__ import annotations

import platform
import re
import subprocess
import sys

import pytest

# The release of Linux tells the slice of a usual process from 6.12 on.
_TOLD = """
import ctypes, os, struct, threading
from helmdash.cli.writer import time_slice
numbers = time_slice._CALLS[os.uname().machine]

def attributes():
    told = ctypes.create_string_buffer(56)
    assert ctypes.CDLL(None).syscall(numbers[1], 0, told, 56, 0) == 0
    return struct.unpack("IIQiIQQQII", told.raw)

os.nice(3)
before = attributes()
assert time_slice.take_longest_time_slice()
threads = [attributes()]
thread = threading.Thread(target=lambda: threads.append(attributes()))
thread.start()
thread.join()
for after in threads:
    assert after[:5] == before[:5], (before, after)
print(*(after[5] for after in threads))
"""


def _takes_slices() -> bool:
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    release = (int(found[1]), int(found[2])) if found else (0, 0)
    known = platform.machine() in ("x86_64", "aarch64")
    return platform.system() == "Linux" and known and release >= (6, 12)


@pytest.mark.skipif(not _takes_slices(), reason="Linux gives no slices before 6.12")
def test_its_threads_have_the_longest_slice_and_are_as_nice_as_before() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _TOLD], capture_output=True, text=True, check=True
    ).stdout

    assert told.split() == ["100000000", "100000000"]


@pytest.mark.parametrize("machine", ["riscv64", ""])
def test_where_the_calls_are_not_known_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    from helmdash.cli.writer import time_slice

    monkeypatch.setattr(platform, "machine", lambda: machine)

    assert not time_slice.take_longest_time_slice()
