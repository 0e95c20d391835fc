"""The attacks by name, in the order they run, without what they need to run."""

NAMES = (
    "entrances",
    "privileges",
    "tokens",
    "addresses",
    "protocol",
    "races",
    "fuzz",
    "generated",
    "latency",
)
