"""Values of the hot paths are compared, hashed and copied as frozen dataclasses are."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from helmdash.core.values import changed, quick_value


@quick_value(frozen=True, slots=True, kw_only=True)
class _Quick:
    name: str
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frozen:
    name: str
    size: int = 0


def test_a_quick_value_equals_and_hashes_by_its_fields() -> None:
    one, same, other = _Quick(name="a"), _Quick(name="a"), _Quick(name="a", size=1)

    assert one == same != other
    assert hash(one) == hash(same) == hash(_Frozen(name="a"))
    assert {one: 1}[same] == 1


def test_a_quick_value_is_copied_like_any_dataclass() -> None:
    copied = replace(_Quick(name="a"), size=2)

    assert copied == _Quick(name="a", size=2)
    assert [each.name for each in fields(_Quick)] == ["name", "size"]
    assert not hasattr(copied, "__dict__")


def test_a_changed_value_is_another_one_with_the_other_fields_kept() -> None:
    first = _Quick(name="a", size=1)

    assert changed(first, size=2) == replace(first, size=2)
    assert first == _Quick(name="a", size=1)
