"""The triggers that guard tables, as they stand in the current environment's database."""

from collections.abc import Iterable

from compliance.stores import sql

_IN_FORCE = (
    "SELECT found FROM (SELECT tgname || ' ON ' || tgrelid::regclass AS found FROM pg_trigger"
    " WHERE tgenabled IN ('O', 'A')) enabled WHERE found = ANY(%s)"
)


def not_in_force(wanted: Iterable[str]) -> set[str]:
    """Return those of `wanted`, each `trigger ON table`, that are missing or disabled (`tgenabled`)."""
    names = set(wanted)
    return names - {name for (name,) in sql.query(_IN_FORCE, [list(names)])}
