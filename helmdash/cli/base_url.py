"""The address at which a person on this machine, or in the public, reaches the server."""

from __future__ import annotations

from helmdash import conf


def base_url(env: conf.Env) -> str:
    """HELMDASH_PUBLIC_URL, else the address that the server listens on; without a slash."""
    host = local_host(env.host)
    return env.public_url or f"http://{f'[{host}]' if ':' in host else host}:{env.port}"


def local_host(host: str) -> str:
    """Where this machine itself reaches a server that listens on `host`."""
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104  (compared)
