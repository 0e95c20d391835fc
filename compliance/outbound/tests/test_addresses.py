"""Which URLs can be registered and which addresses connected to."""

import ipaddress

import pytest

from compliance.outbound.addresses import (
    Target,
    UrlPolicy,
    UrlRefused,
    check_url,
    is_allowed,
    is_public,
    permitted,
)

STRICT = UrlPolicy()
LENIENT = UrlPolicy(allow_http=True, allow_private=True)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.com", Target("https", "hooks.example.com", 443)),
        ("https://hooks.example.com/a/b?c=d%20e", Target("https", "hooks.example.com", 443)),
        ("https://HOOKS.Example.com:8443/x", Target("https", "hooks.example.com", 8443)),
        ("HTTPS://hooks.example.com:65535", Target("https", "hooks.example.com", 65535)),
        ("https://xn--mnchen-3ya.example/x", Target("https", "xn--mnchen-3ya.example", 443)),
        ("https://a_b.example.com/", Target("https", "a_b.example.com", 443)),
        ("https://8.8.8.8/x", Target("https", "8.8.8.8", 443)),
        ("https://[2606:4700::1111]:444/", Target("https", "2606:4700::1111", 444)),
        ("https://1.example.com/", Target("https", "1.example.com", 443)),
    ],
)
def test_public_https_urls_are_accepted(url: str, target: Target) -> None:
    assert check_url(url, STRICT) == target


@pytest.mark.parametrize(
    "url",
    [
        # Not a URL, or not the web's.
        "",
        "hooks.example.com/x",
        "//hooks.example.com/x",
        "https:",
        "https:///x",
        "https:hooks.example.com",
        "ftp://hooks.example.com/x",
        "file:///etc/passwd",
        "gopher://hooks.example.com/x",
        "javascript:alert(1)",
        "http://hooks.example.com/x",
        # User names, fragments, control characters, white space, other alphabets.
        "https://user@hooks.example.com/x",
        "https://user:password@hooks.example.com/x",
        "https://hooks.example.com@127.0.0.1/x",
        "https://@hooks.example.com/x",
        "https://hooks.example.com/x#y",
        "https://hooks.example.com/x#",
        "https://hooks.example.com/a b",
        " https://hooks.example.com/",
        "https://hooks.example.com/\n",
        "https://hooks.exa\tmple.com/",
        "https://hooks.example.com\\@127.0.0.1/",
        "https://münchen.example/",
        "https://127。0。0。1/",
        # Ports.
        "https://hooks.example.com:0/",
        "https://hooks.example.com:65536/",
        "https://hooks.example.com:-1/",
        "https://hooks.example.com:http/",
        # Hosts that are no plain names or addresses.
        "https://hooks.example.com./",
        "https://hooks..example.com/",
        "https://.example.com/",
        "https://-a.example.com/",
        "https://%31%32%37.0.0.1/",
        "https://" + "a" * 64 + ".example.com/",
        "https://" + "a." * 127 + "com/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://8.8.8.8./",
        "https://8.8.8.256/",
        "https://0x7f.0.0.1/",
        "https://8.8.8.0x8/",
        "https://1.2.3.4.5/",
        "https://[::1",
        "https://[fe80::1%25eth0]/",
        "https://[2606:4700::1111%25eth0]/",
        "https://[v1.a]/",
        "https://[2606:4700::1111]x/",
        "https://[2606:4700::1111]x:443/",
        # Names that never leave the machine or its network.
        "https://localhost/",
        "https://LOCALHOST:8443/",
        "https://localhost./",
        "https://a.localhost/",
        "https://intranet/",
        "https://printer.local/",
        "https://metadata.google.internal/",
        # Addresses that are not public.
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://0.0.0.0/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:8.8.8.8]/",
        "https://[64:ff9b::8.8.8.8]/",
        "https://[2002:0808:0808::1]/",
        "https://[fd00:ec2::254]/",
        "https://hooks.example.com/" + "x" * 2048,
    ],
)
def test_other_urls_are_refused_with_a_reason(url: str) -> None:
    with pytest.raises(UrlRefused) as refusal:
        check_url(url, STRICT)

    assert str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/x",
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "https://intranet/",
        "http://a.local/",
    ],
)
def test_development_may_reach_its_own_machine(url: str) -> None:
    check_url(url, LENIENT)

    with pytest.raises(UrlRefused):
        check_url(url, STRICT)


