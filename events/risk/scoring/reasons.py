"""Put signals into words that an officer reads."""

from collections.abc import Callable
from math import expm1
from operator import itemgetter
from typing import Any

from events.risk.scoring.amounts import MAX_AMOUNT
from events.risk.scoring.contract import ScoreReason

LEAST_TOLD = 0.01  # the least weight of a reason
SHORT = 80  # longest observed or expected text, in characters
ALWAYS_TOLD = frozenset({"off_scope", "scope_mismatch"})
"""Signals that say which name was expected: told however much weighs more."""

Signal = tuple[str, float, Any, Any]
"""A contribution to a score: name, weight in log-odds, observed and expected value (worded by `WORDS`)."""


def shorten(text: str) -> str:
    """Cut a text to `SHORT` characters and replace every unprintable one by `?`."""
    cut = text if len(text) <= SHORT else text[: SHORT - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() else "?" for character in cut)


def usd(amount: float) -> str:
    """Return an amount in dollars for people, as in `1,250.00 USD`."""
    return f"{amount:,.2f} USD" if amount < 1e15 else f"{amount:.3g} USD"


def _money(amount: float | None) -> str:
    return "not stated in dollars" if amount is None else usd(amount)


def _at_most_usd(limit: float) -> str:
    return f"at most {usd(limit)}"


def _ratio(ratio: float) -> str:
    return f"{ratio:g}x" if ratio < MAX_AMOUNT else "leverage of no stated ratio"


def _itself(text: str | None) -> str:
    return "not stated" if text is None else text


def _after_reading(told: str | None) -> str:
    return f"sent to {_itself(told)} after reading"


Worded = Callable[[Any], str]
WORDS: dict[str, tuple[str | Worded, str | Worded]] = {
    "action_type": (_itself, "scores {:.2f} by itself".format),
    # Habits
    "new_destination": (_itself, "one of {} known destinations".format),
    "read_then_send": (_after_reading, "known destinations after reading"),
    "external_host": (_itself, _itself),
    "new_resource": (_itself, "one of {} known resources".format),
    "new_object": (_itself, "one of {} known objects".format),
    "new_container": (_itself, "known places"),
    "privileged_act": (lambda told: f"{told[0]} by {_itself(told[1])}", "the agent's usual acts"),
    "unusual_tool": (_itself, "the agent's usual tools"),
    "unusual_sequence": (lambda told: f"{_itself(told)} at this point", "the agent's usual order"),
    "near_trade_limit": (_money, lambda limit: f"well below {usd(limit)}"),
    "unusual_amount": (_money, lambda middle: f"about {usd(middle * middle)}"),
    "token_amount": (_money, lambda middle: f"about {usd(middle * middle)}"),
    "drifted_amount": (_money, lambda usual: f"about {usd(expm1(usual))} over the long run"),
    "unusual_hour": ("active at {:02d} h UTC".format, "the agent's usual hours"),
    "burst": ("{:.0f} events in about a minute".format, "the agent's usual pace"),
    "many_resources": ("{:.0f} new resources in about an hour".format, "the agent's usual pace"),
    "many_destinations": ("{:.0f} new destinations in about an hour".format, "about {:.1f} a day".format),
    "high_outflow": (lambda sum_: f"{usd(sum_)} today", lambda usual: f"about {usd(expm1(usual))} a day"),
    "repeated_failures": ("{:.0f} failures in the last minutes".format, "none"),
    "anomaly_before": ("{:.0f} in the last minutes".format, "none"),
    "scope_mismatch": (_itself, _itself),
    # Verdicts
    "confirmed_destination": (_itself, "no place that a confirmed attack went to"),
    # Rules
    "reported_unauthorized": ("the agent tried an action outside its scope", "actions inside the scope"),
    "repeated_anomaly": ("{:.0f} anomalies within minutes".format, "at most 2"),
    "off_scope": (_itself, _itself),
    "over_single_trade_limit": (usd, _at_most_usd),
    "over_daily_limit": (lambda spent: f"{usd(spent)} today", _at_most_usd),
    "instrument_not_permitted": (_itself, "one of {} permitted instruments".format),
    "venue_not_permitted": (_itself, "one of {} permitted venues".format),
    "leverage_not_permitted": (_ratio, "none"),
    "over_leverage_limit": (_ratio, "at most {:g}x".format),
}
"""The observed and the expected text of each signal, or what makes it from the signal's value."""


def strongest(signals: list[Signal], count: int = 3) -> tuple[ScoreReason, ...]:
    """Return the `count` heaviest signals as reasons, heaviest first, ties by name.

    One of `ALWAYS_TOLD` takes the place of the last if it is lighter.
    """
    ranked = [signal for signal in signals if signal[1] >= LEAST_TOLD]
    if len(ranked) > 1:
        ranked.sort(key=_name)
        ranked.sort(key=_weight, reverse=True)
    if len(ranked) > count:
        told = [signal for signal in ranked[count:] if signal[0] in ALWAYS_TOLD]
        ranked[count - len(told) :] = told
    return tuple([_reason(*signal) for signal in ranked[:count]])


_name, _weight = itemgetter(0), itemgetter(1)


def _reason(name: str, weight: float, observed: Any, expected: Any) -> ScoreReason:
    as_observed, as_expected = WORDS[name]
    return ScoreReason(
        name,
        as_observed if isinstance(as_observed, str) else shorten(as_observed(observed)),
        as_expected if isinstance(as_expected, str) else shorten(as_expected(expected)),
        int(weight * 1_000 + 0.5) / 1_000,
    )
