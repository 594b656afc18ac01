"""Which URLs and addresses an upstream, a channel of alerts or an exporter may have: the rules of
the egress guard, without I/O. Its sentences name none of the three, for each shows them.

Asked twice: of a base URL when it is entered, and of every address right before a connection is
made to it, because a name may lead anywhere by then. The tables follow the IANA registries of
special-purpose addresses (RFC 6890) and are written out: what Python's `is_global` says has
changed between its releases.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# --- addresses nobody may have as an upstream, whatever a row allows

_NEVER_V4: tuple[tuple[IPv4Network, str], ...] = (
    (IPv4Network("0.0.0.0/8"), "means no address in particular"),
    # The clouds serve credentials of the machine here: AWS, Azure, Google …
    (IPv4Network("169.254.0.0/16"), "is link-local, where clouds serve credentials"),
    (IPv4Network("100.100.100.200/32"), "serves credentials (Alibaba Cloud)"),
    (IPv4Network("168.63.129.16/32"), "serves settings of the machine (Azure)"),
    (IPv4Network("192.0.0.192/32"), "serves credentials (Oracle Cloud)"),
    (IPv4Network("224.0.0.0/4"), "is a multicast address"),
    (IPv4Network("240.0.0.0/4"), "is reserved"),
)
_NEVER_V6: tuple[tuple[IPv6Network, str], ...] = (
    (IPv6Network("::/128"), "means no address in particular"),
    (IPv6Network("fe80::/10"), "is link-local"),
    (IPv6Network("fd00:ec2::/32"), "serves credentials (AWS)"),
    (IPv6Network("fd20:ce::254/128"), "serves credentials (Google Cloud)"),
    (IPv6Network("ff00::/8"), "is a multicast address"),
)

# --- addresses that only a row with `allow_private` may have

_PRIVATE_V4: tuple[tuple[IPv4Network, str], ...] = (
    (IPv4Network("127.0.0.0/8"), "is on this machine"),
    (IPv4Network("10.0.0.0/8"), "is in a private network"),
    (IPv4Network("172.16.0.0/12"), "is in a private network"),
    (IPv4Network("192.168.0.0/16"), "is in a private network"),
    (IPv4Network("100.64.0.0/10"), "is in a provider's own network"),
    (IPv4Network("192.0.0.0/24"), "is set aside for protocols"),
    (IPv4Network("192.88.99.0/24"), "is set aside for 6to4"),
    (IPv4Network("198.18.0.0/15"), "is set aside for measuring"),
    (IPv4Network("192.0.2.0/24"), "is for examples in documents"),
    (IPv4Network("198.51.100.0/24"), "is for examples in documents"),
    (IPv4Network("203.0.113.0/24"), "is for examples in documents"),
)
_PRIVATE_V6: tuple[tuple[IPv6Network, str], ...] = (
    (IPv6Network("::1/128"), "is on this machine"),
    (IPv6Network("fc00::/7"), "is in a private network"),
    (IPv6Network("fec0::/10"), "is in a private network"),
    (IPv6Network("2001::/23"), "is set aside for protocols"),  # Teredo among them
    (IPv6Network("2001:db8::/32"), "is for examples in documents"),
    (IPv6Network("3fff::/20"), "is for examples in documents"),
)
# All of IPv6 that is given out for the public network.
_PUBLIC_V6 = IPv6Network("2000::/3")

# IPv6 addresses that are an IPv4 address in other clothes: how far down its last bit stands. Mapped
# ones are not among them: the system connects to the IPv4 address itself (`address_of`).
_CARRIERS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("64:ff9b:1::/48"), 0),  # NAT64 of a network's own
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("::/96"), 0),  # compatible
)
_TEREDO = IPv6Network("2001::/32")

# What allows them.
_PRIVATE = "It may be called only where private addresses are allowed."

# --- URLs

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)")
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_USERINFO = re.compile(r"//[^/]*@")
_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
# What a browser would take for an IPv4 address: the last label is a number in some spelling.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_DOTS = re.compile(r"(?:\.|%2[eE]){1,2}")
_LONGEST_NAME = 253


def url_problem(url: str, *, allow_private: bool) -> str | None:
    """Why a base URL cannot be an upstream's, as a sentence; None when it can.

    Looks at the text only: the addresses behind a name are asked about when it is connected to.
    """
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "It may only have plain ASCII characters, without spaces and backslashes."
    parts = _URL.fullmatch(url)
    if parts is None or parts["scheme"].lower() not in ("http", "https"):
        return "It must start with http:// or https://."
    if "@" in parts["authority"]:
        return "It may not hold a user name or password. Give the key in its own field."
    if "#" in parts["rest"] or "?" in parts["rest"]:
        return "It may not have a query or fragment: paths are put behind it."
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None or not _is_port(authority["port"]):
        return "Its port must be a number from 1 to 65535."
    return path_problem(parts["rest"]) or host_problem(
        authority["host"], allow_private=allow_private
    )


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL in small letters: whom a secret that is sent there is told.

    >>> origin_of("https://example.org:8443/v1")
    'https://example.org:8443'
    """
    parts = _URL.fullmatch(url)
    return f"{parts['scheme']}://{parts['authority']}".lower() if parts else ""


