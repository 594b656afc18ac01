"""Django's settings in the host's writer process: the same database, and none of the faces.

What serves people is a tenth of the memory of a process that has none to serve.
"""

from __future__ import annotations

from helmdash import settings
from helmdash.settings import *  # noqa: F403

INSTALLED_APPS = [
    app
    for app in settings.INSTALLED_APPS
    if app
    in {
        "helmdash.records",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "simple_history",
    }
]
