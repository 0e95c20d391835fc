"""Webhooks, signals and streams, which are sent; rate limits and proxies of what comes in."""

from compliance.settings.declaring import Network, Section
from compliance.settings.service import HTTPS

webhooks = Section("Webhooks")

WEBHOOK_TIMEOUT_SECONDS: float = 30.0
WEBHOOK_ALLOW_PRIVATE_ADDRESSES: bool = webhooks.flag("WEBHOOK_ALLOW_PRIVATE_ADDRESSES", False)
WEBHOOK_ALLOW_HTTP: bool = webhooks.flag("WEBHOOK_ALLOW_HTTP", False)
WEBHOOK_CA_FILE: str = webhooks.text("WEBHOOK_CA_FILE", "", default_is="public roots")
WEBHOOK_SENDER_THREADS: int = webhooks.integer("WEBHOOK_SENDER_THREADS", 512, least=1)
WEBHOOK_POLL_SECONDS: float = 5.0  # interval between looks for deliveries of which no message came
WEBHOOK_SLOTS_PER_ENDPOINT: int = 20  # at once, over all senders; until it has answered quickly, one
WEBHOOK_SLOW_SLOTS: int = webhooks.integer("WEBHOOK_SLOW_SLOTS", 32, least=1)
WEBHOOK_DISABLE_AFTER_DELIVERIES: int = 100  # failed deliveries in a row after which a webhook is disabled
WEBHOOK_DISABLE_AFTER_SECONDS: int = 86_400  # time that those failures must span as well
WEBHOOK_SECRET_OVERLAP_SECONDS: int = 86_400  # a rotated secret still signs so long
WEBHOOKS_PER_TENANT: int = webhooks.integer("WEBHOOKS_PER_TENANT", 200, least=0)

signals = Section("Signals")

SIGNALS_TIMEOUT_SECONDS: float = 10.0
SIGNALS_SENDER_THREADS: int = 32  # streams that each sender pushes to at once in each environment
SIGNALS_POLL_SECONDS: float = 2.0  # interval between looks for signals of which no message came
SIGNALS_LONG_POLL_SECONDS: float = signals.number("SIGNALS_LONG_POLL_SECONDS", 5.0, unit="seconds", least=0)
SIGNALS_LONG_POLLS: int = 2  # polls that may wait in one web process
SIGNALS_PAUSE_AFTER_SECONDS: int = signals.integer(
    "SIGNALS_PAUSE_AFTER_SECONDS", 86_400, unit="seconds", least=0, most=31_536_000
)
SIGNALS_MOST_WAITING: int = signals.integer("SIGNALS_MOST_WAITING", 10_000, least=1)
SIGNAL_STREAMS_PER_TENANT: int = signals.integer("SIGNAL_STREAMS_PER_TENANT", 20, least=0)

stream = Section("Stream to other systems")

STREAM_S3_URL: str = stream.text("STREAM_S3_URL", "")
STREAM_S3_REGION: str = stream.text("STREAM_S3_REGION", "us-east-1")
STREAM_S3_KEY_ID: str = stream.text("STREAM_S3_KEY_ID", "")
STREAM_S3_SECRET: str = stream.text("STREAM_S3_SECRET", "", secret=True)
STREAM_SYSLOG: str = stream.text("STREAM_SYSLOG", "")
STREAM_CA_FILE: str = stream.text("STREAM_CA_FILE", "", default_is="public roots")
STREAM_TIMEOUT_SECONDS: float = 30.0

limits = Section("Rate limits and proxies")


_DEFAULTS = {
    "verify": 100,
    "public": 6_000,
    "key": 6_000,
    "events": 120_000,
    "gateway": 120_000,
    "unauthenticated": 600,
    "sign_in": 20,
}
RATE_LIMITS: dict[str, int] = {
    **{
        name: limits.integer(f"RATE_LIMIT_{name.upper()}", default, unit="requests per 60 s", least=1)
        for name, default in _DEFAULTS.items()
    },
    "sign_in_entries": limits.integer("RATE_LIMIT_SIGN_IN_ENTRIES", 10, unit="entries per 60 s", least=1),
    "octets": limits.integer("QUOTA_OCTETS", 50_000_000_000, unit="octets per 24 h", least=1),
    "pool_keys": 20,  # keys that a tenant takes before the pool's last half is closed to it
}
RATE_LIMIT_WINDOW_SECONDS: int = 60
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
TRUSTED_PROXIES: list[Network] = limits.networks("TRUSTED_PROXIES", [])
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
