"""Statements for tenants' rows, sent to the Citus nodes that hold them.

Citus would plan a statement for its shard each time it runs. So statements name the shards' own tables,
which PostgreSQL plans once: a read finds rows only while the shard is at that node, and a write holds Citus's
lock on the shard (`tenancy_hold_shard`), for which a move waits. The coordinator gets what the nodes do not
find, everything inside a transaction or behind a pooler, and everything for a node that cannot be reached.
Each thread keeps a connection to each node.
"""

import logging
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from django.conf import settings
from django.db import DatabaseError, InternalError, OperationalError, ProgrammingError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.stores import sql

log = logging.getLogger(__name__)

KNOWN_SECONDS: Final = 30.0
"""How long the map of shards is used; statements for one that moved meanwhile go through the coordinator."""
AVOIDED_SECONDS: Final = 10.0
"""How long a node that could not be reached is left alone."""
KEPT_TENANTS: Final = 20_000
KEPT_STATEMENTS: Final = 1_000
"""Prepared on a connection to a node; each shard has up to five."""

# Distributed tables are co-located: the agents' table stands for all.
_SHARD_OF: Final = """
SELECT given::text, get_shard_id_for_distribution_column('agents_agent', given) FROM unnest(%s::uuid[]) given
"""
_SHARDS: Final = """
SELECT shardid, shardminvalue, nodename, nodeport
FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
WHERE logicalrelid = 'agents_agent'::regclass AND groupid <> 0 AND noderole = 'primary'
"""
_COLOCATED: Final = """
SELECT logicalrelid::regclass::text, shardminvalue, shardid FROM pg_dist_shard
WHERE logicalrelid = ANY(%s::regclass[])
"""
_IS_HERE: Final = (
    " AND EXISTS (SELECT FROM pg_dist_placement JOIN pg_dist_local_group USING (groupid)"
    " WHERE shardid = {0.id})"
)
# Evaluated once for a statement: an error unless the shard is here; it stays until the transaction ends.
_HOLD: Final = " WHERE (SELECT tenancy_hold_shard({0.id}))"

Row = TypeVar("Row")
Found = TypeVar("Found")
Statement = tuple[str, Any]
"""The text of a statement, and its parameters."""
_MOVED: Final = InternalError, ProgrammingError
"""Errors of a node that no longer has a shard: of `tenancy_hold_shard`, or since the table is gone."""


class Node(NamedTuple):
    """A node's address as the nodes know each other."""

    host: str
    port: int


class Shard(NamedTuple):
    """A range of tenants at one node: the id of its agents' shard, and the first hash of the range."""

    id: int
    first_hash: str
    node: Node


class TenantQuery:
    """A query by ids and tenants.

    `text` is what precedes WHERE, and selects the row's id, as text, first. `ids` and `tenants` are the
    columns compared; `tables` are all the tables named.
    """

    def __init__(self, text: str, *, ids: str, tenants: str, tables: Sequence[str]) -> None:
        self._tables = tables
        self._text = f"{text} WHERE {ids} = ANY(%s::uuid[]) AND {tenants}"

    @property
    def routed(self) -> str:
        """The text for one tenant."""
        return f"{self._text} = %s::uuid"

    def at(self, shard: Shard) -> str:
        """Return the text for tenants of a shard; it finds nothing once the shard is elsewhere."""
        return f"{_map().at(shard, self._text, self._tables)} = ANY(%s::uuid[]){_IS_HERE.format(shard)}"


