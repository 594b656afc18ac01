"""`manage.py settings_help`: every setting, its default and what it does."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.installation import IS_INSTALLED, ROOT


class Command(BaseCommand):
    help = "List the environment variables that steer HelmDash."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        for name, default, description in settings_table():
            self.stdout.write(f"{name}  (default: {default or 'empty'})")
            self.stdout.write(textwrap.indent(textwrap.fill(description, 92), "    "))


def settings_table() -> list[tuple[str, str, str]]:
    """(variable, default, description) of every setting, as the docs list them."""
    return [
        (conf.variable_name(field), _default(info.default), info.description or "")
        for field, info in conf.Env.model_fields.items()
    ]


def _default(value: object) -> str:
    if isinstance(value, Path):
        # Relative to a checkout, so that the text is the same on every machine.
        return f"{value if IS_INSTALLED else value.relative_to(ROOT)}/"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
