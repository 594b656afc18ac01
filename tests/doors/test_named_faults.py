"""Faults of a body are named within bounds: neither long names nor many faults make an answer long,
or take memory beyond the body's own."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from helmdash.core.catalog.catalog import CatalogError, parse_catalog
from helmdash.doors.bodies.reports import CallIn
from helmdash.doors.problems import FieldFault
from helmdash.doors.validation import BadFields, Shape, unstorable

NAME = "n" * 100_000
CALL = Shape(CallIn)


def faults_of_call(value: Any) -> tuple[FieldFault, ...]:
    with pytest.raises(BadFields) as caught:
        CALL.check(value)
    return caught.value.faults


def nested(depth: int, inside: object) -> object:
    for _ in range(depth):
        inside = {"n" * 1_000: inside}
    return inside


@pytest.mark.parametrize(
    ("find", "value"),
    [
        (unstorable, {NAME: [1] * 1_000, "a": "\0"}),
        (unstorable, {NAME: ["\0"] * 1_000}),
        (unstorable, nested(190, ["\0"] * 1_000)),
        (unstorable, nested(300, [1] * 1_000)),
        (unstorable, {"\0" * 100_000: "\0"}),
        (faults_of_call, {f"{NAME}{number}": 1 for number in range(100)}),
        (faults_of_call, {"model": "m", "attempts": [NAME] * 1_000}),
    ],
)
def test_faults_are_few_and_short_and_finding_them_takes_little_memory(
    find: Callable[[Any], tuple[FieldFault, ...]], value: object
) -> None:
    tracemalloc.start()
    try:
        faults = find(value)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 1 <= len(faults) <= 50
    assert max(len(fault.field) + len(fault.message) for fault in faults) < 300
    assert most < 20_000_000


def test_a_catalog_full_of_faults_is_answered_with_the_first_ones() -> None:
    with pytest.raises(CatalogError) as caught:
        parse_catalog({"packs": [{"name": NAME}] * 1_000})

    assert 1 <= len(caught.value.errors) <= 50
    assert max(len(error.message) for error in caught.value.errors) < 300


def test_faults_are_told_in_the_order_of_the_body() -> None:
    value = {"a": ["x\0"], "b\0": 1, "c": {"d": "\0"}}

    assert [fault.field for fault in unstorable(value)] == ["a.0", "body", "c.d"]
