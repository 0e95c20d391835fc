"""Rate limits and proxies."""

from compliance.settings.declaring import Network, Section
from compliance.settings.service import HTTPS

section = Section("Rate limits and proxies")


def _limit(name: str, default: int, sentence: str) -> int:
    return section.integer(f"RATE_LIMIT_{name}", default, sentence, unit="requests per 60 s", least=1)


RATE_LIMITS: dict[str, int] = {
    "verify": _limit("VERIFY", 100, "Verifications, by address."),
    "public": _limit("PUBLIC", 6_000, "Other public requests, by address."),
    "key": _limit("KEY", 6_000, "Requests of an API key."),
    "events": _limit("EVENTS", 120_000, "Events sent with an API key."),
    "gateway": _limit("GATEWAY", 120_000, "Gateway decisions of an API key."),
    "unauthenticated": _limit("UNAUTHENTICATED", 600, "Requests without a valid API key, by address."),
    "sign_in": _limit("SIGN_IN", 20, "Sign-ins to the console, by address."),
    "sign_in_entries": section.integer(
        "RATE_LIMIT_SIGN_IN_ENTRIES",
        10,
        "Failed sign-ins that the audit log takes of each account, and of all unknown names together.",
        unit="entries per 60 s",
        least=1,
    ),
}
RATE_LIMIT_WINDOW_SECONDS: int = 60
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
TRUSTED_PROXIES: list[Network] = section.networks(
    "TRUSTED_PROXIES",
    "Addresses or networks of proxies whose `X-Forwarded-For` counts. Where any is given,"
    " `X-Forwarded-Proto` counts from every peer.",
)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
