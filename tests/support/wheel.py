"""HelmDash as people install it: the wheel, in a virtualenv of its own.

The virtualenv sees what requirements.txt locks and nothing else: neither the checkout nor the test
packages. These are links to what this run has anyway, so that it costs a second and no network.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.support import ROOT

_SECONDS = 120


def build_wheel(directory: Path) -> Path:
    """Build the wheel of this checkout into a directory; gives its path."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory))
    (wheel,) = directory.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, directory: Path) -> Path:
    """Make a virtualenv in a directory and install a wheel there; gives the folder of its
    commands."""
    _run(sys.executable, "-m", "venv", "--without-pip", str(directory))
    python = directory / "bin" / "python"
    own = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
    for entry in sorted(set(_runtime_entries())):
        (own / entry.name).symlink_to(entry)
    _run(
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"),
        *("--no-cache", "--python", str(python), str(wheel)),
    )
    return python.parent


def _runtime_entries() -> Iterator[Path]:
    """What lies in this run's site-packages for each package that the server's lock names."""
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if not line[:1].isalnum():
            continue
        wanted = Requirement(line.rstrip(" \\"))
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        found = distribution(wanted.name)
        names = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        yield from (Path(str(found.locate_file(name))) for name in names)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
