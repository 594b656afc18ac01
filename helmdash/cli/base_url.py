"""The address at which a person on this machine, or in the public, reaches the server."""

from __future__ import annotations

from helmdash import conf


def base_url(env: conf.Env) -> str:
    """HELMDASH_PUBLIC_URL, else the address that the server listens on; without a slash."""
    return env.public_url or f"http://{_reachable(env.host)}:{env.port}"


def _reachable(host: str) -> str:
    """An address a browser on this machine can open."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  (compared, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
