"""Folders stay small enough to be read at a glance, as the redesign asked for: twenty files."""

from __future__ import annotations

from pathlib import Path

import helmdash

_PACKAGE = Path(helmdash.__file__).parent
_MOST = 20


def test_no_folder_has_more_files_than_it_may() -> None:
    """But migrations, which come as they come."""
    sizes = {
        folder.relative_to(_PACKAGE).as_posix(): len(list(folder.glob("*.py")))
        for folder in _PACKAGE.rglob("*")
        if folder.is_dir() and folder.name not in {"__pycache__", "migrations"}
    }

    assert sizes
    assert {name: size for name, size in sizes.items() if size > _MOST} == {}
