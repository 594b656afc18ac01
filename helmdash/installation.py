"""Where this HelmDash lies, a checkout or the package that pip installed, and what goes by it.

Templates, static files and fixtures are folders of their own in a checkout. The wheel holds them
within the package (pyproject.toml says so to the build), since nothing else of it has a sure place.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"

IS_INSTALLED = _SHIPPED.is_dir()
# Of a checkout; where HelmDash is installed, a folder that belongs to others.
ROOT = _PACKAGE.parent
TEMPLATES, STATIC, FIXTURES = (
    (_SHIPPED if IS_INSTALLED else ROOT) / name for name in ("templates", "static", "fixtures")
)
# What people type: in sentences, and where it is to be pasted into a shell.
COMMAND = "helmdash" if IS_INSTALLED else "manage.py"
SHELL_COMMAND = "helmdash" if IS_INSTALLED else ".venv/bin/python manage.py"


def default_data_dir() -> Path:
    """Where data lies unless HELMDASH_DATA_DIR says otherwise; `~` may begin it.

    Beside the code in a checkout. Else in the person's own folder for data, so that each command
    finds it, whatever folder it is called in.
    """
    if not IS_INSTALLED:
        return ROOT / "var"
    told = os.environ.get("XDG_DATA_HOME", "")
    # A path that is not absolute is to be ignored, by the specification of these variables.
    if os.path.isabs(told):
        return Path(told) / "helmdash"
    is_mac = sys.platform == "darwin"
    return Path("~/Library/Application Support" if is_mac else "~/.local/share") / "helmdash"
