"""Exporters in the admin: stored headers stay with the host they were typed for."""

from __future__ import annotations

from typing import Any

from django.test import Client

from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import Exporter
from tests.admin.forms import filled

URL = "https://otlp.example.com"
HEADERS = "Authorization=Bearer%20hidden"


def test_stored_headers_go_to_no_other_host(operator: Client) -> None:
    row = Exporter.objects.create(name="phoenix", url=URL, headers_encrypted=seal(HEADERS))
    page = f"/admin/records/exporter/{row.pk}/change/"

    def change(**over: Any) -> str | None:
        operator.post(page, filled(operator, page) | over)
        row.refresh_from_db()
        return unseal(row.headers_encrypted) if row.headers_encrypted else ""

    moved = operator.post(page, filled(operator, page) | {"url": "https://mine.example"})
    (said,) = moved.context["adminform"].form.errors["headers"]
    assert "type them again" in said
    row.refresh_from_db()
    assert row.url == URL

    assert change(url=f"{URL}/v1/traces") == HEADERS  # the same host
    assert change(url="https://mine.example", headers="x-key=mine") == "x-key=mine"
    assert change(url="https://theirs.example", forget_headers="on") == ""
    assert row.url == "https://theirs.example"
