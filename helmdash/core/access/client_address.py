"""Which address a request comes from, also behind proxies, and whom limits count as one.

Source: RFC 7239 and what proxies do: each appends the address it was called from to
X-Forwarded-For. So only the entries from the right can be believed, and only as far as proxies
that are known wrote them; whatever stands left of them a client may have made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from helmdash.core.upstreams.addresses import address_of

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# A customer of a provider gets at least a /64, and may use every address of it.
_V6_PREFIX = 64
# Where IPv6 spells IPv4 addresses: requests from there are known by the IPv4 address.
_MAPPED = IPv6Network("::ffff:0:0/96")
# As many hops as any deployment has; what is longer is somebody playing.
_MOST_HOPS = 32


def parse_networks(values: Iterable[str]) -> tuple[Network, ...]:
    """Networks of addresses and networks as text. Raises ValueError naming the wrong one."""
    return tuple(_network(value) for value in values)


def client_of(peer: str, forwarded: Sequence[str], *, trusted: Sequence[Network]) -> str:
    """The address of the client: the last one in the chain that is not a trusted proxy.

    forwarded: the lines of X-Forwarded-For as they came. An entry that is no address ends the
    chain: the proxy that wrote it is the last one known.
    """
    known = peer
    address = _address(peer)
    hops = ",".join(forwarded).split(",")[-_MOST_HOPS:] if forwarded else []
    while address is not None and _is_trusted(address, trusted) and hops:
        address = _address(hops.pop())
        if address is not None:
            known = str(address)
    return known


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    """Whether the one who connected is a proxy whose headers may be believed."""
    if not trusted:  # asked for every connection
        return False
    address = _address(peer)
    return address is not None and _is_trusted(address, trusted)


@lru_cache(maxsize=4096)
def counted_as(address: str) -> str:
    """Whom limits count an address as: itself, of IPv6 its /64.

    >>> counted_as("2001:db8:1:2:3:4:5:6"), counted_as("::ffff:192.0.2.7")
    ('2001:db8:1:2::/64', '192.0.2.7')
    """
    found = _address(address)
    if found is None:
        return address[:64]
    if isinstance(found, IPv6Address):
        return str(IPv6Network((found, _V6_PREFIX), strict=False))
    return str(found)


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == net.version and address in net for net in trusted)


def _network(value: str) -> Network:
    try:
        network = ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"{value!r} is no address and no network such as 10.0.0.0/8") from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network[0]) & 0xFFFFFFFF, network.prefixlen - _MAPPED.prefixlen))
    return network


def _address(text: str) -> Address | None:
    """An address as proxies write it: with or without a port, in brackets, with a zone."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return address_of(text)
    except ValueError:
        return None
