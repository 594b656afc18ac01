"""Upstreams that no call could reach are named at the start, with the line that helps."""

from __future__ import annotations

import pytest

from helmdash.cli.refused_upstreams import refused_upstreams
from helmdash.core.upstreams.upstream_variables import endpoints_of

SETTING = "HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1"
_NAMES = {
    "inside.test": ["10.1.2.3"],
    "here.test": ["127.0.0.1", "::1"],
    "mixed.test": ["10.1.2.3", "9.9.9.9"],
    "public.test": ["9.9.9.9"],
    "silent.test": [],
}


def _resolve(host: str) -> list[str]:
    if host not in _NAMES:
        raise OSError("no such name")
    return _NAMES[host]


def _said(url: str, *, allow_private: bool = False) -> list[str]:
    endpoints = endpoints_of({"OPENAI_BASE_URL": url}, allow_private=allow_private)
    return refused_upstreams(endpoints, resolve=_resolve)


@pytest.mark.parametrize(
    "url", ["http://192.168.1.9:8000/v1", "http://[fd12::1]/v1", "http://inside.test/v1",
            "http://here.test:1/v1"],
)  # fmt: skip
def test_a_private_upstream_is_told_with_the_line_to_add(url: str) -> None:
    (line,) = _said(url)

    assert line.startswith(f"openai at {url} cannot be called: ")
    assert f"add {SETTING} to the environment" in line
    assert _said(url, allow_private=True) == []


@pytest.mark.parametrize(
    "url",
    ["http://localhost:1/v1", "http://127.0.0.1/v1", "https://public.test/v1",
     "https://mixed.test/v1", "https://unknown.test/v1", "https://silent.test/v1"],
)  # fmt: skip
def test_nothing_is_said_of_upstreams_that_may_be_called(url: str) -> None:
    assert _said(url) == []


def test_what_no_setting_allows_names_none() -> None:
    (line,) = _said("http://169.254.169.254/v1")

    assert "cannot be called" in line
    assert SETTING not in line
