"""The attacks by name, in the order they run, without what they need to run."""

NAMES = (
    "opening", "entrances", "privileges", "standing", "strangers", "tokens", "addresses", "protocol", "races",
    "fuzz", "generated",
)  # fmt: skip
