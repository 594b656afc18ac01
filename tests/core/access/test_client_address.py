"""Which address a request counts as: behind proxies, with forged headers, in IPv6."""

from __future__ import annotations

import pytest

from helmdash.core.access.client_address import client_of, counted_as, is_trusted, parse_networks

PROXIES = parse_networks(["10.0.0.0/8", "192.0.2.10", "fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "lines", "client"),
    [
        # Nobody in front: what a client says about itself is not believed.
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("127.0.0.1", ["198.51.100.1"], "127.0.0.1"),
        # One proxy, and one that appends to what a client made up.
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        # Some proxies add a line of their own instead of appending.
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        # A chain of proxies; a client that claims to be one of them ends it.
        ("10.0.0.1", ["198.51.100.1, 192.0.2.10, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.5.5.5, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        # All of them are known: a request from inside.
        ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        # Forms that proxies write.
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ['"[2001:db8::1]"'], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["[::ffff:198.51.100.1]:4711"], "198.51.100.1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        # No address: the proxy is the last one known.
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_only_what_known_proxies_wrote_is_believed(
    peer: str, lines: list[str], client: str
) -> None:
    assert client_of(peer, lines, trusted=PROXIES) == client


def test_an_endless_chain_costs_no_more_than_a_long_one() -> None:
    lines = [", ".join(["10.0.0.2"] * 100_000)]

    assert client_of("10.0.0.1", lines, trusted=PROXIES) == "10.0.0.2"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_an_ipv6_customer_counts_as_one(one: str, other: str, is_same: bool) -> None:
    assert (counted_as(one) == counted_as(other)) is is_same


@pytest.mark.parametrize("network", ["::ffff:10.0.0.0/104", "::ffff:a01:203", "10.1.2.3"])
def test_a_network_may_be_written_as_mapped(network: str) -> None:
    trusted = parse_networks([network])

    for spelling in ("10.1.2.3", "::ffff:10.1.2.3"):
        assert is_trusted(spelling, trusted)
    assert not is_trusted("11.1.2.3", trusted)


def test_a_name_that_is_no_address_is_counted_under_itself_and_trusted_by_nobody() -> None:
    assert counted_as("unix") == "unix"
    assert not is_trusted("unix", PROXIES)
    with pytest.raises(ValueError, match=r"proxy\.example"):
        parse_networks(["proxy.example"])
