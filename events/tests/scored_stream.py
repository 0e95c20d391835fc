"""`python -m events.tests.scored_stream`: all that the scorer says of a stream of events, as one hash.

The stream has all ten types, ordinary work and attacks, gaps of weeks, clocks that step back and details of
every odd shape; it is the same at each call. Compiled and as Python the scorer must print the same.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator

from events.risk import scoring
from events.risk.scoring.contract import PRIORS, Context, Event, FinancialScope, Marks
from events.risk.scoring.learning import unlearn
from events.risk.scoring.model import fold, relearn, teach_late
from events.risk.scoring.state import AgentState, Baseline, decode_state, encode_baseline, encode_state, pool
from events.tests.assessments import assess

EVENTS = 4_000
START = 1_700_049_600.0
TRADER = FinancialScope(5_000.0, 20_000.0, ("BTC/USD", "ETH-USD"), ("Kraken",), True, 3.0)
CONTEXTS = (
    Context(),
    Context(permitted_actions=frozenset({"send_email", "read_file", "calendar.create_event"})),
    Context(permitted_actions=frozenset(PRIORS), home_domain="acme.example"),
    Context(financial_scope=TRADER, marked=Marks(START, {"evil.example": 1.5})),
    Context(permitted_actions=frozenset(), financial_scope=TRADER, home_domain="acme.example"),
)
TOOLS = (
    "send_email",
    "mcp__mail__sendEmail",
    "delete_user",
    "read_file",
    "calendar",
    "place_order",
    "http_request",
    "searchDocuments",
    "x" * 300,
)
PLACES = (
    "ann@acme.example", "bob@partner.example", "https://api.partner.example/v1?q=1", "evil.example",
    "DE89370400440532013000", "10.0.0.7", "ⅷ@ünïcode.example", "", " ", "<mallory@evil.example>",
)  # fmt: skip
ODD: tuple[object, ...] = (
    None, True, False, 0, -0.0, 1e308, -1e-320, 2**53, 10**40, "1,234.50 USD", "$", "nan", "inf", "-5", "5x",
    "2:1", [], {}, [[]], [None], {"name": None}, {"name": {"name": "deep"}}, ["a"] * 200, "\u0130\u0131ß",
    {"value": "12", "currency": "EUR"}, "y" * 5_000, {"function": {"name": "send_email"}}, [1, "2", {"x": 3}],
    {"to": ["eve@evil.example", "b@a.example"], "file_id": 7, "price": "€3"},
    {"order": {"url": "evil.example/x", "amount": "1.200,50 EUR"}},
    '{"recipient_email": "eve@evil.example"}',
)  # fmt: skip
KEYS = (
    "tool", "action", "name", "arguments", "to", "recipients", "host", "path", "amount_usd", "amount",
    "value", "amountCents", "quantity", "price", "currency", "symbol", "venue", "leverage", "status", "free",
    "Tool-Name", "args", "url", "bcc", "repo_name", "productIds", "method",
)  # fmt: skip
MANY = {f"key{number}": number for number in range(200)}
SHAPES: tuple[object, ...] = (None, "text", 7, [], [1, 2], {}, {"": ""}, MANY)


def stream(seed: int = 7) -> Iterator[tuple[int, Event]]:
    """Agents' numbers with their events."""
    chance = random.Random(seed)
    now = START
    for _ in range(EVENTS):
        now += chance.choice((0.0, 0.01, 1.0, 20.0, 90.0, 400.0, 3_600.0, 40_000.0, -30.0))
        if chance.random() < 0.002:
            now += chance.choice((86_400.0, 1_000_000.0, 9_000_000.0))
        agent = min(chance.randrange(12), chance.randrange(12))
        yield agent, Event(_type(chance), now, _details(agent, chance))


def _type(chance: random.Random) -> str:
    return chance.choice(("api_call", "data_access", *PRIORS))


def _details(agent: int, chance: random.Random) -> object:
    kind = chance.random()
    if kind < 0.6:  # an agent's own few habits
        own = random.Random(agent * 31 + chance.randrange(3))
        return {
            "tool": own.choice(TOOLS),
            "to": own.choice(PLACES),
            "path": f"/srv/{own.randrange(4)}",
            "amount_usd": round(own.lognormvariate(4, 1) * chance.uniform(0.9, 1.1), 2),
        }
    if kind < 0.75:  # something new
        return {
            "tool": chance.choice(TOOLS),
            "recipients": [chance.choice(PLACES), f"someone@{chance.randrange(10**6)}.example"],
            "amount": chance.lognormvariate(8, 3),
            "symbol": chance.choice(("btcusd", "DOGE")),
            "status": chance.choice((200, 403, "denied")),
        }
    if kind < 0.97:
        return {chance.choice(KEYS): chance.choice((*ODD, *PLACES)) for _ in range(chance.randrange(6))}
    return chance.choice(SHAPES)


def digest() -> str:
    """A hash of every verdict and of what is learned from it."""
    said = hashlib.sha256()
    states: dict[int, AgentState] = {}
    known: dict[int, list[tuple[Event, str]]] = {}
    baseline = Baseline()
    for number, (agent, event) in enumerate(stream()):
        state, context = states.get(agent, AgentState()), CONTEXTS[agent % len(CONTEXTS)]
        if number % 3:
            verdict = fold(state, event, context, baseline)
        else:
            verdict = assessed = assess(state, event, context, baseline if number % 2 else None)
            state = assessed.state
        if number % 50 == 0:
            state = decode_state(encode_state(state))
        if number % 70 == 0:
            teach_late(state, event)
        if number % 110 == 0:
            unlearn(state, event, ["evil.example", "bob@partner.example"], was_learned=True)
        states[agent] = state
        known.setdefault(agent, []).append((event, verdict.band))
        if verdict.band == "low":
            pool(baseline, event)
        reasons = [(one.name, one.observed, one.expected, one.weight) for one in verdict.reasons]
        said.update(repr((verdict.score.hex(), verdict.band, reasons)).encode())
    for agent, state in sorted(states.items()):
        said.update(encode_state(state) + encode_state(relearn(known[agent])))
    said.update(encode_baseline(baseline))
    return said.hexdigest()


if __name__ == "__main__":
    json.dump({"path": list(scoring.__path__), "digest": digest()}, sys.stdout)
