"""The admin: one module for each subject. Django finds this package by its name.

The admin is a face that lives with the tables, because it edits them one field at a time; it
imports neither queries nor operations (docs/architecture.md).
"""

from __future__ import annotations

from django.contrib import admin

from helmdash.records.admin import (
    alerts,
    calls,
    catalogs,
    keys,
    members,
    plans,
    projects,
    suggestions,
    upstreams,
)
from helmdash.records.admin.budgets import budget_admin
from helmdash.records.admin.files import exporting

__all__ = [
    "alerts",
    "budget_admin",
    "calls",
    "catalogs",
    "exporting",
    "keys",
    "members",
    "plans",
    "projects",
    "suggestions",
    "upstreams",
]

admin.site.site_header = "HelmDash admin"
admin.site.site_title = "HelmDash admin"
admin.site.index_title = "Settings and records"
