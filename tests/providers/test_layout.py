"""Whoever knows one vendor's folder knows them all: a step of the work has one file name."""

from __future__ import annotations

from pathlib import Path

import pytest

import helmdash.providers
from helmdash.providers.protocols import ClientFormat, UpstreamFormat
from helmdash.providers.registry import CLIENTS, UPSTREAMS

ROOT = Path(helmdash.providers.__file__).parent
CLIENT_STEPS = {"read_request", "pass_request", "reply", "stream_writer", "errors", "listing"}
UPSTREAM_STEPS = {"write_request", "reply", "stream_reader", "errors", "listing", "embeddings"}


def folder_of(spoken: ClientFormat | UpstreamFormat) -> str:
    return type(spoken).__module__.split(".")[2]


@pytest.mark.parametrize(
    ("folder", "steps"),
    [
        *[(folder_of(each), CLIENT_STEPS) for each in CLIENTS.values()],
        *[(folder_of(each), UPSTREAM_STEPS | {"http"}) for each in UPSTREAMS.values()],
    ],
)
def test_a_folder_has_a_file_for_each_step_of_what_it_speaks(folder: str, steps: set[str]) -> None:
    assert steps <= {path.stem for path in (ROOT / folder).glob("*.py")}


def test_no_folder_stands_beside_the_registry() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    clients = {folder_of(each) for each in CLIENTS.values()}
    upstreams = {folder_of(each) for each in UPSTREAMS.values()}
    assert folders == clients | upstreams | {"shared"}
