"""Fields of forms as markup, by a function.

Django draws each field with a template, each of a list's options with one more, and the attributes
of each with another: the filters above the list of calls were a third of the time of its page.
What is plain is written here, to the same letters; all else goes to Django's templates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

_FOLDER: Final = "django/forms/widgets"
_OPTION: Final = f"{_FOLDER}/select_option.html"
Widget = Mapping[str, Any]


class QuickRenderer(DjangoTemplates):
    """Django's renderer, without templates for what most fields are."""

    def render(
        self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None
    ) -> str:
        write = _WRITERS.get(template_name)
        written = write(context["widget"]) if write else None
        return written or super().render(template_name, context, request)


def _input(widget: Widget) -> SafeString:
    value = widget["value"]
    told = "" if value is None else f' value="{_text(value)}"'
    return _markup(
        f'<input type="{_text(widget["type"])}" name="{_text(widget["name"])}"'
        f"{told}{_attributes(widget)}>"
    )


def _select(widget: Widget) -> SafeString | None:
    """None: its options are drawn in a way of their own."""
    options = [option for _, group, _ in widget["optgroups"] for option in group]
    is_plain = all(name is None for name, _, _ in widget["optgroups"])
    if not is_plain or any(option["template_name"] != _OPTION for option in options):
        return None
    name = _text(widget["name"])
    listed = "".join(_option(option) for option in options)
    return _markup(f'<select name="{name}"{_attributes(widget)}>{listed}\n</select>\n')


def _date_and_time(widget: Widget) -> SafeString:
    """The admin's two fields of a moment, each named: Django writes their names beside them, where
    no screen reader takes them for names. The legend around both says what moment it is."""
    date, time = (
        _input({**part, "attrs": {**part["attrs"], "aria-label": name}})
        for part, name in zip(widget["subwidgets"], ("Date", "Time"), strict=True)
    )
    return _markup(f'<p class="datetime">\n  Date: {date}<br>\n  Time: {time}\n</p>\n')


def _option(option: Widget) -> str:
    value, label = _text(option["value"]), _text(option["label"])
    return f'\n  <option value="{value}"{_attributes(option)}>{label}</option>\n'


def _attributes(widget: Widget) -> str:
    return "".join(
        f" {_text(name)}" if value is True else f' {_text(name)}="{_text(value)}"'
        for name, value in widget["attrs"].items()
        if value is not False
    )


def _text(value: Any) -> str:
    return conditional_escape(value)


def _markup(text: str) -> SafeString:
    return mark_safe(text)  # noqa: S308  (texts are escaped)


_WRITERS: Final[Mapping[str, Callable[[Widget], SafeString | None]]] = {
    f"{_FOLDER}/select.html": _select,
    "admin/widgets/split_datetime.html": _date_and_time,
    **{
        f"{_FOLDER}/{kind}.html": _input
        for kind in ("input", "text", "number", "hidden", "email", "url", "password", "date")
    },
}
