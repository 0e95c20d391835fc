"""What the agents of a benchmark do: ordinary days of a thousand agents, each with habits of its own.

Every event carries a `session_id` of its own, by which one that was stored twice is found.
"""

import json
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

TOOLS = (
    "search_orders", "read_market_data", "place_order", "send_report", "update_ticket", "list_invoices",
    "get_customer", "sync_inventory", "create_payment", "read_ledger", "post_message", "fetch_rates",
)  # fmt: skip
HOSTS = ("api.kraken.com", "api.stripe.com", "crm.example.com", "erp.example.com", "data.example.org")
TABLES = ("orders", "customers", "positions", "invoices", "tickets", "ledger")
MIX = (
    ("api_call", 40), ("data_access", 30), ("data_mutation", 15), ("transaction_initiated", 10),
    ("authentication_attempt", 5),
)  # fmt: skip
"""Action types and how many of a hundred events have them."""
DIGITS = 12
TEMPLATES = 4_000
"""Different bodies made in advance; only the session's number is new in each request."""


@dataclass(frozen=True)
class Habits:
    """What one agent usually does."""

    agent_id: str
    tools: tuple[str, ...]
    host: str
    table: str
    amount: float

    @classmethod
    def of(cls, agent_id: str) -> "Habits":
        """The same habits for the same agent in each run."""
        chance = random.Random(agent_id)
        return cls(
            agent_id, tuple(chance.sample(TOOLS, 3)), chance.choice(HOSTS), chance.choice(TABLES),
            round(chance.lognormvariate(4.5, 0.6), 2),
        )  # fmt: skip

    def event(self, chance: random.Random) -> dict[str, Any]:
        """One ordinary event, as `POST /v1/events` takes it."""
        action_type = chance.choices([kind for kind, _ in MIX], [weight for _, weight in MIX])[0]
        return {
            "agent_id": self.agent_id,
            "action_type": action_type,
            "details": self._details(action_type, chance),
        }

    def _details(self, action_type: str, chance: random.Random) -> dict[str, Any]:
        tool = chance.choice(self.tools)
        match action_type:
            case "api_call":
                return {
                    "tool": tool, "url": f"https://{self.host}/v2/items", "status": 200, "duration_ms": 40,
                }  # fmt: skip
            case "data_access" | "data_mutation":
                return {"tool": tool, "table": self.table, "rows": chance.randint(1, 40)}
            case "transaction_initiated":
                amount = round(self.amount * chance.uniform(0.8, 1.2), 2)
                return {"tool": tool, "amount_usd": amount, "instrument": "BTC-USD", "venue": "kraken"}
            case _:
                return {"method": "mtls", "host": self.host, "outcome": "success"}


@dataclass(frozen=True)
class Template:
    """An event's JSON but for the number of its session."""

    head: bytes
    tail: bytes


class Traffic:
    """An endless stream of events of the given agents; `mark` begins all their session ids."""

    def __init__(self, agents: Sequence[str], *, seed: int = 3) -> None:
        chance = random.Random(seed)
        self.mark = f"bench-{secrets.token_hex(4)}-"
        self._numbers = count()
        habits = [Habits.of(agent) for agent in agents]
        per_agent = max(1, TEMPLATES // len(habits))
        made = [_template(one.event(chance), self.mark) for one in habits for _ in range(per_agent)]
        chance.shuffle(made)
        self._templates = made
        self.agents = list(agents)

    def next_session(self) -> str:
        """A session id below which none of the coming events has one; they sort by their number."""
        return f"{self.mark}{next(self._numbers):0{DIGITS}d}"

    def single(self, *, key: str = "", path: str = "/v1/events") -> Callable[[], bytes]:
        """Requests that carry one event each."""
        made = [
            (_head(path, key, len(one.head) + DIGITS + len(one.tail)) + one.head, one.tail)
            for one in self._templates
        ]
        numbers, size = self._numbers, len(made)

        def source() -> bytes:
            number = next(numbers)
            head, tail = made[number % size]
            return b"%b%012d%b" % (head, number, tail)

        return source

    def batch(self, size: int, *, key: str = "", path: str = "/v1/events/batch") -> Callable[[], bytes]:
        """Requests that carry `size` events each, as `{"events": […]}`."""
        made, numbers = self._templates, self._numbers

        def source() -> bytes:
            events = []
            for number in (next(numbers) for _ in range(size)):
                one = made[number % len(made)]
                events.append(b"%b%012d%b" % (one.head, number, one.tail))
            body = b'{"events":[' + b",".join(events) + b"]}"
            return _head(path, key, len(body)) + body

        return source


def reads(paths: Sequence[str], *, key: str) -> Callable[[], bytes]:
    """GET requests of the paths, one after the other and again from the first."""
    made = [_get(path, key) for path in paths]
    numbers = count()
    return lambda: made[next(numbers) % len(made)]


def _template(event: dict[str, Any], mark: str) -> Template:
    text = json.dumps(event | {"session_id": f"{mark}#"}, separators=(",", ":")).encode()
    head, _, tail = text.rpartition(b"#")
    return Template(head, tail)


def _head(path: str, key: str, length: int) -> bytes:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def _get(path: str, key: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
