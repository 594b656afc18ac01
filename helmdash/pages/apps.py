"""The pages as a Django app, so that their template tags are found. No tables."""

from __future__ import annotations

from django.apps import AppConfig


class PagesConfig(AppConfig):
    """Pages: views, template tags, charts."""

    name = "helmdash.pages"
    label = "pages"
