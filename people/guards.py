"""Check the triggers that give every user an identity and keep both from deletion."""

from typing import Final

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql

TRIGGERS: Final = {
    "people_identify ON auth_user",
    *(
        f"people_{what} ON {table}"
        for table in ("auth_user", "people_person")
        for what in ("no_change", "no_truncate")
    ),
}
REMEDY: Final = (
    "find out who did it; then, as the owner: ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in migration people.0001; give users made meanwhile their identity"
)


def not_in_force() -> set[str]:
    """Return those of `TRIGGERS` that are missing or disabled; users exist in the live database alone."""
    with environments.use(Environment.LIVE):
        return sql.triggers_not_in_force(TRIGGERS)
