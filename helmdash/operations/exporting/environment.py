"""The exporter that the environment names, as a row like any other."""

from __future__ import annotations

from helmdash import conf
from helmdash.operations.database.transactions import write
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import Exporter

_NAME = "environment"


def follow_environment() -> None:
    """Make, change or delete the row of HELMDASH_OTLP_EXPORT_URL; when a server starts.

    What waits for it stays as long as the variable does. An exporter of a person's that has the
    name already is left alone, and goes on under its own.
    """
    env = conf.env()
    url, headers = env.otlp_export_url, env.otlp_export_headers
    if not url and not Exporter.objects.filter(is_of_environment=True).exists():
        return  # as nearly everywhere: no write that others would wait behind

    def work() -> None:
        rows = Exporter.objects.select_for_update()
        row = rows.filter(is_of_environment=True).first()
        if not url:
            if row is not None:
                row.delete()
            return
        if row is None:
            if rows.filter(name=_NAME).exists():
                return
            row = Exporter(name=_NAME, is_of_environment=True)
        known = unseal(row.headers_encrypted) if row.headers_encrypted else ""
        if (row.url, known) == (url, headers) and row.pk:
            return
        row.url, row.allow_private, row.enabled = url, True, True  # the operator's own word
        row.headers_encrypted = seal(headers) if headers else ""
        row.failures, row.next_try_at, row.latest_problem = 0, None, ""
        row.save()

    write(work)
