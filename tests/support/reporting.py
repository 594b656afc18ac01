"""What a worker tells of its tests: not that nothing happened while one was set up or torn down.

xdist sends a report of each of a test's three phases, and its controller makes each one whole again
and shows it to every plugin: 22 s of CPU for twelve thousand tests, two thirds of them for setups
and teardowns that took no time, printed nothing and went well. Nobody looks at these.
"""

from __future__ import annotations

from typing import Any

import pytest

# Longer ones may be among the slowest that `--durations` shows.
_SHORT_SECONDS = 0.1


def send_what_matters(config: pytest.Config) -> None:
    """Have a worker of xdist's keep such reports to itself."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            _filter(plugin)


def _filter(interactor: Any) -> None:
    send = interactor.sendevent

    def sendevent(name: str, **told: Any) -> None:
        if name != "testreport" or not _is_dull(told["data"]):
            send(name, **told)

    interactor.sendevent = sendevent


def _is_dull(report: dict[str, Any]) -> bool:
    return (
        report["when"] != "call"
        and report["outcome"] == "passed"
        and report["duration"] < _SHORT_SECONDS
        and not report["sections"]
    )
