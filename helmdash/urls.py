"""The addresses of HelmDash: pages, the admin, the API, and the two liveness checks."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from helmdash.api import api
from helmdash.api.metrics import metrics
from helmdash.pages import liveness

urlpatterns = [
    path("healthz", liveness.healthz, name="healthz"),
    path("readyz", liveness.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", api.urls),
    # In front of the admin's own, which has no brake.
    path("admin/password_change/", RedirectView.as_view(pattern_name="profile")),
    path("admin/", admin.site.urls),
    path("", include("helmdash.pages.urls")),
]

handler400 = "helmdash.pages.views.bad_request.bad_request"
handler403 = "helmdash.pages.views.faults.forbidden"
handler404 = "helmdash.pages.views.faults.not_found"
handler500 = "helmdash.pages.views.faults.failed"
