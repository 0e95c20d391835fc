"""Valid requests of every endpoint, changed by chance in body, headers, query, path and method.

Every answer is held against the invariants, and every acknowledged event is looked for at the end.
"""

import threading
from urllib.parse import quote

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.mutations import hostile
from bench.attack.routes import Route, api_routes, lacking
from bench.attack.wire import Garbled, Hang, Line, NoAnswer, Reply, call
from bench.attack.world import CannotBegin, Holdings, World, furnish

THREADS = 3
ANEW_EVERY = 400
"""Requests after which the things asked about are made anew: by then some are retired, revoked or deleted."""


class Ledger:
    """The events that were acknowledged, by the key that may see them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.events: dict[str, set[str]] = {}

    def note(self, key: str, reply: Reply) -> None:
        """Keep the ids of an answer that acknowledges events."""
        found = []
        if reply.status == 201 and isinstance(reply.data, dict):
            found = [reply.data.get("id")]
        elif reply.status == 200 and isinstance(reply.data, list):
            found = [item["data"]["id"] for item in reply.data if item.get("status") == 201]
        with self._lock:
            self.events.setdefault(key, set()).update(str(one) for one in found if one)


def run(siege: Siege, world: World) -> None:
    """So many requests in a few threads, then the events' roll call."""
    routes = api_routes()
    for name in lacking(routes):
        siege.report("no valid request is known", name, "add one to bench/attack/routes.py")
    documented = _documented(siege)
    ledger = Ledger()
    count = siege.pick(short=1_800, long=85_000) // THREADS
    siege.spread(
        lambda number: _work(siege, world, routes, documented, ledger, number=number, count=count),
        threads=THREADS,
    )
    _roll_call(siege, ledger)


def _documented(siege: Siege) -> dict[tuple[str, str], frozenset[int]]:
    """The statuses that the description has for each operation."""
    with Line(siege, timeout=30) as line:
        described = line.ask(call("GET", "/v1/schema")).json
    return {
        (method.upper(), path): frozenset(int(status) for status in operation["responses"])
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    }


def _work(
    siege: Siege,
    world: World,
    routes: list[Route],
    documented: dict[tuple[str, str], frozenset[int]],
    ledger: Ledger,
    *,
    number: int,
    count: int,
) -> None:
    chance = siege.random(number)
    pairs = [(route, method) for route in routes for method in route.actions]
    # What takes bodies has more to get wrong.
    weights = [
        4 if route.pattern in ("v1/events", "v1/events/batch") else 2 if method != "GET" else 1
        for route, method in pairs
    ]
    with Line(siege) as line:
        owned = {key: furnish(siege, line, key) for key in (world.keys.live, world.keys.test)}
        for turn in siege.within(range(count), "requests"):
            if turn % ANEW_EVERY == ANEW_EVERY - 1:
                owned = _furnished_anew(siege, line, owned)
            key = chance.choice(list(owned))
            route, method = chance.choices(pairs, weights)[0]
            asked, is_same = hostile(chance, route, method, owned[key], key)
            where = f"{method} {route.path}"
            try:
                reply = line.ask(asked)
            except NoAnswer:
                siege.report("no answer", where, str(asked))
                continue
            except (Hang, Garbled) as error:
                line.close()
                siege.report(type(error).__name__, where, str(asked))
                continue
            statuses = documented.get((method, route.path)) if is_same else None
            check(siege, reply, asked, where=where, documented=statuses, is_bodiless=asked.method == "HEAD")
            if any(secret.encode() in reply.body for secret in world.secrets):
                siege.report("a key is told", where, str(asked))
            if (
                route.pattern.startswith("v1/events")
                and method == "POST"
                and "review" not in route.pattern
                and is_same
            ):
                ledger.note(key, reply)


def _furnished_anew(siege: Siege, line: Line, owned: dict[str, Holdings]) -> dict[str, Holdings]:
    try:
        return {key: furnish(siege, line, key) for key in owned}
    except CannotBegin as error:
        siege.report("a valid request is refused", "furnishing", str(error))
        return owned


def _roll_call(siege: Siege, ledger: Ledger) -> None:
    """Every acknowledged event is listed; one that is not is asked for by its id."""
    acknowledged = found = 0
    with Line(siege, timeout=30) as line:
        for key, events in ledger.events.items():
            missing, cursor = set(events), ""
            while missing:
                page = line.ask(call("GET", f"/v1/events?limit=100{cursor}", key=key)).json
                missing -= {row["id"] for row in page["data"]}
                if not page.get("next_cursor"):
                    break
                cursor = f"&before={quote(page['next_cursor'])}"
            acknowledged, found = acknowledged + len(events), found + len(events) - len(missing)
            for event in missing:
                reply = line.ask(call("GET", f"/v1/events/{event}", key=key))
                if reply.status != 200:
                    siege.report(
                        "an acknowledged event is not stored", "POST /v1/events", f"{event}: {reply.status}"
                    )
                else:
                    siege.report("an acknowledged event is not listed", "GET /v1/events", event)
        siege.figures.append(f"fuzz: {found:,} of {acknowledged:,} acknowledged events listed again")
