"""Why an event scored as it did, in words that an officer reads."""

import msgspec

SHORT = 80
"""Longest observed or expected text, in characters."""


class Reason(msgspec.Struct, frozen=True):
    """One contribution to a score.

    `weight` is what it adds to the score's log-odds; `observed` and `expected` are short texts. Ready for
    JSON and for a PostgreSQL `jsonb` column: no NUL, no lone surrogate.
    """

    name: str
    observed: str
    expected: str
    weight: float


class Signal(msgspec.Struct, frozen=True):
    """A contribution before it is put in words: `weight` in log-odds, at least 0."""

    name: str
    weight: float
    observed: str
    expected: str


def shorten(text: str) -> str:
    """At most `SHORT` characters, every unprintable one replaced by `?`."""
    cut = text if len(text) <= SHORT else text[: SHORT - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() else "?" for character in cut)


def usd(amount: float) -> str:
    """An amount in dollars for people, as in `1,250.00 USD`."""
    return f"{amount:,.2f} USD" if amount < 1e15 else f"{amount:.3g} USD"


def strongest(signals: list[Signal], count: int = 3) -> tuple[Reason, ...]:
    """The `count` heaviest signals as reasons, heaviest first, ties by name."""
    ranked = sorted((s for s in signals if s.weight > 0), key=lambda s: (-s.weight, s.name))
    return tuple(
        Reason(
            name=s.name, observed=shorten(s.observed), expected=shorten(s.expected), weight=round(s.weight, 3)
        )
        for s in ranked[:count]
    )
