"""Bring what the suite needs and pip cannot install; `make test` runs this first.

A Chromium: the one without windows from apt, else what is on the machine, else Playwright's. Two
small libraries that a bare Debian lacks: Playwright's driver and the local model's server are
linked to them. curl: what the README and the pages have people call is called. A PostgreSQL, where
there is no wheel with one for this Python. apt is asked only where nobody has to be: as root. What
stays missing is skipped, loudly, by the tests themselves.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

from tests.support import chromium, postgres

# Library -> Debian's package.
_LIBRARIES = {"libatomic.so.1": "libatomic1", "libgomp.so.1": "libgomp1"}
# Each the name of its package, too.
_PROGRAMS = ("curl",)
_DOWNLOAD_SECONDS = 300
_APT_SECONDS = 600


def provide() -> None:
    """Install what is missing, as far as this user may."""
    lacking = [package for name, package in _LIBRARIES.items() if _lacks(name)]
    lacking += [program for program in _PROGRAMS if shutil.which(program) is None]
    if not _has_postgres():
        lacking.append("postgresql")
    if lacking:
        _install_with_apt(lacking)
    if shutil.which(chromium.HEADLESS) is None:
        _install_with_apt([chromium.HEADLESS])
    if _has_chromium():
        return
    _say("No Chromium here; asking Playwright for one ...")
    command = [sys.executable, "-m", "playwright", "install", "chromium", "--only-shell"]
    _run(command, _DOWNLOAD_SECONDS)
    if not _has_chromium():
        _install_with_apt(["chromium"])


def _has_postgres() -> bool:
    try:
        postgres.find_binaries()
    except postgres.NoPostgres:
        return False
    return True


def _has_chromium() -> bool:
    try:
        chromium.find()
    except chromium.NoChromium:
        return False
    return True


def _lacks(library: str) -> bool:
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL(library)
    except OSError:
        return True
    return False


def _install_with_apt(packages: list[str]) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    _say(f"Installing with apt: {' '.join(packages)} ...")
    _run(["apt-get", "update", "-qq"], _APT_SECONDS)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], _APT_SECONDS)


def _run(command: list[str], seconds: int) -> None:
    """Run quietly; say so when it fails. Whether it helped shows in what is there afterwards."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        _say(f"  gave up after {seconds} s: {' '.join(command)}")
        return
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        _say(f"  failed: {' '.join(command)}: {' '.join(last)}")


def _say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    provide()
