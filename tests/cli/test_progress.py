"""The line that tells how far a command is."""

from __future__ import annotations

import io
import logging

import pytest
from django.core import management
from django.core.management import CommandError, call_command

from helmdash.cli import running
from helmdash.cli.progress import progress_line
from helmdash.operations.jobs import kinds
from tests.factories import make_project


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


def _stop(*_args: object, **_kwargs: object) -> bool:
    raise KeyboardInterrupt


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("command", "work", "words"),
    [
        (("demo", "load"), "demo_now", "a part may be loaded: `demo load` begins anew"),
        (("rebuild_rollups",), "rebuild_now", "goes on where it was"),
        (("retain",), "retain_now", "deleted so far stays so"),
    ],
)
def test_a_long_command_that_is_stopped_says_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], work: str, words: str
) -> None:
    make_project()
    monkeypatch.setattr(kinds, work, _stop)

    with pytest.raises(CommandError, match=f"stopped; .*{words}") as ended:
        call_command(*command)

    assert ended.value.returncode == 130


def test_a_command_that_is_stopped_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(management, "execute_from_command_line", _stop)

    assert running.run(["manage.py", "settings_help"]) == 130
    assert capsys.readouterr().err.endswith("Stopped.\n")
