"""What one connection may do before its request is whole, by the settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from helmdash import conf
from helmdash.core.access.client_address import Network, parse_networks


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one connection may do, and how many there may be."""

    header_bytes: int
    header_line_bytes: int
    headers: int
    header_seconds: float
    idle_seconds: int
    write_seconds: float
    connections: int
    anonymous_connections: int
    trusted_proxies: tuple[Network, ...]


@cache
def connection_limits() -> ConnectionLimits:
    """Those of this process, by its settings."""
    env = conf.env()
    return ConnectionLimits(
        header_bytes=env.max_header_bytes,
        header_line_bytes=min(env.max_header_line_bytes, env.max_header_bytes),
        headers=env.max_headers,
        header_seconds=env.header_seconds,
        idle_seconds=env.idle_seconds,
        write_seconds=env.write_seconds,
        connections=env.max_connections,
        anonymous_connections=env.max_anonymous_connections,
        trusted_proxies=tuple(parse_networks(env.trusted_proxies)),
    )
