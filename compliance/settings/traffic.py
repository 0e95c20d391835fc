"""Rate limits and proxies."""

from compliance.settings.declaring import Network, Section
from compliance.settings.service import HTTPS

section = Section("Rate limits and proxies")


def _limit(name: str, default: int) -> int:
    return section.integer(f"RATE_LIMIT_{name}", default, unit="requests per 60 s", least=1)


RATE_LIMITS: dict[str, int] = {
    "verify": _limit("VERIFY", 100),
    "public": _limit("PUBLIC", 6_000),
    "key": _limit("KEY", 6_000),
    "events": _limit("EVENTS", 120_000),
    "gateway": _limit("GATEWAY", 120_000),
    "unauthenticated": _limit("UNAUTHENTICATED", 600),
    "sign_in": _limit("SIGN_IN", 20),
    "sign_in_entries": section.integer("RATE_LIMIT_SIGN_IN_ENTRIES", 10, unit="entries per 60 s", least=1),
    "octets": section.integer("QUOTA_OCTETS", 50_000_000_000, unit="octets per 24 h", least=1),
    "pool_keys": 20,  # keys that a tenant takes before the pool's last half is closed to it
}
RATE_LIMIT_WINDOW_SECONDS: int = 60
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
TRUSTED_PROXIES: list[Network] = section.networks("TRUSTED_PROXIES")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
