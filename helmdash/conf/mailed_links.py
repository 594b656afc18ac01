"""Which address the links of a mail may have: who asks for one is not always who reads it."""

from __future__ import annotations

from urllib.parse import urlsplit

from helmdash.conf.variables import Env


def mailed_base(env: Env, asked_at: str) -> str:
    """The address of this server for who reads a mail, without a slash; "" where only whoever asks
    says it.

    asked_at: the address at which they have reached it. They may name any host of a pattern
    (HELMDASH_ALLOWED_HOSTS=*), and somebody else's link would lead there.
    """
    if env.public_url:
        return env.public_url.rstrip("/")
    host = urlsplit(asked_at).hostname or ""
    has_patterns = any(each == "*" or each.startswith(".") for each in env.allowed_hosts)
    named = {each.strip("[]").lower() for each in env.allowed_hosts}
    is_ours = not has_patterns or host in named
    return asked_at.rstrip("/") if is_ours else ""
