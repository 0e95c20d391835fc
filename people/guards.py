"""Check the triggers that give every user an identity and keep both from deletion."""

from typing import Final

TRIGGERS: Final = {
    "people_identify ON auth_user",
    *(
        f"people_{what} ON {table}"
        for table in ("auth_user", "people_person")
        for what in ("no_change", "no_truncate")
    ),
}
"""In the live database alone, where users exist."""
REMEDY: Final = (
    "find out who did it; then, as the owner: ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in migration people.0001; give users made meanwhile their identity"
)
