"""Why an event scored as it did, in words that an officer reads."""

from collections.abc import Callable
from math import expm1
from operator import attrgetter
from typing import Any

import msgspec

from events.scoring.amounts import MAX_AMOUNT

LEAST_TOLD = 0.01
"""The least weight that is worth a reason."""
SHORT = 80
"""Longest observed or expected text, in characters."""


class Reason(msgspec.Struct, frozen=True, gc=False):
    """One contribution to a score.

    `weight` is what it adds to the score's log-odds; `observed` and `expected` are short texts. Ready for
    JSON and for a PostgreSQL `jsonb` column: no NUL, no lone surrogate.
    """

    name: str
    observed: str
    expected: str
    weight: float


class Signal:
    """A contribution before it is put in words: `weight` in log-odds.

    What was `observed` and `expected` are what `WORDS` has words for under the name: most signals are never
    told, so their words aren't made.
    """

    name: str
    weight: float
    observed: Any
    expected: Any


def signal(name: str, weight: float, observed: Any = None, expected: Any = None) -> Signal:
    """A contribution."""
    made = Signal.__new__(Signal)
    made.name = name
    made.weight = weight
    made.observed = observed
    made.expected = expected
    return made


def shorten(text: str) -> str:
    """At most `SHORT` characters, every unprintable one replaced by `?`."""
    cut = text if len(text) <= SHORT else text[: SHORT - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() else "?" for character in cut)


def usd(amount: float) -> str:
    """An amount in dollars for people, as in `1,250.00 USD`."""
    return f"{amount:,.2f} USD" if amount < 1e15 else f"{amount:.3g} USD"


def _money(amount: float | None) -> str:
    return "not stated in dollars" if amount is None else usd(amount)


def _at_most_usd(limit: float) -> str:
    return f"at most {usd(limit)}"


def _ratio(ratio: float) -> str:
    return f"{ratio:g}x" if ratio < MAX_AMOUNT else "leverage of no stated ratio"


def _itself(text: str | None) -> str:
    return "not stated" if text is None else text


Worded = Callable[[Any], str]
WORDS: dict[str, tuple[str | Worded, str | Worded]] = {
    "action_type": (_itself, "scores {:.2f} by itself".format),
    # Habits
    "new_destination": (_itself, "one of {} known destinations".format),
    "read_then_send": (
        lambda told: f"sent to {_itself(told)} after reading",
        "known destinations after reading",
    ),
    "new_host": (_itself, "one of {} known hosts".format),
    "external_host": (_itself, _itself),
    "new_resource": (_itself, "one of {} known resources".format),
    "unusual_tool": (_itself, "the agent's usual tools"),
    "unusual_sequence": (lambda told: f"{_itself(told)} at this point", "the agent's usual order"),
    "near_trade_limit": (_money, lambda limit: f"well below {usd(limit)}"),
    "unusual_amount": (_money, lambda middle: f"about {usd(middle * middle)}"),
    "token_amount": (_money, lambda middle: f"about {usd(middle * middle)}"),
    "drifted_amount": (_money, lambda usual: f"about {usd(expm1(usual))} over the long run"),
    "unusual_hour": ("active at {:02d} h UTC".format, "the agent's usual hours"),
    "burst": ("{:.0f} events in about a minute".format, "the agent's usual pace"),
    "repeated_failures": ("{:.0f} failures in the last minutes".format, "none"),
    "anomaly_before": ("{:.0f} in the last minutes".format, "none"),
    # Rules
    "reported_unauthorized": ("the agent tried an action outside its scope", "actions inside the scope"),
    "confirmed_destination": (_itself, "no place that a confirmed attack went to"),
    "repeated_anomaly": ("{:.0f} anomalies within minutes".format, "at most 2"),
    "off_scope": (_itself, "one of {} permitted actions".format),
    "over_single_trade_limit": (usd, _at_most_usd),
    "over_daily_limit": (lambda spent: f"{usd(spent)} today", _at_most_usd),
    "instrument_not_permitted": (_itself, "one of {} permitted instruments".format),
    "venue_not_permitted": (_itself, "one of {} permitted venues".format),
    "leverage_not_permitted": (_ratio, "none"),
    "over_leverage_limit": (_ratio, "at most {:g}x".format),
}
"""What is told as observed and as expected under each name: words for a signal's value, or words alone."""


_name = attrgetter("name")
_weight = attrgetter("weight")


def strongest(signals: list[Signal], count: int = 3) -> tuple[Reason, ...]:
    """The `count` heaviest signals as reasons, heaviest first, ties by name."""
    ranked = [signal for signal in signals if signal.weight >= LEAST_TOLD]
    if not ranked:
        return ()
    if len(ranked) > 1:
        ranked.sort(key=_name)
        ranked.sort(key=_weight, reverse=True)
    return tuple([_told(signal) for signal in ranked[:count]])


def _told(signal: Signal) -> Reason:
    observed, expected = WORDS[signal.name]
    return Reason(
        signal.name,
        observed if isinstance(observed, str) else shorten(observed(signal.observed)),
        expected if isinstance(expected, str) else shorten(expected(signal.expected)),
        int(signal.weight * 1_000 + 0.5) / 1_000,
    )
