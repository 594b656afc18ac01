"""What every command of ours is: Django's, printing names so that nothing in them stays unseen."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from django.core.management import base

from helmdash.core.access.origin import Origin, Way, coming_by
from helmdash.core.text.visible import visible_lines


class VisibleOutput(base.OutputWrapper):
    """Writes escapes for control, direction and zero-width characters; colours are put on after."""

    def write(  # type: ignore[override]  # as Django has it
        self, msg: str = "", style_func: Any = None, ending: str | None = None
    ) -> None:
        """As Django's, with unseen characters as escapes; `msg` may have several lines."""
        super().write(visible_lines(msg), style_func, ending)


class BaseCommand(base.BaseCommand):
    """Colour a line with `style_func`; an escape sequence inside of it would be shown as text."""

    def __init__(
        self,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        no_color: bool = False,
        force_color: bool = False,
    ) -> None:
        super().__init__(stdout, stderr, no_color, force_color)
        self.stdout = VisibleOutput(stdout or sys.stdout)
        self.stderr = VisibleOutput(stderr or sys.stderr)
        if not no_color:
            self.stderr.style_func = self.style.ERROR

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run, with what the caller gave for output wrapped, too."""
        for name in ("stdout", "stderr"):
            given = options.pop(name, None)
            if given is not None:
                setattr(self, name, VisibleOutput(given))
        with coming_by(Origin(Way.COMMAND)):
            return super().execute(*args, **options)
