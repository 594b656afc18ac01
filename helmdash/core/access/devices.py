"""What a browser calls itself, in words that its owner knows it by."""

from __future__ import annotations

from typing import Final

# Each names those it descends from, too: the first that is found is the one. What is sought in the
# user agent, and the word for it.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
UNKNOWN: Final = "An unknown program"


def device_of(user_agent: str) -> str:
    """Such as "Firefox on Linux", by the header User-Agent, which anybody may make up."""
    browser = next((word for sign, word in _BROWSERS if sign in user_agent), UNKNOWN)
    system = next((word for sign, word in _SYSTEMS if sign in user_agent), None)
    return f"{browser} on {system}" if system else browser
