from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class RecordsConfig(AppConfig):
    name = "helmdash.records"
    label = "records"
    verbose_name = "HelmDash"

    def ready(self) -> None:
        """The release of the tables is noted with them; times are read quickly."""
        from helmdash.records.quick_times import read_quickly
        from helmdash.records.schema import mark_release

        post_migrate.connect(mark_release, sender=self, dispatch_uid="helmdash.schema")
        connection_created.connect(read_quickly, dispatch_uid="helmdash.quick-times")
