"""Reading and sending the admin's forms as a browser would."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.forms import BaseForm
from django.test import Client


def text_of(response: Any) -> str:
    """The page's text, without tags and with single spaces."""
    bare = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", response.content.decode(), flags=re.S)
    return " ".join(unescape(bare).split())


def filled(client: Client, url: str, **over: Any) -> dict[str, Any]:
    """What the form at `url` would send, with some fields filled in otherwise."""
    context = client.get(url).context
    sent: dict[str, Any] = _values(context["adminform"].form)
    for inline in context.get("inline_admin_formsets", ()):
        for form in (inline.formset.management_form, *inline.formset.forms):
            sent |= _values(form)
    for name, value in over.items():
        if value is None:
            sent.pop(name, None)
        else:
            sent[name] = value
    return sent


def _values(form: BaseForm) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        if value is True:
            sent[bound.html_name] = "on"
        elif value is not None and value is not False:
            sent[bound.html_name] = value
    return sent
