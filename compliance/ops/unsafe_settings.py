"""Settings that `check --deploy` refuses, since they would leave a public service open."""

import ipaddress
import math
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.stores import redis_cluster

HINT = "See docs/deployment.md, Unsafe settings."
SHORTEST_SECRET = 50  # characters
LEAST_BITS = 128.0
SHORTEST_PIN = 8
SHORTEST_TOKEN = 16
# PINs of manuals and tutorials, SoftHSM's among them.
DEFAULT_PINS = frozenset({"1234", "12345", "123456", "1234567", "12345678", "123456789", "0000", "changeme"})
NARROWEST_WIDE = {4: 8, 6: 7}
"""Bits of the widest network of private addresses, 10.0.0.0/8 and fc00::/7, by the version of IP."""
DOCUMENTATION_ARC = "1.3.6.1.4.1.32473"


def check_unsafe(**kwargs: Any) -> list[CheckMessage]:
    """Check every rule; a finding names the setting and the rule, never its value."""
    return [
        checks.Error(text, hint=HINT, id=f"wiring.{number}")
        for number, rule in RULES.items()
        for text in rule()
    ]


def _debug() -> list[str]:
    return ["DEBUG is on: errors would show their tracebacks to callers."] if settings.DEBUG else []


def _secret_key() -> list[str]:
    key = settings.SECRET_KEY
    if key.startswith("django-insecure-") or len(key) < SHORTEST_SECRET or _bits(key) < LEAST_BITS:
        return [f"SECRET_KEY is no random text of {SHORTEST_SECRET} characters or more."]
    return []


def _encryption_keys() -> list[str]:
    found = []
    for number, key in enumerate(settings.ENCRYPTION_KEYS, 1):
        try:
            Fernet(key)
        except ValueError:
            found.append(f"ENCRYPTION_KEYS, key {number}, is no Fernet key.")
        else:
            # 44 characters of base64: a random key repeats few of them.
            if _bits(key) < LEAST_BITS:
                found.append(f"ENCRYPTION_KEYS, key {number}, is not random.")
    return found


def _address() -> list[str]:
    # HTTPS decides about cookies and HSTS, and reads the scheme letter by letter.
    if not settings.HTTPS or not urlsplit(settings.BASE_URL).hostname:
        return ["BASE_URL is no https:// address: cookies and tokens would go in the clear."]
    return []


def _hosts() -> list[str]:
    return ["ALLOWED_HOSTS has *: any Host header would be served."] if "*" in settings.ALLOWED_HOSTS else []


def _outgoing() -> list[str]:
    names = ("WEBHOOK", "TRUSTED_ISSUER")
    switches = [f"{name}_ALLOW_{what}" for name in names for what in ("PRIVATE_ADDRESSES", "HTTP")]
    return [
        f"{switch} is on: tenants could have the service call inside its own network, or in the clear."
        for switch in switches
        if getattr(settings, switch)
    ]


def _pins() -> list[str]:
    pins = {
        f"PKCS11_{environment.upper()}_PIN": token["pin"]
        for environment, token in settings.PKCS11_TOKENS.items()
        if settings.PKCS11_MODULE
    }
    if settings.PKCS11_SO_PIN:
        pins["PKCS11_SO_PIN"] = settings.PKCS11_SO_PIN
    return [
        f"{name} is a default or shorter than {SHORTEST_PIN} characters."
        for name, pin in pins.items()
        if pin in DEFAULT_PINS or len(pin) < SHORTEST_PIN
    ]


def _proxies() -> list[str]:
    networks = [ipaddress.ip_network(proxy, strict=False) for proxy in settings.TRUSTED_PROXIES]
    # No network of proxies is wider than the largest private one; halves of all addresses are all of them.
    if any(network.prefixlen < NARROWEST_WIDE[network.version] for network in networks):
        return [
            "TRUSTED_PROXIES trusts addresses of strangers: callers could choose the one that limits count."
        ]
    if not networks and settings.HTTPS:
        return [
            "TRUSTED_PROXIES is empty behind an https:// address: X-Forwarded-For would not count, and all"
            " callers would share the proxy's limits."
        ]
    return []


def _redis() -> list[str]:
    addresses = {"REDIS_URL": settings.REDIS_URL, "BROKER_URL": settings.BROKER_URL}
    if settings.BROKER_URL == settings.REDIS_URL:
        del addresses["BROKER_URL"]
    return [
        f"{name} has no password and its server is not on this machine."
        for name, address in addresses.items()
        if _is_open(address)
    ]


def _is_open(address: str) -> bool:
    """Whether Redis, or a node of its cluster, is elsewhere and asked without a password."""
    parts = urlsplit(address)
    if parts.scheme not in {"redis", "rediss", *redis_cluster.SCHEMES} or parts.password:
        return False
    nodes = parts.netloc.rpartition("@")[2].split(",")
    return not all(_is_loopback(urlsplit(f"//{node}").hostname or "") for node in nodes)


def _replays() -> list[str]:
    if settings.DPOP_WITHOUT_REPLAY_STORE != "refuse":
        return ["DPOP_WITHOUT_REPLAY_STORE accepts: while Redis is away a stolen DPoP proof works again."]
    return []


def _metrics() -> list[str]:
    if 0 < len(settings.METRICS_TOKEN) < SHORTEST_TOKEN:
        return [f"METRICS_TOKEN is shorter than {SHORTEST_TOKEN} characters."]
    return []


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in {"localhost", ""}


def _bits(text: str) -> float:
    """Return the Shannon entropy of a text's own characters, in bits."""
    counts = Counter(text)
    return sum(count * math.log2(len(text) / count) for count in counts.values())


RULES: dict[str, Callable[[], list[str]]] = {
    "E010": _debug,
    "E011": _secret_key,
    "E012": _encryption_keys,
    "E013": _address,
    "E014": _hosts,
    "E015": _outgoing,
    "E016": _pins,
    "E017": _proxies,
    "E018": _redis,
    "E019": _replays,
    "E020": _metrics,
}