class _Map:
    """Where the shards of one environment are, and which of them each tenant has."""

    def __init__(self) -> None:
        self._numbers: BoundedCache[str, int] = BoundedCache(KEPT_TENANTS)
        self._shards: dict[int, Shard] = {}
        self._texts: dict[tuple[Shard, str], str] = {}
        self._read_at = -KNOWN_SECONDS

    def shards(self, tenant_ids: Collection[str]) -> dict[str, Shard | None]:
        """Return each tenant's shard; None for one that is with the coordinator."""
        if time.monotonic() - self._read_at >= KNOWN_SECONDS:
            rows = sql.query(_SHARDS)
            shards = [Shard(one, first_hash, Node(host, port)) for one, first_hash, host, port in rows]
            self._shards = {shard.id: shard for shard in shards}
            self._read_at = time.monotonic()
        # A tenant that was given a shard of its own has one with another number.
        unknown = [one for one in tenant_ids if self._numbers.get(one) not in self._shards]
        if unknown:
            self._numbers.put_all(dict(sql.query(_SHARD_OF, [sql.array(unknown)])))
        return {one: self._shards.get(self._numbers.get(one) or 0) for one in tenant_ids}

    def at(self, shard: Shard, text: str, tables: Sequence[str]) -> str:
        """Return the text with the shard's tables in place of those named. Raises: ProgrammingError."""
        key = shard, text
        if key not in self._texts:
            rows = sql.query(_COLOCATED, [list(tables)])
            beside = {table: one for table, first_hash, one in rows if first_hash == shard.first_hash}
            if len(beside) < len(tables):
                raise ProgrammingError(f"no shards of all tables beside {shard.id}")
            named = re.compile(rf"\b({'|'.join(map(re.escape, tables))})\b")
            self._texts[key] = named.sub(lambda match: f"{match[1]}_{beside[match[1]]}", text)
        return self._texts[key]

    def forget(self) -> None:
        """Have it read again where shards are."""
        self._read_at = -KNOWN_SECONDS
        self._texts = {}


class _Connections(dict[tuple[str, Node], BaseDatabaseWrapper]):
    """Those of one thread to the nodes, which are closed when it ends."""

    def __del__(self) -> None:
        for one in self.values():
            # Django's own `close()` is for the thread that opened it.
            if one.connection is not None:
                one.connection.close()


_maps: Final[defaultdict[str, _Map]] = defaultdict(_Map)
_avoided: Final[dict[Node, float]] = {}
_own: Final = threading.local()


def divided(tenant_ids: Collection[str]) -> list[list[str]]:
    """Divide the tenants into groups, each of which one transaction at one node can write.

    Without DATABASE_CITUS, and inside a transaction, all tenants are one group.
    """
    if not settings.DATABASE_CITUS or _asks_only_coordinator():
        return [list(tenant_ids)]
    found: defaultdict[Node | None, list[str]] = defaultdict(list)
    for tenant_id, shard in _reached(tenant_ids).items():
        found[shard.node if shard else None].append(tenant_id)
    return [*found.values()]


def read(query: TenantQuery, wanted: Mapping[str, Collection[str]], *, first: Sequence[Any]) -> list[Any]:
    """Return the rows of the `wanted` ids, given by tenant, in no order.

    `first`: the parameters before the ids. Raises: Django's errors, of the coordinator.
    """
    by_shard: defaultdict[Shard, list[str]] = defaultdict(list)
    for tenant_id, shard in _reached(wanted).items():
        if shard is not None:
            by_shard[shard].append(tenant_id)
    rows: list[Any] = []
    if by_shard:
        try:
            rows = _read_shards(query, wanted, first, by_shard)
        except DatabaseError as error:
            log.info("shards not read, asking the coordinator: %s", sql.error_name(error))
            _map().forget()
    found = {row[0] for row in rows}
    for tenant_id, ids in wanted.items():
        if missing := [one for one in ids if one not in found]:
            params = [*first, sql.array(missing), tenant_id]
            late = _routed(partial(sql.read_again, partial(sql.prepared, query.routed, params)))
            if late and by_shard:
                _map().forget()
            rows += late
    return rows


def write(
    rows: Mapping[str, Sequence[Row]],
    statement: Callable[[Sequence[Row]], Statement],
    *,
    tables: Sequence[str],
    routed: Callable[[], Sequence[Statement]],
) -> None:
    """Write the rows of one group of `divided()`, given by tenant: all of them, or none.

    `statement` makes the statement for rows of one shard: its text names no tables but `tables`, and WHERE
    may be appended to it. `routed` makes the coordinator's statements for all rows. Raises: Django's errors.
    """
    try:
        if _write_shards(rows, statement, tables):
            return
    except _MOVED as error:
        log.warning("shards not written, asking the coordinator: %s", sql.error_name(error))
        _map().forget()
    _routed(lambda: _send(sql.connected(), routed()))