@pytest.mark.parametrize(
    "url", ["https://0177.0.0.1/", "https://localhost./", "https://u@127.0.0.1/", "ftp://a/"]
)
def test_odd_urls_are_refused_in_development_too(url: str) -> None:
    with pytest.raises(UrlRefused):
        check_url(url, LENIENT)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104  (judged, not bound)
        "0.1.2.3",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "223.255.255.255",
        "2001:4860:4860::8888",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
    ],
)
def test_ordinary_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_only_permitted_addresses_are_kept_in_their_order() -> None:
    found = permitted(["127.0.0.1", "8.8.8.8", "::1", "1.1.1.1"], STRICT)

    assert [str(address) for address in found] == ["8.8.8.8", "1.1.1.1"]


def test_a_name_with_private_addresses_only_is_refused() -> None:
    with pytest.raises(UrlRefused, match="no public address"):
        permitted(["127.0.0.1", "fd00::1"], STRICT)


def test_ipv6_guard_agrees_with_the_standard_library() -> None:
    # Whatever the library calls private is refused here as well, for blocks picked across the space.
    blocks = [ipaddress.IPv6Address(prefix << 112) for prefix in range(0, 2**16, 7)]

    wrong = [address for address in blocks if is_public(address) and not address.is_global]

    assert wrong == []


def test_ipv4_guard_agrees_with_the_standard_library() -> None:
    blocks = [ipaddress.IPv4Address(number << 16 | 1) for number in range(2**16)]

    wrong = [address for address in blocks if is_public(address) and not address.is_global]

    assert wrong == []


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "224.0.0.1", "[::]", "[::ffff:169.254.169.254]"]
)
def test_development_reaches_no_metadata_service_either(host: str) -> None:
    with pytest.raises(UrlRefused):
        check_url(f"http://{host}/", LENIENT)


METADATA_IPV4 = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.0",
    "169.254.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
]
METADATA_IPV6 = [
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf:ffff::1",
]


def carriers(address: str) -> list[str]:
    """Every IPv6 address that stands for an IPv4 one."""
    number = int(ipaddress.IPv4Address(address))
    low = [0, 0xFFFF << 32, 0xFFFF << 48, 0x64FF9B << 96, 0x64FF9B0001 << 80]
    numbers = [base | number for base in low]
    numbers += [0x2002 << 112 | number << 80, 0x2002 << 112 | number << 80 | 1]
    teredo = 0x20010000 << 96
    numbers += [teredo | number << 64, teredo | 8 << 64 | number ^ 0xFFFF_FFFF]
    return [str(ipaddress.IPv6Address(one)) for one in numbers]


@pytest.mark.parametrize("policy", [STRICT, LENIENT], ids=["strict", "development"])
@pytest.mark.parametrize(
    "address",
    [*METADATA_IPV4, *METADATA_IPV6, *(form for address in METADATA_IPV4 for form in carriers(address))],
)
def test_metadata_services_are_refused_under_every_policy(address: str, policy: UrlPolicy) -> None:
    host = f"[{address}]" if ":" in address else address

    with pytest.raises(UrlRefused):
        check_url(f"https://{host}/", policy)
    with pytest.raises(UrlRefused):
        permitted([address], policy)


@pytest.mark.parametrize("address", ["fd00:ec1::1", "fd20:ce::253", "100.100.100.200", "::ffff:10.0.0.1"])
def test_neighbours_of_metadata_services_are_judged_as_before(address: str) -> None:
    found = ipaddress.ip_address(address)

    assert not is_allowed(found, STRICT)
    assert is_allowed(found, LENIENT) is (address != "100.100.100.200")


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "[::1]", "[fd00::1]", "localhost"])
def test_development_reaches_its_own_networks(host: str) -> None:
    assert check_url(f"http://{host}:8080/", LENIENT).port == 8080
