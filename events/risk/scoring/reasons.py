"""Put signals into words that an officer reads."""

from collections.abc import Callable
from typing import Any, NamedTuple

from events.risk.scoring.contract import ScoreReason
from events.risk.scoring.details import MAX_AMOUNT

LEAST_TOLD = 0.01  # the least weight of a reason
SHORT = 80  # longest observed or expected text, in characters
ALWAYS_TOLD = frozenset({"off_scope", "scope_mismatch"})
"""Signals that say which name was expected: told however much weighs more."""

Signal = tuple[str, float, Any, Any]
"""A contribution to a score: name, weight in log-odds, observed and expected value."""


Worded = Callable[[Any], str]


class SignalWords(NamedTuple):
    """A signal in words: what it means, and its observed and expected text, or what makes one of a value."""

    sentence: str
    observed: str | Worded
    expected: str | Worded


MEANINGS: dict[str, SignalWords] = {}
WEIGHTS: dict[str, float] = {}
"""Log-odds for one unit of a feature's value, at or above zero, so no difference lowers a score."""


def declare(
    name: str, sentence: str, observed: str | Worded, expected: str | Worded, **weights: float
) -> None:
    """Declare a signal by its name, its words and the weights that it is made of."""
    MEANINGS[name] = SignalWords(sentence, observed, expected)
    WEIGHTS.update(weights)


def shorten(text: str) -> str:
    """Cut a text to `SHORT` characters and replace every unprintable one by `?`."""
    cut = text if len(text) <= SHORT else text[: SHORT - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() else "?" for character in cut)


def usd(amount: float) -> str:
    """Return an amount in dollars for people, as in `1,250.00 USD`."""
    return f"{amount:,.2f} USD" if amount < 1e15 else f"{amount:.3g} USD"


def at_most_usd(limit: float) -> str:
    return f"at most {usd(limit)}"


def leverage(ratio: float) -> str:
    return f"{ratio:g}x" if ratio < MAX_AMOUNT else "leverage of no stated ratio"


def itself(text: str) -> str:
    return text


def about_usd(root: float) -> str:
    return f"about {usd(root * root)}"


def one_of(kind: str) -> "Worded":
    return lambda count: f"one of {count} known {kind}" if count else f"no known {kind} yet"


def strongest(decided: list[Signal], signals: list[Signal], count: int = 3) -> tuple[ScoreReason, ...]:
    """Return `count` reasons: what decided the score, then the heaviest of the rest, ties by name.

    A signal without an observed value, for what the event does not state, is no reason. One of
    `ALWAYS_TOLD` takes the place of the last if it is lighter.
    """
    ranked = [signal for signal in signals if signal[1] >= LEAST_TOLD and signal[2] is not None]
    if len(ranked) > 1:
        ranked.sort(key=_rank)
    if decided:
        ranked = sorted(decided, key=_rank) + ranked
    if len(ranked) > count:
        told = [signal for signal in ranked[count:] if signal[0] in ALWAYS_TOLD]
        ranked[count - len(told) :] = told
    return tuple([_reason(signal) for signal in ranked[:count]])


def _rank(signal: Signal) -> tuple[float, str]:
    return -signal[1], signal[0]


def _reason(signal: Signal) -> ScoreReason:
    name, weight, observed, expected = signal
    _, as_observed, as_expected = MEANINGS[name]
    return ScoreReason(
        name,
        as_observed if isinstance(as_observed, str) else shorten(as_observed(observed)),
        as_expected if isinstance(as_expected, str) else shorten(as_expected(expected)),
        int(weight * 1_000 + 0.5) / 1_000,
    )