def _write_shards(
    rows: Mapping[str, Sequence[Row]],
    statement: Callable[[Sequence[Row]], Statement],
    tables: Sequence[str],
) -> bool:
    """Write at the one node that has all shards, and commit; return False if there is none."""
    by_shard: defaultdict[Shard, list[Row]] = defaultdict(list)
    for tenant_id, shard in _reached(rows).items():
        if shard is None:
            return False
        by_shard[shard] += rows[tenant_id]
    node, *others = {shard.node for shard in by_shard}
    if others:
        return False
    statements: list[Statement] = []
    # In one order everywhere, as Citus takes its locks.
    for shard, own in sorted(by_shard.items(), key=itemgetter(0)):
        text, params = statement(own)
        statements.append((_map().at(shard, text, tables) + _HOLD.format(shard), params))
    _send(_connection(node), statements)
    return True


def _send(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> None:
    """Run the statements together; outside a transaction they commit together, too."""
    with ExitStack() as stack:
        if len(statements) == 1:
            stack.enter_context(connection.wrap_database_errors)
        else:
            stack.enter_context(_pipeline(connection))
            if not environments.in_transaction():
                stack.enter_context(connection.connection.transaction())
        for text, params in statements:
            sql.send(psycopg.Cursor(connection.connection), text, params)


def _routed(ask: Callable[[], Found]) -> Found:
    """Ask the coordinator; ask again if it had planned for a shard that has just moved."""
    try:
        return ask()
    except InternalError:
        if environments.in_transaction():
            raise
        return ask()


def _read_shards(
    query: TenantQuery,
    wanted: Mapping[str, Collection[str]],
    first: Sequence[Any],
    by_shard: Mapping[Shard, Sequence[str]],
) -> list[Any]:
    """Ask all nodes at the same time, each for its shards."""
    asked: list[tuple[Node, str, list[Any]]] = []
    for shard, tenant_ids in by_shard.items():
        ids = [one for tenant_id in tenant_ids for one in wanted[tenant_id]]
        asked.append((shard.node, query.at(shard), [*first, sql.array(ids), sql.array(tenant_ids)]))
    used = {node: _connection(node) for node, _, _ in asked}
    with ExitStack() as stack:
        for connection in used.values():
            # One answer needs no pipeline, which costs a message more.
            stack.enter_context(connection.wrap_database_errors if len(asked) == 1 else _pipeline(connection))
        cursors = [
            sql.send(psycopg.Cursor(used[node].connection), text, params) for node, text, params in asked
        ]
        return [row for cursor in cursors for row in cursor.fetchall()]


@contextmanager
def _pipeline(connection: BaseDatabaseWrapper) -> Iterator[None]:
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def _map() -> _Map:
    return _maps[environments.alias()]


def _asks_only_coordinator() -> bool:
    """Whether nodes may not be asked."""
    return environments.in_transaction() or environments.alias() in settings.DATABASES_DIRECT


def _reached(tenant_ids: Collection[str]) -> dict[str, Shard | None]:
    """Return each tenant's shard; None where the coordinator is to be asked."""
    if _asks_only_coordinator():
        return dict.fromkeys(tenant_ids)
    found = _map().shards(tenant_ids)
    nodes = {shard.node for shard in found.values() if shard is not None}
    away = {node for node in nodes if not _connects_to(node)}
    return {one: None if shard is None or shard.node in away else shard for one, shard in found.items()}


def _connects_to(node: Node) -> bool:
    """Open this thread's connection unless that failed a moment ago; return whether it is open."""
    if _avoided.get(node, 0.0) > time.monotonic():
        return False
    connection = _connection(node)
    try:
        connection.close_if_unusable_or_obsolete()
        connection.close_if_health_check_failed()
        connection.ensure_connection()
        connection.connection.prepared_max = KEPT_STATEMENTS
    except OperationalError as error:
        log.warning("node %s:%d not reached, asking the coordinator: %s", *node, type(error).__name__)
        _avoided[node] = time.monotonic() + AVOIDED_SECONDS
        return False
    return True


def _connection(node: Node) -> BaseDatabaseWrapper:
    """Return this thread's connection to the node."""
    kept: _Connections = _own.__dict__.setdefault("connections", _Connections())
    key = environments.alias(), node
    if key not in kept:
        made = connections.create_connection(environments.alias())
        options = dict(made.settings_dict["OPTIONS"])
        # The coordinator's are planned for their values; shards' are plain tables.
        options["options"] = f"{options.get('options', '')} -c plan_cache_mode=force_generic_plan"
        own = {"HOST": node.host, "PORT": str(node.port), "OPTIONS": options}
        made.settings_dict = {**made.settings_dict, **own}
        kept[key] = made
    return kept[key]
