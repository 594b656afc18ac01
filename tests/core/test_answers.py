"""How a dataclass says what leaves of it as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from helmdash.answers import (
    BLANK_IS_NULL,
    HIDDEN,
    INLINE,
    OPTIONAL,
    WHEN_SAID,
    Doc,
    JsonName,
    JsonSchema,
    Most,
    Stored,
    Words,
    answer,
    member,
    members,
    to_json,
)
from helmdash.api.openapi.answer_types import answer_type


class Colour(StrEnum):
    """A colour."""

    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel.

    Not for readers of the schema.
    """

    inches: int = 20
    maker: Annotated[str, BLANK_IS_NULL, Doc("Null: unknown.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the rest hangs on."""

    colour: Colour = Colour.RED
    serial: Annotated[str, HIDDEN] = "secret"
    grams: int = 1


@answer("Bike")
@dataclass(frozen=True, slots=True, kw_only=True)
class BikeView:
    """A bike."""

    frame: Annotated[Frame, INLINE] = Frame()
    grams: Annotated[int | None, Doc("With everything.")] = None
    front: Wheel | None = None
    wheels: Annotated[tuple[Wheel, ...], Most(2)] = ()
    bought_at: Annotated[datetime | None, JsonName("bought"), OPTIONAL] = None
    is_stolen: Annotated[bool, WHEN_SAID] = False
    notes: Annotated[tuple[str, ...], WHEN_SAID] = ()
    kind: Annotated[str, Words(("city", "race"))] = "city"
    receipt: Annotated[object, Stored(Wheel | None)] = None
    extra: Annotated[object, JsonSchema({"type": "object"})] = None

    @property
    @member
    def weight_class(self) -> Annotated[str, JsonName("class"), Doc("By grams.")]:
        """A word for it."""
        return "light"

    @property
    def unmarked(self) -> int:
        """No member."""
        return 1


def _bike(**over: Any) -> Any:
    return to_json(BikeView(**over))


def test_fields_are_members_unless_they_say_otherwise() -> None:
    assert _bike(extra={"a": (1, Colour.RED)}) == {
        "colour": "red",
        "grams": None,  # of two with one name the later counts
        "front": None,
        "wheels": [],
        "kind": "city",
        "receipt": None,
        "extra": {"a": [1, "red"]},
        "class": "light",
    }


@pytest.mark.parametrize(
    ("over", "name", "told"),
    [
        ({"front": Wheel(maker="Acme")}, "front", {"inches": 20, "maker": "Acme"}),
        ({"wheels": (Wheel(), Wheel())}, "wheels", [{"inches": 20, "maker": None}] * 2),
        ({"bought_at": datetime(2026, 1, 2, tzinfo=UTC)}, "bought", "2026-01-02T00:00:00Z"),
        (
            {"bought_at": datetime(2026, 1, 2, 1, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))},
            "bought",
            "2026-01-02T00:00:00.000005Z",
        ),
        ({"is_stolen": True}, "is_stolen", True),
        ({"notes": ("a",)}, "notes", ["a"]),
    ],
)
def test_what_is_said_is_told(over: dict[str, Any], name: str, told: object) -> None:
    assert name not in _bike() or _bike()[name] != told
    assert _bike(**over)[name] == told


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON: object"):
        to_json({"a": object()})
    with pytest.raises(TypeError, match="not JSON: int"):
        members(1)


def test_the_schema_is_made_of_the_same_declaration() -> None:
    schema = TypeAdapter(answer_type(BikeView)).json_schema(mode="serialization")

    assert (schema["title"], schema["description"]) == ("Bike", "A bike.")
    members_told = schema["properties"]
    assert set(members_told) == {*_bike(), "bought", "is_stolen", "notes"}
    assert set(schema["required"]) == set(_bike())
    assert members_told["grams"]["description"] == "With everything."
    assert members_told["kind"]["enum"] == ["city", "race"]
    assert members_told["extra"] == {"type": "object", "title": "Extra"}
    assert members_told["wheels"]["maxItems"] == 2
    assert members_told["bought"] == {"type": "string", "format": "date-time", "title": "Bought"}
    assert members_told["receipt"]["anyOf"][0] == {"$ref": "#/$defs/Wheel"}
    wheel = schema["$defs"]["Wheel"]
    assert wheel["description"] == "A wheel."
    assert wheel["properties"]["maker"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
