"""Fields of forms: written by a function as Django's templates write them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.forms.renderers import DjangoTemplates
from django.utils.safestring import mark_safe

from helmdash.pages.forms.form_renderer import QuickRenderer

CHOICES = [("", "Any"), ("a&b", "<b>A & B</b>"), (3, "three"), ("safe", mark_safe("<i>s</i>"))]
GROUPED = [("Fruit", [("apple", "Apple")]), ("other", "Other")]

# A widget, a value of it, and attributes of the field.
WIDGETS: dict[str, tuple[forms.Widget, object, Mapping[str, object]]] = {
    "text": (forms.TextInput(), 'it\'s "<b>"', {"id": "x", "required": True, "hidden": False}),
    "nothing": (forms.TextInput(), None, {}),
    "empty": (forms.TextInput(), "", {}),
    "number": (forms.NumberInput(), 1_234_567, {"min": 0, "step": "any"}),
    "float": (forms.NumberInput(), 0.5, {}),
    "hidden": (forms.HiddenInput(), "<x>", {}),
    "password": (forms.PasswordInput(), "told to nobody", {"autocomplete": "off"}),
    "email": (forms.EmailInput(), "a@example.org", {"data-x": '"'}),
    "select": (forms.Select(choices=CHOICES), "a&b", {"id": "id_s", "class": "half"}),
    "select of a number": (forms.Select(choices=CHOICES), 3, {}),
    "several": (forms.SelectMultiple(choices=CHOICES), ["safe", "a&b"], {}),
    "groups": (forms.Select(choices=GROUPED), "apple", {}),
    "null boolean": (forms.NullBooleanSelect(), True, {}),
    "textarea": (forms.Textarea(), "<b>\n", {}),
    "checkbox": (forms.CheckboxInput(), True, {}),
    "radios": (forms.RadioSelect(choices=CHOICES), 3, {"id": "r"}),
}


@pytest.mark.parametrize("name", WIDGETS)
def test_a_field_is_written_as_djangos_templates_write_it(name: str) -> None:
    widget, value, attrs = WIDGETS[name]

    written = widget.render("field<", value, dict(attrs), QuickRenderer())

    assert_same(written, widget.render("field<", value, dict(attrs), DjangoTemplates()))


@pytest.mark.parametrize("value", [None, ["2026-11-24", "10:31:21"]])
def test_the_two_fields_of_a_moment_in_the_admin_have_a_name_each(value: object) -> None:
    widget, attrs = AdminSplitDateTime(), {"id": "id_expires_at", "required": True}

    written = widget.render("expires_at", value, attrs, QuickRenderer())

    named = written.replace(' aria-label="Date"', "", 1).replace(' aria-label="Time"', "", 1)
    assert len(written) - len(named) == len(' aria-label="Date"') * 2
    assert_same(named, widget.render("expires_at", value, attrs, DjangoTemplates()))


def assert_same(written: str, expected: str) -> None:
    """But for blanks between elements, which no page shows."""
    assert "".join(map(str.strip, written.splitlines())) == "".join(
        map(str.strip, expected.splitlines())
    )
