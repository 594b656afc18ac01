from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.upstreams.addresses import (
    address_of,
    address_problem,
    path_problem,
    shown_url,
    url_problem,
)

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "104.18.6.192",
    "172.15.255.255",  # just below 172.16/12
    "172.32.0.1",  # just above it
    "100.63.255.255",  # just below 100.64/10
    "100.128.0.1",  # just above it
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.1",
    "223.255.255.255",
    "2606:4700::6812:6c0",
    "2a00:1450:4001:80b::200a",
    "2001:4860:4860::8888",  # above 2001::/23
    "::ffff:8.8.8.8",
]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "2001:2::1",
    "2001:20::1",
    "100::1",  # discard only
    "4000::1",  # not given out
    "::ffff:127.0.0.1",
    "::ffff:0:8.8.8.8",
    "::8.8.8.8",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::8.8.8.8",
    "2002:808:808::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",  # Teredo for 169.254.169.254
    # not in the usual spelling
    "0177.0.0.1",
    "0x7f.1",
    "127.1",
    "2130706433",
    "",
    "localhost",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_connected_to(address: str) -> None:
    assert address_problem(address, allow_private=False) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_other_addresses_need_the_permission(address: str) -> None:
    assert "private addresses are allowed" in (address_problem(address, allow_private=False) or "")
    assert address_problem(address, allow_private=True) is None


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("allow_private", [False, True])
def test_some_addresses_are_refused_whatever_is_allowed(address: str, allow_private: bool) -> None:
    assert address_problem(address, allow_private=allow_private)


@settings(max_examples=300)
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_nothing_passes_that_python_knows_to_be_special(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    passes = address_problem(str(address), allow_private=False) is None
    address = address_of(str(address))  # Python calls all mapped ones reserved
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )

    assert not (passes and special)


@settings(max_examples=100)
@given(st.ip_addresses(v=4))
def test_an_address_in_disguise_never_gains_by_it(address: ipaddress.IPv4Address) -> None:
    disguises = [
        ipaddress.IPv6Address(0x64FF9B << 96 | int(address)),
        ipaddress.IPv6Address(0x2002 << 112 | int(address) << 80),
    ]

    for disguise in disguises:
        assert address_problem(str(disguise), allow_private=False)
        if address_problem(str(address), allow_private=True):
            assert address_problem(str(disguise), allow_private=True)


@settings(max_examples=100)
@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_as_the_one_it_carries(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.IPv6Address(0xFFFF << 32 | int(address))

    assert address_of(str(mapped)) == address
    for allow_private in (False, True):
        as_itself = address_problem(str(address), allow_private=allow_private)
        as_mapped = address_problem(str(mapped), allow_private=allow_private)
        assert _reason(as_mapped) == _reason(as_itself)


def _reason(problem: str | None) -> str | None:
    """A problem without the address that it begins with."""
    return problem and problem.partition(" ")[2]


@pytest.mark.parametrize("address", [*PRIVATE[:1], "169.254.169.254"])
def test_who_reads_a_refusal_may_have_a_channel_or_an_exporter(address: str) -> None:
    """The same rules hold for receivers of alerts and of traces: no sentence names an upstream."""
    said = [
        address_problem(address, allow_private=False),
        url_problem(f"http://{address}/", allow_private=False),
    ]

    assert all(each and "upstream" not in each.lower() for each in said)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "HTTPS://API.OpenAI.com",
        "https://a-b.example.org:8443/x/y_z/v1beta",
        "http://ollama:11434",  # a name on a container network
        "https://my_host.example/v1",
        "https://example.org./v1",
        "https://[2606:4700::6812:6c0]/v1",
        "https://1.1.1.1:443",
    ],
)
def test_base_urls_of_providers_pass(url: str) -> None:
    assert url_problem(url, allow_private=False) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "http://"),
        ("api.openai.com/v1", "http://"),
        ("ftp://a.example", "http://"),
        ("javascript://a.example", "http://"),
        ("https://", "host name"),
        ("https:///v1", "host name"),
        ("https://a b.example", "ASCII"),
        ("https://a.example/\\x", "ASCII"),
        ("https://a.example/\n", "ASCII"),
        ("https://bücher.example", "ASCII"),
        ("https://me@a.example", "user name"),
        ("https://me:word@a.example", "user name"),
        ("https://a.example@10.0.0.1/", "user name"),
        ("https://a.example?x=1", "query"),
        ("https://a.example/v1#x", "query or fragment"),
        ("https://a.example:0", "port"),
        ("https://a.example:65536", "port"),
        ("https://a.example:https", "port"),
        ("https://a.example:", "port"),
        ("https://[::1", "port"),
        ("https://[::1]x", "port"),
        ("https://a..example", "host name"),
        ("https://-a.example", "host name"),
        ("https://a%2eexample", "host name"),
        ("https://" + "a" * 64 + ".example", "host name"),
        ("https://a.example/../x", "parts . or .."),
        ("https://a.example/%2E%2e/x", "parts . or .."),
        ("https://localhost:8080", "on this machine"),
        ("https://api.localhost", "on this machine"),
        ("https://localhost.", "on this machine"),
        ("https://127.0.0.1", "on this machine"),
        ("https://127.1", "usual spelling"),
        ("https://0x7f000001", "usual spelling"),
        ("https://0177.0.0.1", "usual spelling"),
        ("https://2130706433", "usual spelling"),
        ("https://1.2.3.0x4", "usual spelling"),
        ("https://[::ffff:127.0.0.1]", "on this machine"),
        ("https://[::127.0.0.1]", "disguise"),
        ("https://[::1%25eth0]", "on this machine"),
        ("https://[nonsense]", "usual spelling"),
        ("https://169.254.169.254/latest", "link-local"),
    ],
)
def test_a_base_url_that_may_not_be_called_is_told_why(url: str, words: str) -> None:
    assert words in (url_problem(url, allow_private=False) or "")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/v1",
        "http://127.0.0.1:11434",
        "http://[::1]:11434",
        "http://192.168.1.20",
    ],
)
def test_private_base_urls_pass_where_they_are_allowed(url: str) -> None:
    assert url_problem(url, allow_private=True) is None


@pytest.mark.parametrize(
    ("path", "is_fine"),
    [
        ("", True),
        ("/models", True),
        ("/models?limit=1000&after_id=a%2Fb", True),
        ("/models/gemini-2.5-flash:generateContent?alt=sse", True),
        ("/models/a%2Fb:x", True),
        ("/a...b/..c", True),
        # out of the base URL
        ("/models/../../admin", False),
        ("/models/%2e./admin", False),
        ("/.", False),
        # into another request or host
        ("/a b", False),
        ("/a\r\nHost: b", False),
        ("/a#b", False),
        ("/a%zz", False),
        ("/ä", False),
        ("/a\\b", False),
        ("@evil.example/", False),
        (".evil.example/", False),
    ],
)
def test_a_path_with_names_that_callers_chose_stays_below_the_base_url(
    path: str, is_fine: bool
) -> None:
    assert (path_problem(path) is None) is is_fine


def test_a_password_in_a_url_is_not_shown() -> None:
    assert shown_url("https://me:word@a.example/v1") == "https://[hidden]@a.example/v1"
    assert shown_url("https://me:w@rd@a.example/v1@2") == "https://[hidden]@a.example/v1@2"
