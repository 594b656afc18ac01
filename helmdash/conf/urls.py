"""What a URL of a setting may look like, and how it is shown without what it hides."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# From the first colon behind the scheme to the last @: a password may hold one that nobody wrote as
# %40. Without a password there is none before an @, but that of a port behind it.
_PASSWORD = re.compile(
    r"^([a-z][a-z0-9+.-]*:/+[^:]*|(?![a-z][a-z0-9+.-]*:/)[^/?#:@]*):.*@", re.I | re.S
)
# Alone before the @: a name, or else what may be anything.
_NO_NAME = re.compile(r"^([a-z][a-z0-9+.-]*:/+)(?!/|[\w.-]*@)[^:]*@", re.I | re.S)
# In what is no URL: all before the last @, and what libpq's own form calls a password.
_BEFORE_HOST = re.compile(r"^.*@", re.S)
_NAMED_PASSWORD = re.compile(r"\b(\w*password\s*=\s*)(?:'[^']*'?|\S+)", re.I)
_OPTIONS = re.compile(r"\?.*", re.S)
# What libpq refuses, quoting it: a lone percent sign, and the character 0.
_BAD_PERCENT = re.compile(r"%(?:00|(?![0-9a-f]{2}))", re.I)


def database_url_problem(url: str) -> str | None:
    """Why a DATABASE_URL cannot be one, in words; None when it can. Empty is SQLite's own file."""
    if not url:
        return None
    scheme, mark, rest = url.partition("://")
    if scheme == "sqlite" and mark:
        is_path = rest.startswith("/") and rest.strip("/")
        return (
            None if is_path else "must name a file, like sqlite:////var/lib/helmdash/data.sqlite3"
        )
    if scheme not in ("postgres", "postgresql") or not mark:
        return "must start with postgres:// (or sqlite:///path)"
    problem = authority_problem(url, needs_host=False)
    if problem:
        return problem
    if "@" in urlsplit(url).netloc.rpartition("@")[0]:
        return "its user name or password has an @; write it as %40"
    if _BAD_PERCENT.search(url):
        return "has a % that stands for no character; write a percent sign as %25"
    if not urlsplit(url).path.strip("/"):
        return "names no database: postgres://user:password@host:port/name"
    return None


def authority_problem(url: str, *, needs_host: bool = True) -> str | None:
    """Why the host and port of a URL cannot be ones, in words; None when they can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its port must be a number from 1 to 65535, and [ ] only around an IPv6 address"
    if port == 0:
        return "its port must be a number from 1 to 65535"
    # Without a host and port libpq takes the socket on this machine.
    if not parts.hostname and (needs_host or port is not None):
        return "names no host"
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        return "may not have spaces or control characters; write them percent-encoded"
    return None


def masked(url: str) -> str:
    """A URL without its password, and without whatever an option of it may hide."""
    hidden, count = _PASSWORD.subn(r"\1:***@", url)
    if not count and "://" in url:
        hidden = _NO_NAME.sub(r"\1***@", url)
    elif not count:
        hidden = _NAMED_PASSWORD.sub(r"\1***", _BEFORE_HOST.sub("***@", url))
    return _OPTIONS.sub("", hidden)
