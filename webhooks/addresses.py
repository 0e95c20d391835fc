"""Where webhooks may be sent: which URLs can be registered, and which addresses connected to.

A URL is judged by its text when it is registered, without a DNS query (the answer would be worth nothing
later: DNS rebinding). The addresses that its name resolves to are judged at each connection, and the
connection is made to the judged address itself.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 253

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
# A last label that is all digits, or 0x and hex digits, makes the host a number, in one base or another
# (WHATWG URL, "ends in a number checker").
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)
_AFTER_BRACKET = re.compile(r"(?::\d*)?", re.ASCII)
_LOCAL_SUFFIXES = ("localhost", "local", "internal", "localdomain", "home.arpa")

# What the IANA special-purpose registries do not call globally reachable, and multicast; stated here so
# that the guard does not change with Python's copy of the registries.
_REFUSED_IPV4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local; cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "168.63.129.16/32",  # Azure's platform services, on every virtual network
    )
]
# Only global unicast is reachable; this leaves out loopback, IPv4-mapped and -compatible addresses, NAT64
# (64:ff9b::/96, 64:ff9b:1::/48), unique-local (fd00:ec2::254 too), link- and site-local, and multicast.
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_IPV6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries any IPv4 address
        "3fff::/20",  # documentation
    )
]


# Where clouds serve a machine its own credentials, whatever the policy. The link-local blocks are refused
# whole; the other addresses lie among private ones, which the development policy allows.
_METADATA = [
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local: 169.254.169.254 of most clouds, 169.254.170.2 of Amazon's containers
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle
        "fe80::/10",  # link-local
        "fd00:ec2::/32",  # Amazon: ::254 for metadata, ::23 for containers' credentials, ::253 for names
        "fd20:ce::254/128",  # Google
        "fd00:c1::a9fe:a9fe/128",  # Oracle
    )
]
# IPv6 addresses that carry an IPv4 one, by network and how far to the right of the address it stands.
_CARRIERS = [
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (
        ("::/96", 0),  # IPv4-compatible
        ("::ffff:0:0/96", 0),  # IPv4-mapped
        ("::ffff:0:0:0/96", 0),  # IPv4-translated (RFC 2765)
        ("64:ff9b::/96", 0),  # NAT64
        ("64:ff9b:1::/48", 0),  # NAT64 of a network's own
        ("2002::/16", 80),  # 6to4
    )
]
_TEREDO = ipaddress.IPv6Network("2001::/32")


class UrlRefused(ValueError):
    """The URL, or every address behind it, is not one that webhooks may be sent to; the text says why."""


@dataclass(frozen=True)
class UrlPolicy:
    """What is allowed beyond HTTPS to public addresses."""

    allow_http: bool = False
    allow_private: bool = False


@dataclass(frozen=True)
class Target:
    """Where a URL leads: `host` without brackets, `port` with its default filled in."""

    scheme: str
    host: str
    port: int


def check_url(url: str, policy: UrlPolicy) -> Target:
    """Where `url` leads; raises `UrlRefused` with the reason for people."""
    if len(url) > MAX_URL_LENGTH:
        raise UrlRefused(f"must be at most {MAX_URL_LENGTH} characters")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise UrlRefused(
            "must be plain ASCII without spaces, control characters or backslashes; "
            "write other characters percent-encoded, and international host names as xn--…"
        )
    parts = _split(url)
    _check_scheme(parts.scheme, policy)
    if "@" in parts.netloc:
        raise UrlRefused("must not carry a user name or password")
    if "#" in url:
        raise UrlRefused("must not carry a fragment")
    target = Target(parts.scheme, parts.hostname or "", _port_of(parts))
    _check_host(target.host, parts.netloc, policy)
    return target


def is_public(address: Address) -> bool:
    """Whether the address is reachable by anyone on the Internet, and names one host by itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _REFUSED_IPV4)
    if address.scope_id is not None or address not in _GLOBAL_IPV6:
        return False
    return not any(address in network for network in _REFUSED_IPV6)


