"""The log of messages of alerts in the admin: all of it. Rules and channels are edited on their
page, which knows what each kind takes."""

from __future__ import annotations

from django.contrib import admin

from helmdash.records.admin.big_tables import ProjectFilter, ReadOnlyAdmin
from helmdash.records.models import AlertDelivery


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ReadOnlyAdmin[AlertDelivery]):
    """Deliveries, the newest first."""

    list_display = ["message", "channel", "state", "attempts", "told", "created_at", "ended_at"]
    list_filter = [ProjectFilter]
    list_select_related = ["message", "channel"]
    ordering = ["-project_id", "-id"]
    searched = ""
