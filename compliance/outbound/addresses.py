"""Decide which URLs can be registered for webhooks, and which addresses may be connected to.

Registration checks a URL's text without a DNS query, as its answer could change later (DNS rebinding). Each
connection checks the addresses that the host resolves to, and is made to a checked address itself.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 253

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
# A last label of digits, or of 0x and hex digits, makes the host a number (WHATWG URL, "ends in a number").
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)
_AFTER_BRACKET = re.compile(r"(?::\d*)?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOCAL_SUFFIXES = ("localhost", "local", "internal", "localdomain", "home.arpa")


def _networks(*texts: str) -> list[Network]:
    return [ipaddress.ip_network(text) for text in texts]


# Multicast, and what the IANA special-purpose registries do not call globally reachable; Python's copy of
# them changes with its version.
_REFUSED = _networks(
    "0.0.0.0/8",  # this network
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),  # private
    "100.64.0.0/10",  # carrier-grade NAT
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local
    *("192.0.0.0/24", "2001::/23"),  # protocol assignments: in IPv6 Teredo, benchmarks, ORCHID
    *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),  # documentation
    *("192.88.99.0/24", "2002::/16"),  # 6to4 relays; 6to4, which carries any IPv4 address
    "198.18.0.0/15",  # benchmarks
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "168.63.129.16/32",  # Azure's platform services, on every virtual network
)
# Only global unicast is reachable: no loopback, mapped, translated, local or multicast address.
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
# Where clouds serve a machine its own credentials; refused under every policy, private networks or not.
_METADATA = _networks(
    *("169.254.0.0/16", "fe80::/10"),  # link-local: .169.254 of most clouds, .170.2 of Amazon's containers
    "100.100.100.200/32",  # Alibaba
    "168.63.129.16/32",  # Azure
    "fd00:ec2::/32",  # Amazon: ::254 for metadata, ::23 for containers' credentials, ::253 for names
    "fd20:ce::254/128",  # Google
    *("192.0.0.192/32", "fd00:c1::a9fe:a9fe/128"),  # Oracle
)
# IPv6 networks that end in an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64.
_EMBEDDING = _networks("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
_6TO4 = ipaddress.IPv6Network("2002::/16")
_TEREDO = ipaddress.IPv6Network("2001::/32")


class UrlRefused(ValueError):
    """Webhooks may not be sent to the URL, or to any address of its host; the text says why."""


@dataclass(frozen=True)
class UrlPolicy:
    """Permissions beyond HTTPS to public addresses."""

    allow_http: bool = False
    allow_private: bool = False


@dataclass(frozen=True)
class Target:
    """The target of a URL: `host` without brackets, `port` with its default filled in."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110 §7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def check_url(url: str, policy: UrlPolicy) -> Target:
    """Return what `url` connects to; raises `UrlRefused` with the reason for people."""
    if len(url) > MAX_URL_LENGTH:
        raise UrlRefused(f"must be at most {MAX_URL_LENGTH} characters")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise UrlRefused(
            "must be plain ASCII without spaces, control characters or backslashes; "
            "write other characters percent-encoded, and international host names as xn--…"
        )
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UrlRefused("is not a valid URL") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise UrlRefused("must be an absolute URL that begins with https://")
    if parts.scheme == "http" and not policy.allow_http:
        raise UrlRefused("must use https")
    if "@" in parts.netloc:
        raise UrlRefused("must not carry a user name or password")
    if "#" in url:
        raise UrlRefused("must not carry a fragment")
    try:
        port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise UrlRefused("has a port out of range; ports go from 1 to 65535")
    target = Target(parts.scheme, parts.hostname or "", port)
    _check_host(target.host, parts.netloc, policy)
    return target


def is_public(address: Address) -> bool:
    """Whether the address is global unicast: reachable from the Internet, without a network interface."""
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address not in _GLOBAL_IPV6):
        return False
    return not any(address in network for network in _REFUSED)


def is_allowed(address: Address, policy: UrlPolicy) -> bool:
    """Whether webhooks may be sent to `address`: public, or private by policy; never a metadata service."""
    # A cloud's metadata service may answer at the address, or at one embedded in it.
    if any(one in network for one in (address, *_embedded(address)) for network in _METADATA):
        return False
    bare = getattr(address, "ipv4_mapped", None) or address
    is_own = bare.is_private and not (bare.is_link_local or bare.is_multicast or bare.is_unspecified)
    return is_public(address) or (policy.allow_private and is_own)


def permitted(addresses: Iterable[str], policy: UrlPolicy) -> list[Address]:
    """Return the addresses that may be connected to, in order; raises `UrlRefused` if there is none."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    allowed = [address for address in parsed if is_allowed(address, policy)]
    if not allowed:
        raise UrlRefused("The host resolves to no public address; webhooks are sent to public addresses only")
    return allowed


def _embedded(address: Address) -> list[Address]:
    """Return the IPv4 addresses that a translator or relay may take from an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    found = [number] if any(address in network for network in _EMBEDDING) else []
    if address in _6TO4:
        found.append(number >> 80)
    if address in _TEREDO:
        # The server's address in the clear, the client's inverted (RFC 4380 §4).
        found += [number >> 64, ~number]
    return [ipaddress.IPv4Address(one & 0xFFFF_FFFF) for one in found]


def _check_host(host: str, netloc: str, policy: UrlPolicy) -> None:
    if netloc.startswith("["):
        # The parser ignores what stands between the bracket and the port.
        if not _AFTER_BRACKET.fullmatch(netloc.partition("]")[2]):
            raise UrlRefused("is not a valid URL")
        _check_literal(ipaddress.IPv6Address, host, policy)
    elif _NUMBER.fullmatch(host.rpartition(".")[2] or host.rstrip(".").rpartition(".")[2]):
        _check_literal(ipaddress.IPv4Address, host, policy)
    else:
        labels = host.split(".")
        if len(host) > MAX_HOST_LENGTH or not all(map(_LABEL.fullmatch, labels)):
            raise UrlRefused("has no valid host name")
        is_local = len(labels) == 1 or any(f".{host}".endswith(f".{name}") for name in _LOCAL_SUFFIXES)
        if is_local and not policy.allow_private:
            raise UrlRefused("must lead to a public host")


def _check_literal(kind: type[Address], host: str, policy: UrlPolicy) -> None:
    try:
        address = kind(host)
    except ValueError as error:
        known = "plain dotted IPv4" if kind is ipaddress.IPv4Address else "valid IPv6"
        raise UrlRefused(f"has a host that is no {known} address") from error
    if "%" in host:
        raise UrlRefused("must not name a network interface")
    if not is_allowed(address, policy):
        raise UrlRefused("must lead to a public address")
