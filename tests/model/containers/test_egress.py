"""Which names and addresses `network: egress` lets out."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import RefusedError
from nightherd.model.containers.egress import (
    HOST_NAME,
    Destination,
    EgressRules,
    Reach,
    implied_hosts,
    is_public,
    matches,
    normal_name,
    parse_authority,
    proxy_variables,
    reach_of,
)
from nightherd.model.containers.policy import AllowedHost

HOSTS = (AllowedHost(name="api.example"), AllowedHost(name="*.b.example", port=8443))


@pytest.mark.parametrize(
    ("name", "port", "is_allowed"),
    [
        ("api.example", 443, True),
        ("api.example", 80, False),
        ("api.example", 8443, False),
        ("x.api.example", 443, False),
        ("evilapi.example", 443, False),
        ("api.example.evil.test", 443, False),
        ("a.b.example", 8443, True),
        ("a.a.b.example", 8443, True),
        ("a.b.example", 443, False),
        ("b.example", 8443, False),
        ("evilb.example", 8443, False),
    ],
)
def test_what_is_allowed(name: str, port: int, is_allowed: bool) -> None:
    assert matches(HOSTS, Destination(name, port)) is is_allowed
    assert EgressRules(allowed=HOSTS).allow(Destination(name, port)) is is_allowed
    assert EgressRules(private=HOSTS).allow(Destination(name, port)) is is_allowed
    assert EgressRules(allowed=HOSTS).reach(Destination(name, port)) is Reach.PUBLIC


def test_implied_hosts_are_allowed_at_private_addresses() -> None:
    rules = EgressRules(implied=(AllowedHost(name="gateway.corp", port=4000),))

    assert rules.allow(Destination("gateway.corp", 4000))
    assert rules.reach(Destination("gateway.corp", 4000)) is Reach.ANY
    assert rules.reach(Destination("gateway.corp", 443)) is Reach.PUBLIC


def test_private_hosts_are_allowed_in_private_networks_and_others_are_not() -> None:
    mirror = AllowedHost(name="*.lan", port=80)
    rules = EgressRules(allowed=HOSTS, private=(mirror,))

    assert rules.allow(Destination("mirror.lan", 80))
    assert rules.reach(Destination("mirror.lan", 80)) is Reach.PRIVATE
    assert rules.reach(Destination("mirror.lan", 443)) is Reach.PUBLIC
    assert rules.reach(Destination("api.example", 443)) is Reach.PUBLIC


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("API.Example", "api.example"),
        ("api.example.", "api.example"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("api\u3002example", "api.example"),
        ("\uff41pi.example", "api.example"),
        ("registry", "registry"),
    ],
)
def test_spellings_of_a_name(text: str, name: str) -> None:
    assert normal_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "a..b", ".a", "api.example..", "-a.example", "a-.example"),
        *("127.0.0.1", "127.0.0.1.", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1"),
        *("1.2.3.0x", "a.1", "::1", "[::1]", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "fe80::1%eth0"),
        *("\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1"),
        *("user@api.example", "api.example@evil.test", "api.example/x", "api.example?x"),
        *("api.example#x", "api.example\\x", "api%2eexample", "api.example%00", "a b.example"),
        *("api.example\x00", "api.example\n", "api.example:443", "*.example", "a" * 64 + ".example"),
        *(".".join(["a" * 50] * 6), "\ud800.example", "api\u200b.example.\u2024"),
        *("xn--api-.example", "xn--.example", "xn--a.example", "xn--\u00fc.example"),
        "xn--pi-bz3n.example",  # a full-width letter
    ],
)  # fmt: skip
def test_what_is_no_name(text: str) -> None:
    assert normal_name(text) is None


@given(st.text(max_size=80))
def test_every_name_is_ascii_and_stays_the_same(text: str) -> None:
    name = normal_name(text)

    if name is not None:
        assert HOST_NAME.fullmatch(name)
        assert name.isascii()
        assert name == name.lower()
        assert normal_name(name) == name
        assert normal_name(f"{name}.") == name


@given(st.ip_addresses())
def test_no_spelling_of_an_address_is_a_name(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    number = int(address)
    spellings = [
        str(address),
        f"[{address}]",
        str(number),
        hex(number),
        f"0{number:o}",
        f"{address}.",
    ]
    if isinstance(address, ipaddress.IPv4Address):
        parts = address.packed
        spellings += [".".join(map(hex, parts)), ".".join(f"0{part:o}" for part in parts)]
        spellings += [f"{parts[0]}.{number & 0xFFFFFF}", f"::ffff:{address}"]
    for text in spellings:
        assert normal_name(text) is None
        assert parse_authority(f"{text}:443") is None
        assert parse_authority(text, 80) is None


@pytest.mark.parametrize(
    "text",
    [
        *("api.example", "api.example:", "api.example:0", "api.example:065", "api.example:65536"),
        *("api.example:443:443", "api.example: 443", "api.example:+443", "api.example:443 "),
        *("api.example:\u0664\u0664\u0663", "api.example:0x1bb", "user@api.example:443", ":443"),
        *("user:1@api.example:443", "[::1]:443", "1.2.3.4:443", "api.example:443/"),
    ],
)  # fmt: skip
def test_what_is_no_destination(text: str) -> None:
    assert parse_authority(text) is None


def test_a_destination() -> None:
    assert parse_authority("API.example.:443") == Destination("api.example", 443)
    assert parse_authority("api.example", 80) == Destination("api.example", 80)
    assert str(Destination("api.example", 443)) == "api.example:443"


@given(st.text(alphabet="ab.:@[]/0123456789x-", max_size=30))
def test_an_authority_never_fails(text: str) -> None:
    destination = parse_authority(text, 80)

    if destination is not None:
        assert 1 <= destination.port <= 65535
        assert normal_name(destination.name) == destination.name


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])  # fmt: skip
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.0.1", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.100.100.200", "100.64.0.1", "192.0.0.192", "168.63.129.16"),
        *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1"),
        *("::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%lo"),
        *("fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "64:ff9b::7f00:1"),
        *("64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "100::1", "4000::1"),
        *("", "localhost", "1.1.1", "1.1.1.1:80"),
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        *(("1.1.1.1", Reach.PUBLIC), ("2606:4700::1", Reach.PUBLIC)),
        *((one, Reach.PRIVATE) for one in ("10.0.0.1", "172.31.255.1", "192.168.1.1", "100.64.0.1")),
        *((one, Reach.PRIVATE) for one in ("fd12::1", "::ffff:10.0.0.1")),
        *((one, Reach.ANY) for one in ("127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "fe80::1")),
        *((one, Reach.ANY) for one in ("100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "224.0.0.1")),
        *((one, Reach.ANY) for one in ("168.63.129.16", "172.32.0.0/12", "::ffff:127.0.0.1", "x")),
        *((one, Reach.ANY) for one in ("64:ff9b::a00:1", "2002:a00:1::", "fe80::1%lo")),
    ],
)  # fmt: skip
def test_what_a_name_must_be_allowed_to_stand_for(address: str, reach: Reach) -> None:
    assert reach_of(address) is reach


@pytest.mark.parametrize(
    ("environment", "hosts"),
    [
        ({}, ["api.anthropic.com:443"]),
        ({"ANTHROPIC_BASE_URL": ""}, ["api.anthropic.com:443"]),
        ({"ANTHROPIC_BASE_URL": "https://Gateway.corp/v1"}, ["gateway.corp:443"]),
        ({"ANTHROPIC_BASE_URL": "http://gateway.corp:4000"}, ["gateway.corp:4000"]),
        ({"ANTHROPIC_BASE_URL": "http://u:p@gateway.corp"}, ["gateway.corp:80"]),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, []),
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_VERTEX_BASE_URL": "https://v.example"},
            ["v.example:443"],
        ),
    ],
)
def test_hosts_that_claude_needs(environment: dict[str, str], hosts: list[str]) -> None:
    assert [f"{one.name}:{one.port}" for one in implied_hosts(environment)] == hosts


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:4000", "http://[::1]:4000", "http://localhost:4000", "gateway", "http://a:99999", "ftp://a.example"],
)  # fmt: skip
def test_an_api_that_cannot_be_reached_by_name_is_refused(url: str) -> None:
    with pytest.raises(RefusedError, match="ANTHROPIC_BASE_URL must have the name of a host"):
        implied_hosts({"ANTHROPIC_BASE_URL": url})


def test_variables_for_programs_inside() -> None:
    variables = proxy_variables(4321)

    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert variables[name] == variables[name.lower()] == "http://127.0.0.1:4321"
    assert variables["NO_PROXY"] == variables["no_proxy"] == "localhost,127.0.0.1"
