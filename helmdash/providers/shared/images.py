"""Images between formats: data URLs (RFC 2397) to base64 and back."""

from __future__ import annotations

import re

from helmdash.providers.wire import Image

# data:image/png;base64,… ; parameters like charset are allowed and mean nothing for an image.
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)

# What the first bytes of a picture look like in base64.
_SIGNATURES = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
)


def image_from_url(url: str, *, detail: str | None = None) -> Image:
    """An image from a URL: a base64 data URL is taken apart, any other is kept as it is. detail
    None: the client said none."""
    match = _DATA_URL.match(url)
    if match is None:
        return Image(url=url, detail=detail)
    data = url[match.end() :]
    return Image(media_type=match[1] or guess_media_type(data), data=data, detail=detail)


def url_of_image(image: Image) -> str:
    """The image's own URL, or for one that came as base64 a data URL."""
    if image.url is not None:
        return image.url
    data = image.data or ""
    return f"data:{image.media_type or guess_media_type(data)};base64,{data}"


def guess_media_type(data: str) -> str:
    """The media type of base64 data by its first bytes; PNG where they do not tell."""
    return next((media for start, media in _SIGNATURES if data.startswith(start)), "image/png")
