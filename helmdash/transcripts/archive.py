"""The command as one file that any Python runs: a zipapp of this package alone.

Equal sources give equal bytes, wherever it is made: entries are sorted, stored as they are and have
one date.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

_SHEBANG = b"#!/usr/bin/env python3\n"
_PACKAGE = Path(__file__).resolve().parent
# The earliest that a zip file can say.
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.exit("This needs Python 3.9 or newer; here it is " + sys.version.split()[0] + ".")

from helmdash.transcripts.command import main

sys.exit(main())
"""


def build_archive() -> bytes:
    """The zipapp, made of the sources that run here."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        _add(archive, "helmdash/__init__.py", (_PACKAGE.parent / "__init__.py").read_bytes())
        for path in sorted(_PACKAGE.rglob("*.py")):
            name = path.relative_to(_PACKAGE.parent).as_posix()
            _add(archive, f"helmdash/{name}", path.read_bytes())
    return _SHEBANG + held.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=_DATE)
    entry.create_system = 3  # Unix, also where it is made on another system
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)
