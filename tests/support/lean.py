"""Less around each test than pytest and pytest-django do for whoever may ask for it.

A test that does nothing takes 2 ms of CPU, twelve thousand of them half a minute. A fifth of that
went into fixtures of pytest-django's that no test here has a use for, and into asking the same
functions for their arguments again. pytest has no public way to either, so where its insides have
changed, things are as they were: slower, and no different.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import pytest
from _pytest import fixtures

# Each serves a mark, a setting or a fixture that no test uses; tests/tooling/test_harness.py looks.
UNUSED = {
    "_django_clear_site_cache": "django.contrib.sites",
    "_django_isolate_apps": "pytest.mark.django_isolate_apps",
    "_django_set_urlconf": "pytest.mark.urls",
    "_fail_for_invalid_template_variable": "FAIL_INVALID_TEMPLATE_VARS",
    "_live_server_helper": "live_server",
    "_template_string_if_invalid_marker": "pytest.mark.ignore_template_errors",
}
"""By the fixture: the word without which it does nothing."""


def be_lean(session: pytest.Session) -> None:
    """Before tests are collected: do nothing twice, and nothing for nobody."""
    # httpx reads the 140 certificates of the web for each client, 23 ms, also for one that asks a
    # server of its own test. Who wants others names them, and has a context of its own.
    vars(ssl)["create_default_context"] = cache(ssl.create_default_context)
    with contextlib.suppress(AttributeError, KeyError):
        for names in session._fixturemanager._node_autousenames.values():
            names[:] = [name for name in names if name not in UNUSED]
        for names in session._fixturemanager._nodeid_autousenames.values():
            names[:] = [name for name in names if name not in UNUSED]
        inside = vars(fixtures)
        inside["getfuncargnames"] = _remembering(inside["getfuncargnames"])


def _remembering(names_of: Callable[..., tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
    """The same, asked once for each piece of code: pytest asks for each fixture of each test."""

    @cache
    def known(code: CodeType, name: str) -> list[tuple[str, ...]]:
        return []

    def remembering(function: Any, *, name: str = "", cls: type | None = None) -> tuple[str, ...]:
        code = getattr(function, "__code__", None)
        if cls is not None or code is None or hasattr(function, "__wrapped__"):
            return names_of(function, name=name, cls=cls)
        found = known(code, name)
        if not found:
            found.append(names_of(function, name=name, cls=cls))
        return found[0]

    return remembering
