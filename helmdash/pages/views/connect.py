"""What connects an agent to HelmDash: so far the command that brings its history."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from helmdash.pages.render import etag
from helmdash.transcripts.archive import build_archive


@require_safe
def history_command(request: HttpRequest) -> HttpResponse:
    """The zipapp that imports transcripts, for everybody: it is our own code and holds no key.

    So it can be had by `curl` on the machine where the transcripts are.
    """
    content, tag = _archive()
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        return HttpResponseNotModified(headers={"ETag": tag})
    response = HttpResponse(content, content_type="application/zip")
    response["Content-Disposition"] = 'attachment; filename="helmdash.pyz"'
    response["ETag"] = tag
    return response


@cache
def _archive() -> tuple[bytes, str]:
    content = build_archive()
    return content, etag("/connect/helmdash.pyz", content.hex())
