"""Django's admin, with the site of records.admin_site in the place of its own."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class MembersAdminConfig(AdminConfig):
    """Named in INSTALLED_APPS instead of `django.contrib.admin`."""

    default_site = "helmdash.records.admin_site.MembersSite"
