"""More parameters, fields or files than Django reads of one request: what its sender is told."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent, TooManyFilesSent


def too_many_of(error: BaseException, query: str) -> str:
    """The sentence for an error of Django's; "" for one about anything else. query: what stands in
    the request's address behind the question mark."""
    match error:
        case TooManyFilesSent():
            return _sentence("form", settings.DATA_UPLOAD_MAX_NUMBER_FILES, "files")
        case TooManyFieldsSent() if query.count("&") < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:
            return _sentence("form", settings.DATA_UPLOAD_MAX_NUMBER_FIELDS, "fields")
        case TooManyFieldsSent():
            return too_many_parameters()
        case _:
            return ""


def too_many_parameters() -> str:
    """The sentence for an address; the only one where no forms are read."""
    return _sentence("address", settings.DATA_UPLOAD_MAX_NUMBER_FIELDS, "parameters")


def _sentence(whole: str, most: int | None, parts: str) -> str:
    return f"The {whole} has more than {most:,} {parts}. Send fewer at once."
