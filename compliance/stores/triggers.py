"""The triggers that guard tables, as they stand in the current environment's database."""

from collections.abc import Iterable
from typing import Final

from django.db import OperationalError

from compliance.stores import sql

_IN_FORCE: Final = (
    "SELECT found FROM (SELECT tgname || ' ON ' || tgrelid::regclass AS found FROM pg_trigger"
    " WHERE tgenabled IN ('O', 'A')) enabled WHERE found = ANY(%s)"
)


_ON_SHARDS: Final = """
SELECT shardid, success, result FROM run_command_on_shards(%s, $$
    SELECT coalesce(string_agg(regexp_replace(tgname, '_[0-9]+$', ''), ' '), '')
    FROM pg_trigger WHERE tgenabled IN ('O', 'A') AND tgrelid = '%%s'::regclass
$$)
"""


def not_in_force_on_shards(table: str, wanted: Iterable[str]) -> set[str]:
    """Return those triggers, `trigger ON shard`, that a shard on Citus lacks or that are disabled there.

    Raises: OperationalError if a shard's node does not answer.
    """
    names, missing = set(wanted), set[str]()
    for shard, is_answer, found in sql.query(_ON_SHARDS, [table]):
        if not is_answer:
            raise OperationalError(f"{table}_{shard} does not answer: {found}")
        missing |= {f"{name} ON {table}_{shard}" for name in names - set(found.split())}
    return missing


def not_in_force(wanted: Iterable[str]) -> set[str]:
    """Return those of `wanted`, each `trigger ON table`, that are missing or disabled (`tgenabled`)."""
    names = set(wanted)
    return names - {name for (name,) in sql.query(_IN_FORCE, [list(names)])}
