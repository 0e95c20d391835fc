"""Settings that `check --deploy` refuses or warns of, since they would leave a public service open."""

import ipaddress
import math
from collections import Counter
from collections.abc import Iterator, Sequence
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
        for number, text in (*_weak_secrets(), *_open_doors())
    ]


def _weak_secrets() -> Iterator[tuple[str, str]]:
    """Yield the number of the check and the text for each secret that could be guessed."""
    key, token = settings.SECRET_KEY, settings.METRICS_TOKEN
    if key.startswith("django-insecure-") or len(key) < SHORTEST_SECRET or _bits(key) < LEAST_BITS:
        yield "E011", f"SECRET_KEY is no random text of {SHORTEST_SECRET} characters or more."
    for number, fernet_key in enumerate(settings.ENCRYPTION_KEYS, 1):
        try:
            Fernet(fernet_key)
            # 44 characters of base64: a random key repeats few of them.
            problem = "not random" if _bits(fernet_key) < LEAST_BITS else ""
        except ValueError:
            problem = "no Fernet key"
        if problem:
            yield "E012", f"ENCRYPTION_KEYS, key {number}, is {problem}."
    tokens = settings.PKCS11_TOKENS.items() if settings.PKCS11_MODULE else ()
    pins = {f"PKCS11_{environment.upper()}_PIN": each["pin"] for environment, each in tokens}
    if settings.PKCS11_SO_PIN:
        pins["PKCS11_SO_PIN"] = settings.PKCS11_SO_PIN
    for name, pin in pins.items():
        if is_weak_pin(pin):
            weakness = f"a common password, a plain pattern or shorter than {SHORTEST_PIN} characters"
            yield "E016", f"{name} is {weakness}."
    if token and (len(token) < SHORTEST_TOKEN or _bits(token) < LEAST_TOKEN_BITS):
        yield "E020", f"METRICS_TOKEN is a plain pattern or shorter than {SHORTEST_TOKEN} characters."


def _open_doors() -> Iterator[tuple[str, str]]:
    """Yield number and text for each setting that lets strangers in, or lets them read what passes."""
    if settings.DEBUG:
        yield "E010", "DEBUG is on: errors would show their tracebacks to callers."
    # HTTPS decides about cookies and HSTS, and reads the scheme letter by letter.
    if not settings.HTTPS or not urlsplit(settings.BASE_URL).hostname:
        yield "E013", "BASE_URL is no https:// address: cookies and tokens would go in the clear."
    hosts: list[str] = settings.ALLOWED_HOSTS
    if "*" in hosts:
        yield "E014", "ALLOWED_HOSTS has *: any Host header would be served."
    if any(host.startswith(".") and "." not in host.strip(".") for host in hosts):
        yield "E014", "ALLOWED_HOSTS has a whole top-level domain: strangers have names in it."
    names = ("WEBHOOK", "TRUSTED_ISSUER")
    switches = [f"{name}_ALLOW_{what}" for name in names for what in ("PRIVATE_ADDRESSES", "HTTP")]
    danger = "tenants could have the service call inside its own network, or in the clear"
    yield from (("E015", f"{switch} is on: {danger}.") for switch in switches if getattr(settings, switch))
    yield from (("E017", text) for text in _proxies())
    # The broker may be the same.
    addresses = {settings.BROKER_URL: "BROKER_URL", settings.REDIS_URL: "REDIS_URL"}
    for address, name in addresses.items():
        parts = urlsplit(address)
        if not parts.password and not _is_loopback(parts.hostname or ""):
            yield "E018", f"{name} names no Redis that has a password or is on this machine."
    databases = {"DATABASE": "default", "TEST_DATABASE": "test"}
    for way, found in (("URL", settings.DATABASES), ("DIRECT_URL", settings.DATABASES_DIRECT)):
        clear = [name for name, alias in databases.items() if _is_in_the_clear(found.get(alias))]
        # A warning: networks of containers on one machine go without TLS.
        text = "names a server elsewhere and asks for no TLS (sslmode)."
        yield from (("W003", f"{name}_{way} {text}") for name in clear)


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
    # Halves of a wide network count as the whole.
    fewest: list[Network] = [
        *ipaddress.collapse_addresses(one for one in networks if isinstance(one, IPv4Network)),
        *ipaddress.collapse_addresses(one for one in networks if isinstance(one, IPv6Network)),
    ]
    if any(map(_has_strangers, fewest)):
        return [
            "TRUSTED_PROXIES trusts addresses of strangers: callers could choose the one that limits count."
        ]
    if not networks and settings.HTTPS:
        return [
            "TRUSTED_PROXIES is empty behind an https:// address: X-Forwarded-For would not count, and all"
            " callers would share the proxy's limits."
        ]
    return []


def _has_strangers(network: Network) -> bool:
    if network.prefixlen >= LONGEST_PUBLIC_PREFIX[network.version] or network.is_private:
        return False
    return not (isinstance(network, IPv4Network) and network.subnet_of(SHARED_ADDRESSES))


def _is_in_the_clear(database: dict[str, Any] | None) -> bool:
    if database is None:
        return False
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