def is_allowed(address: Address, policy: UrlPolicy) -> bool:
    """Public addresses always; with `allow_private` also those of one's own networks and machine.

    A cloud's metadata service never: it answers on a developer's virtual machine too.
    """
    if is_metadata(address):
        return False
    bare = getattr(address, "ipv4_mapped", None) or address
    is_own = bare.is_private and not (bare.is_link_local or bare.is_multicast or bare.is_unspecified)
    return is_public(address) or (policy.allow_private and is_own)


def is_metadata(address: Address) -> bool:
    """Whether a cloud's metadata service answers there, by the address itself or by one that it carries."""
    return any(one in network for one in (address, *_carried(address)) for network in _METADATA)


def _carried(address: Address) -> list[Address]:
    """The IPv4 addresses that a translator or relay may make of an IPv6 one; both that a Teredo one names."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    found = [number >> shift for network, shift in _CARRIERS if address in network]
    if address in _TEREDO:
        # The server in the clear, the client behind it inverted (RFC 4380 §4).
        found += [number >> 64, ~number]
    return [ipaddress.IPv4Address(one & 0xFFFF_FFFF) for one in found]


def permitted(addresses: Iterable[str], policy: UrlPolicy) -> list[Address]:
    """Those of `addresses` that may be connected to, in order; raises `UrlRefused` when none may."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    allowed = [address for address in parsed if is_allowed(address, policy)]
    if not allowed:
        raise UrlRefused("The host resolves to no public address; webhooks are sent to public addresses only")
    return allowed


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise UrlRefused("is not a valid URL") from error


def _check_scheme(scheme: str, policy: UrlPolicy) -> None:
    if scheme not in ("http", "https"):
        raise UrlRefused("must be an absolute URL that begins with https://")
    if scheme == "http" and not policy.allow_http:
        raise UrlRefused("must use https")


def _port_of(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError as error:
        raise UrlRefused("has a port out of range; ports go from 1 to 65535") from error
    if port == 0:
        raise UrlRefused("has a port out of range; ports go from 1 to 65535")
    return port or (443 if parts.scheme == "https" else 80)


def _check_host(host: str, netloc: str, policy: UrlPolicy) -> None:
    if netloc.startswith("["):
        # The parser overlooks what stands between the bracket and the port.
        if not _AFTER_BRACKET.fullmatch(netloc.partition("]")[2]):
            raise UrlRefused("is not a valid URL")
        _check_literal(_ipv6(host), policy)
    elif _NUMBER.fullmatch(host.rpartition(".")[2] or host.rstrip(".").rpartition(".")[2]):
        _check_literal(_ipv4(host), policy)
    else:
        _check_name(host, policy)


def _ipv4(host: str) -> Address:
    try:
        return ipaddress.IPv4Address(host)
    except ValueError as error:
        raise UrlRefused("has a host that is no plain dotted IPv4 address") from error


def _ipv6(host: str) -> Address:
    try:
        return ipaddress.IPv6Address(host)
    except ValueError as error:
        raise UrlRefused("has a host that is no valid IPv6 address") from error


def _check_literal(address: Address, policy: UrlPolicy) -> None:
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise UrlRefused("must not name a network interface")
    if not is_allowed(address, policy):
        raise UrlRefused("must lead to a public address")


def _check_name(host: str, policy: UrlPolicy) -> None:
    labels = host.split(".")
    is_sound = len(host) <= MAX_HOST_LENGTH and all(_LABEL.fullmatch(label) for label in labels)
    if not is_sound:
        raise UrlRefused("has no valid host name")
    if policy.allow_private:
        return
    if len(labels) == 1 or any(host == name or host.endswith(f".{name}") for name in _LOCAL_SUFFIXES):
        raise UrlRefused("must lead to a public host")