def shown_url(url: str) -> str:
    """A base URL for pages: without what stands before an @, which may be a password."""
    return _USERINFO.sub("//[hidden]@", url)


def path_problem(path: str) -> str | None:
    """Why a path (with or without a query) may not follow a base URL; None when it may.

    Paths hold names that callers chose: none may climb out of the base URL.
    """
    bare, _, query = path.partition("?")
    if not _PATH.fullmatch(bare) or not _QUERY.fullmatch(query):
        return "Its path may only have the characters of a URL, percent-encoded."
    if any(_DOTS.fullmatch(segment) for segment in bare.split("/")):
        return "Its path may not have the parts . or .. in it."
    return None


def host_problem(host: str, *, allow_private: bool) -> str | None:
    """Why a host of a URL (a name, an IPv4 address or one of IPv6 in brackets) may not be used, as
    a sentence; None when it may."""
    if host.startswith("["):
        return address_problem(host[1:-1], allow_private=allow_private)
    name = host.removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        return f"{host!r} is not a host name."
    if _NUMBER.fullmatch(labels[-1]):
        return address_problem(name, allow_private=allow_private)
    if labels[-1].lower() == "localhost" and not allow_private:
        return _private(host, "is on this machine")
    return None


def address_problem(address: str, *, allow_private: bool) -> str | None:
    """Why an IP address may not be connected to, as a sentence; None when it may.

    Private, loopback and other special addresses need `allow_private`; link-local ones, and the
    others where clouds hand out credentials, are refused whatever is allowed.
    """
    try:
        known = address_of(address)
    except ValueError:
        return f"{address!r} is not an IP address in its usual spelling."
    carried = _carried(known) if isinstance(known, IPv6Address) else None
    never = _found(known, _NEVER_V4, _NEVER_V6) or (
        _found(carried, _NEVER_V4, ()) if carried else None
    )
    if never:
        return f"{address} {never}. Nothing may be sent there."
    if allow_private:
        return None
    why = "is an IPv4 address in disguise" if carried else _found(known, _PRIVATE_V4, _PRIVATE_V6)
    if why is None and isinstance(known, IPv6Address) and known not in _PUBLIC_V6:
        why = "is not a public address"
    return _private(address, why) if why else None


def address_of(text: str) -> IPv4Address | IPv6Address:
    """The address that a text spells, its zone left out; a mapped one is the IPv4 address in it.

    Raises ValueError.

    >>> address_of("::ffff:127.0.0.1"), address_of("fe80::1%eth0")
    (IPv4Address('127.0.0.1'), IPv6Address('fe80::1'))
    """
    found = ip_address(text.partition("%")[0])
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address == IPv6Address("::1") or address == IPv6Address("::"):
        return None
    if address in _TEREDO:
        return IPv4Address((int(address) & 0xFFFFFFFF) ^ 0xFFFFFFFF)
    for network, shift in _CARRIERS:
        if address in network:
            return IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return None


def _found(
    address: IPv4Address | IPv6Address,
    table_v4: tuple[tuple[IPv4Network, str], ...],
    table_v6: tuple[tuple[IPv6Network, str], ...],
) -> str | None:
    table: tuple[tuple[IPv4Network | IPv6Network, str], ...]
    table = table_v4 if isinstance(address, IPv4Address) else table_v6
    return next((why for network, why in table if address in network), None)


def _is_port(port: str | None) -> bool:
    if port is None:
        return True
    return port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65_535


def with_setting(problem: str, setting: str) -> str:
    """The same sentence for an upstream whose addresses a setting allows, and no row of its own.

    Unchanged where nothing allows the address.
    """
    return problem.replace(_PRIVATE, f"To allow it, add {setting} to the environment of HelmDash.")


def _private(host: str, why: str) -> str:
    return f"{host} {why}. {_PRIVATE}"
