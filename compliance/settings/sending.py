"""What is sent out: webhooks and signals."""

from compliance.settings.declaring import Section

webhooks = Section("Webhooks")

WEBHOOK_TIMEOUT_SECONDS: float = 30.0
WEBHOOK_ALLOW_PRIVATE_ADDRESSES: bool = webhooks.flag(
    "WEBHOOK_ALLOW_PRIVATE_ADDRESSES",
    False,
    "Whether receivers may have loopback and private addresses; for development only.",
)
WEBHOOK_ALLOW_HTTP: bool = webhooks.flag(
    "WEBHOOK_ALLOW_HTTP", False, "Whether receivers may be reached over plain HTTP; for development only."
)
WEBHOOK_CA_FILE: str = webhooks.text(
    "WEBHOOK_CA_FILE", "", "PEM file of roots to check receivers against.", default_is="public roots"
)
WEBHOOK_SENDER_THREADS: int = webhooks.integer(
    "WEBHOOK_SENDER_THREADS", 512, "Requests under way in each sender process and environment.", least=1
)
WEBHOOK_POLL_SECONDS: float = webhooks.number(
    "WEBHOOK_POLL_SECONDS",
    0.25,
    "Interval between looks for deliveries of which no message came.",
    unit="seconds",
    least=0.01,
)
WEBHOOK_SLOTS_PER_ENDPOINT: int = webhooks.integer(
    "WEBHOOK_SLOTS_PER_ENDPOINT",
    20,
    "Simultaneous requests to one endpoint, over all senders, once it has answered quickly (until then"
    " one); a quarter of them to a failing one.",
    least=1,
)
WEBHOOK_SLOW_SLOTS: int = webhooks.integer(
    "WEBHOOK_SLOW_SLOTS",
    32,
    "Simultaneous requests to all endpoints of an environment slower than 2 s.",
    least=1,
)
WEBHOOK_DISABLE_AFTER_DELIVERIES: int = webhooks.integer(
    "WEBHOOK_DISABLE_AFTER_DELIVERIES",
    100,
    "Failed deliveries in a row after which a webhook is disabled.",
    least=1,
)
WEBHOOK_DISABLE_AFTER_SECONDS: int = webhooks.integer(
    "WEBHOOK_DISABLE_AFTER_SECONDS",
    86_400,
    "Time that those failures must span as well.",
    unit="seconds",
    least=0,
    most=31_536_000,
)
WEBHOOK_SECRET_OVERLAP_SECONDS: int = webhooks.integer(
    "WEBHOOK_SECRET_OVERLAP_SECONDS",
    86_400,
    "Time for which a rotated secret still signs beside the new one.",
    unit="seconds",
    least=0,
    most=31_536_000,
)
WEBHOOKS_PER_TENANT: int = webhooks.integer(
    "WEBHOOKS_PER_TENANT", 200, "Webhooks a tenant may have.", least=0
)

signals = Section("Signals", "Pushes keep to `WEBHOOK_ALLOW_*` and `WEBHOOK_CA_FILE`.")

SIGNALS_TIMEOUT_SECONDS: float = 10.0
SIGNALS_SENDER_THREADS: int = signals.integer(
    "SIGNALS_SENDER_THREADS",
    32,
    "Streams that each sender pushes to at once in each environment; at most half to failing receivers.",
    least=1,
)
SIGNALS_POLL_SECONDS: float = signals.number(
    "SIGNALS_POLL_SECONDS",
    0.5,
    "Interval between looks for signals of which no message came.",
    unit="seconds",
    least=0.01,
)
SIGNALS_LONG_POLL_SECONDS: float = signals.number(
    "SIGNALS_LONG_POLL_SECONDS",
    5.0,
    "How long a poll (RFC 8936) waits for the first signal.",
    unit="seconds",
    least=0,
)
SIGNALS_LONG_POLLS: int = signals.integer(
    "SIGNALS_LONG_POLLS", 2, "Polls that may wait in one web process.", least=0
)
SIGNALS_PAUSE_AFTER_SECONDS: int = signals.integer(
    "SIGNALS_PAUSE_AFTER_SECONDS",
    86_400,
    "Time of failures after which a push stream is paused.",
    unit="seconds",
    least=0,
    most=31_536_000,
)
SIGNALS_MOST_WAITING: int = signals.integer(
    "SIGNALS_MOST_WAITING", 10_000, "Signals that may wait in a stream; one with more is disabled.", least=1
)
SIGNAL_STREAMS_PER_TENANT: int = signals.integer(
    "SIGNAL_STREAMS_PER_TENANT", 20, "Streams a tenant may have.", least=0
)
