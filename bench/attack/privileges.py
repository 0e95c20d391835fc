"""The privilege matrix: every route, method, credential and owner, by what the view itself declares.

Who may do what is not written here again: a route's scopes come from its view, and the expected status
follows by rule. An answer must neither act for nor tell of another tenant's, or environment's, things.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.routes import Route, api_routes, headers_of, lacking, valid_call
from bench.attack.wire import Line, NoAnswer, Reply, call
from bench.attack.world import Holdings, World, absent, furnish

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE")
GARBAGE = "service_live_" + "x" * 43
REFUSED = frozenset({401, 403, 404, 405})
SANDBOX_TREE = "v1/audit-log/test/"
TWO_SCOPES = ("<str:blueprint_id>/renew", "<str:review_id>/items", "/items/<str:agent_id>")
"""How the routes end that take another scope beside their view's."""


@dataclass(frozen=True)
class Credential:
    """A key and how far it should get: `is_known`, `has_scope`, and whose things it `sees`."""

    name: str
    secret: str | None
    is_known: bool
    has_scope: bool
    sees: str


@dataclass(frozen=True)
class Cell:
    """One question of the matrix."""

    route: Route
    method: str
    credential: Credential
    owner: str

    def __str__(self) -> str:
        return f"{self.method} /{self.route.pattern}, {self.credential.name}, {self.owner}'s"

    @property
    def is_offered(self) -> bool:
        """Whether the path has the method."""
        return ("GET" if self.method == "HEAD" else self.method) in self.route.actions

    def expected(self) -> int | None:
        """The status that must come; None where the endpoint itself decides, past the gate."""
        if self.route.is_public:
            return None if self.is_offered or self.route.is_plain else 405
        if not self.credential.is_known:
            return 401
        if not self.is_offered:
            return 405
        if not self.credential.has_scope:
            return 400 if self.route.is_oauth else 403
        if self.route.is_of_tree:
            is_sandbox = self.route.pattern.startswith(SANDBOX_TREE)
            return None if is_sandbox is (self.credential.sees == "other environment") else 404
        if not self.route.names_object(self.method) or self.owner == self.credential.sees:
            return None
        return 401 if self.route.decides else 404


def run(siege: Siege, world: World) -> None:
    """Ask every cell; a short run asks a seeded part of those without an effect."""
    routes = api_routes()
    for name in lacking(routes):
        siege.report("no valid request is known", name, "add one to bench/attack/routes.py")
    with Line(siege) as line:
        owned = {
            "own": furnish(siege, line, world.keys.live),
            "other tenant": furnish(siege, line, world.other.live),
            "other environment": furnish(siege, line, world.keys.test),
        }
        owned["nobody"] = absent(owned["own"])
        cells = [cell for route in routes for cell in _cells(route, world)]
        chance = siege.random()
        if siege.is_short:
            cells = chance.sample(cells, k=min(len(cells), 1_200))
        else:
            chance.shuffle(cells)
        for cell in siege.within(cells, "cells"):
            reply = _ask(siege, line, cell, owned[cell.owner])
            if reply is None:
                continue
            _judge(siege, cell, reply, owned)
            has_sight = cell.owner == cell.credential.sees
            if has_sight and cell.method in ("POST", "DELETE", "PATCH") and reply.status < 300:
                # What it did may stand in the way of what is asked next.
                key = {
                    "own": world.keys.live,
                    "other tenant": world.other.live,
                    "other environment": world.keys.test,
                }
                if _changes(cell.route):
                    owned[cell.owner] = furnish(siege, line, key[cell.owner])


def _cells(route: Route, world: World) -> Iterator[Cell]:
    for method in METHODS:
        for credential in _credentials(route, method, world):
            owners = ("own", "other tenant", "other environment", "nobody")
            for owner in owners if route.names_object(method) else ("own",):
                yield Cell(route, method, credential, owner)


def _credentials(route: Route, method: str, world: World) -> Iterator[Credential]:
    keys, scope = world.keys, route.scope_of(method)
    for name, secret in (
        ("no key", None), ("garbage", GARBAGE), ("no key at all like it", "Zm9vOmJhcg=="),
        ("a revoked key", keys.revoked), ("an expired key", keys.expired),
    ):  # fmt: skip
        yield Credential(name, secret, is_known=False, has_scope=False, sees="own")
    yield Credential("a live key", keys.live, is_known=True, has_scope=True, sees="own")
    yield Credential("a test key", keys.test, is_known=True, has_scope=True, sees="other environment")
    yield Credential(
        "another tenant's key", world.other.live, is_known=True, has_scope=True, sees="other tenant"
    )
    if scope is not None:
        if not route.pattern.endswith(TWO_SCOPES):
            yield Credential(f"only {scope}", keys.scoped[scope], is_known=True, has_scope=True, sees="own")
        yield Credential(f"all but {scope}", keys.without[scope], is_known=True, has_scope=False, sees="own")


def _ask(siege: Siege, line: Line, cell: Cell, holdings: Holdings) -> Reply | None:
    secret = cell.credential.secret
    if cell.is_offered and cell.method != "HEAD":
        asked = valid_call(cell.route, cell.method, holdings, key=secret)
    else:
        headers = headers_of(cell.route, holdings)
        asked = call(cell.method, cell.route.address(holdings), key=secret, headers=headers)
    if cell.route.is_public and secret is not None:
        asked = call(asked.method, asked.target, key=secret, body=asked.body, headers=asked.headers)
    try:
        return line.ask(asked)
    except NoAnswer:
        siege.report("no answer", str(cell), str(asked))
        return None


def _judge(siege: Siege, cell: Cell, reply: Reply, owned: dict[str, Holdings]) -> None:
    where = f"{cell.method} /{cell.route.pattern}"
    check(siege, reply, cell, where=where, is_bodiless=cell.method == "HEAD")
    expected, seen = cell.expected(), _effective(cell, reply)
    if cell.route.is_public:
        if reply.status in (401, 403) or (expected is not None and seen != expected):
            siege.report(f"{seen} for the public", where, f"{cell}: {reply}")
        return
    if expected is None:
        if seen in REFUSED:
            siege.report(f"{seen} where it may", where, f"{cell}: {reply}")
    elif seen != expected:
        siege.report(f"{seen} instead of {expected}", where, f"{cell}: {reply}")
    if reply.status < 300:
        _look_for_others(siege, cell, reply, owned, where)


def _look_for_others(siege: Siege, cell: Cell, reply: Reply, owned: dict[str, Holdings], where: str) -> None:
    """An answer names nothing that its caller can't see, unless the caller named it."""
    for owner, holdings in owned.items():
        if owner in (cell.credential.sees, cell.owner, "nobody"):
            continue
        told = sorted(text for text in holdings.ids if text.encode() in reply.body)
        if told:
            siege.report(f"tells of the {owner}'s", where, f"{cell}: {told}")


def _effective(cell: Cell, reply: Reply) -> int:
    """The status; of a batch, that of its events."""
    if cell.route.pattern.endswith("/batch") and reply.status == 200 and reply.data:
        return max(int(item["status"]) for item in reply.data)
    return reply.status


def _changes(route: Route) -> bool:
    return not route.is_public and bool(route.parameters)
