from __future__ import annotations

from django.apps import AppConfig


class RecordsConfig(AppConfig):
    name = "helmdash.records"
    label = "records"
    verbose_name = "HelmDash"
