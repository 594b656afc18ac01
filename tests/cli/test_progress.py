"""The line that tells how far a command is."""

from __future__ import annotations

import io
import logging

import pytest

from helmdash.cli.progress import progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_only_warnings_are_logged_over_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = logging.getLogger("helmdash")
    before = log.level
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    with progress_line() as show:
        show("half of it")
        within = log.isEnabledFor(logging.INFO), log.isEnabledFor(logging.WARNING)

    assert within == (False, True)
    assert log.level == before
    assert "half of it" in terminal.getvalue()


def test_elsewhere_all_is_logged_and_no_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("helmdash")
    before, output = log.level, io.StringIO()
    monkeypatch.setattr("sys.stderr", output)

    with progress_line() as show:
        show("half of it")
        within = log.level

    assert within == before
    assert output.getvalue() == ""
