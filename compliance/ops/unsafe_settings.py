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

from compliance.stores.redis_cluster import SCHEMES

HINT = "See docs/deployment.md, Unsafe settings."
SHORTEST_SECRET = 50  # characters
LEAST_BITS = 128.0
SHORTEST_PIN = 8
# PINs of manuals and tutorials, SoftHSM's among them.
DEFAULT_PINS = frozenset({"1234", "12345", "123456", "1234567", "12345678", "123456789", "0000", "changeme"})
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
    if urlsplit(settings.BASE_URL).scheme != "https":
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
    found = []
    for environment, token in settings.PKCS11_TOKENS.items():
        if settings.PKCS11_MODULE and (token["pin"] in DEFAULT_PINS or len(token["pin"]) < SHORTEST_PIN):
            found.append(
                f"PKCS11_{environment.upper()}_PIN is a default or shorter than {SHORTEST_PIN} characters."
            )
    return found


def _proxies() -> list[str]:
    networks = [ipaddress.ip_network(proxy, strict=False) for proxy in settings.TRUSTED_PROXIES]
    if any(network.prefixlen == 0 for network in networks):
        return ["TRUSTED_PROXIES trusts every address: callers could choose the address that limits count."]
    if not networks and settings.HTTPS:
        return [
            "TRUSTED_PROXIES is empty behind an https:// address: X-Forwarded-For would not count, and all"
            " callers would share the proxy's limits."
        ]
    return []


def _redis() -> list[str]:
    names = {settings.BROKER_URL: "BROKER_URL", settings.REDIS_URL: "REDIS_URL"}
    return [
        f"{name} has no password and its server is not on this machine."
        for url, name in names.items()
        if _is_open_elsewhere(url)
    ]


def _replays() -> list[str]:
    if settings.DPOP_WITHOUT_REPLAY_STORE != "refuse":
        return ["DPOP_WITHOUT_REPLAY_STORE accepts: while Redis is away a stolen DPoP proof works again."]
    return []


def _is_open_elsewhere(url: str) -> bool:
    """Whether an address of Redis has no password, and a node (clusters have many) not on this machine."""
    parts = urlsplit(url)
    nodes = parts.netloc.rpartition("@")[2].split(",")
    hosts = [urlsplit(f"//{node}").hostname or "" for node in nodes]
    is_tcp = parts.scheme in {"redis", "rediss", *SCHEMES}
    return is_tcp and not parts.password and not all(map(_is_loopback, hosts))


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
}
