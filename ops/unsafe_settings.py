"""Settings that `check --deploy` refuses or warns of, since they would leave a public service open."""

import ipaddress
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core import checks
from django.core.checks import CheckMessage
from django.core.exceptions import ValidationError

from compliance.settings.declaring import Network

HINT = "See docs/deployment.md, Unsafe settings."
SHORTEST_SECRET = 50  # characters
LEAST_BITS = 128.0
SHORTEST_PIN = 8
LEAST_PIN_BITS = 8.0  # of 1,000 random PINs of eight digits, 999 have more
SHORTEST_TOKEN = 16
LEAST_TOKEN_BITS = 24.0
LONGEST_PUBLIC_PREFIX = {4: 12, 6: 28}
"""Prefix of the widest network of public addresses that proxies may have, by the version of IP."""
SHARED_ADDRESSES = IPv4Network("100.64.0.0/10")
"""Addresses of carriers and clouds' own networks (RFC 6598), which Python counts as neither kind."""
ENCRYPTED_MODES = frozenset({"require", "verify-ca", "verify-full"})


def check_unsafe(**kwargs: Any) -> list[CheckMessage]:
    """Check every rule; a finding names the setting and the rule, never its value."""
    return [
        LEVELS[number[0]](text, hint=HINT, id=f"wiring.{number}")
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
    hosts = settings.ALLOWED_HOSTS
    found = ["ALLOWED_HOSTS has *: any Host header would be served."] if "*" in hosts else []
    if any(host.startswith(".") and "." not in host.strip(".") for host in hosts):
        found.append("ALLOWED_HOSTS has a whole top-level domain: strangers have names in it.")
    return found


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
        f"{name} is a common password, a plain pattern or shorter than {SHORTEST_PIN} characters."
        for name, pin in pins.items()
        if is_weak_pin(pin)
    ]


def is_weak_pin(pin: str) -> bool:
    """Return whether a PIN is short, a pattern such as 12341234, or in Django's list of common passwords."""
    if len(pin) < SHORTEST_PIN or _bits(pin) < LEAST_PIN_BITS:
        return True
    try:
        CommonPasswordValidator().validate(pin)
    except ValidationError:
        return True
    return False


def _proxies() -> list[str]:
    networks: list[Network] = settings.TRUSTED_PROXIES
    if any(_has_strangers(network) for network in _collapsed(networks)):
        return [
            "TRUSTED_PROXIES trusts addresses of strangers: callers could choose the one that limits count."
        ]
    if not networks and settings.HTTPS:
        return [
            "TRUSTED_PROXIES is empty behind an https:// address: X-Forwarded-For would not count, and all"
            " callers would share the proxy's limits."
        ]
    return []


def _collapsed(networks: list[Network]) -> Iterator[Network]:
    """The fewest networks of the same addresses: halves of a wide one count as the whole."""
    yield from ipaddress.collapse_addresses(one for one in networks if isinstance(one, IPv4Network))
    yield from ipaddress.collapse_addresses(one for one in networks if isinstance(one, IPv6Network))


def _has_strangers(network: Network) -> bool:
    if network.prefixlen >= LONGEST_PUBLIC_PREFIX[network.version] or network.is_private:
        return False
    return not (isinstance(network, IPv4Network) and network.subnet_of(SHARED_ADDRESSES))


def _redis() -> list[str]:
    addresses = {"REDIS_URL": settings.REDIS_URL, "BROKER_URL": settings.BROKER_URL}
    if settings.BROKER_URL == settings.REDIS_URL:
        del addresses["BROKER_URL"]
    return [
        f"{name} names no Redis that has a password or is on this machine."
        for name, address in addresses.items()
        if _is_open(address)
    ]


def _is_open(address: str) -> bool:
    """Whether Redis is elsewhere and asked without a password."""
    parts = urlsplit(address)
    return not parts.password and not _is_loopback(parts.hostname or "")


def _metrics() -> list[str]:
    token = settings.METRICS_TOKEN
    if token and (len(token) < SHORTEST_TOKEN or _bits(token) < LEAST_TOKEN_BITS):
        return [f"METRICS_TOKEN is a plain pattern or shorter than {SHORTEST_TOKEN} characters."]
    return []


def _databases() -> list[str]:
    names = {"DATABASE": "default", "TEST_DATABASE": "test"}
    found = {f"{name}_URL": settings.DATABASES[alias] for name, alias in names.items()}
    found |= {
        f"{name}_DIRECT_URL": settings.DATABASES_DIRECT[alias]
        for name, alias in names.items()
        if alias in settings.DATABASES_DIRECT
    }
    return [
        f"{name} names a server elsewhere and asks for no TLS (sslmode)."
        for name, database in found.items()
        if _is_in_the_clear(database)
    ]


def _is_in_the_clear(database: dict[str, Any]) -> bool:
    options = database.get("OPTIONS", {})
    hosts = str(database["HOST"] or options.get("host", "")).split(",")
    if all(_is_loopback(host) or host.startswith("/") for host in hosts):
        return False
    return options.get("sslmode") not in ENCRYPTED_MODES


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in {"localhost", ""}


def _bits(text: str) -> float:
    """Estimate what a text tells anew, in bits: of what it repeats once, and little of an alphabet."""
    period = next((size for size in range(1, len(text)) if text.startswith(text[size:])), len(text))
    steps = [ord(next_one) - ord(one) for one, next_one in pairwise(text)]
    return min(_entropy(text[:period]), _entropy(steps))


def _entropy(items: Sequence[object]) -> float:
    """Return the Shannon entropy of items by their own frequencies, in bits."""
    return sum(count * math.log2(len(items) / count) for count in Counter(items).values())


LEVELS: dict[str, type[checks.Error | checks.Warning]] = {"E": checks.Error, "W": checks.Warning}
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
    "E020": _metrics,
    # A warning: networks of containers on one machine go without TLS.
    "W003": _databases,
}
