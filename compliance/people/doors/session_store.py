"""Sessions in the live database, each with the person it belongs to; Django's engine otherwise."""

import re
from typing import Any, Final

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from compliance.core.identifiers import new_id
from compliance.people.doors.sessions import FACTS
from compliance.people.models import ConsoleSession

_KEY: Final = re.compile("[a-z0-9]{32}")


class SessionStore(DatabaseStore):
    """Copies the facts of the sign-in from the session's data into columns."""

    @classmethod
    def get_model_class(cls) -> type[ConsoleSession]:
        return ConsoleSession

    def create_model_instance(self, data: dict[str, Any]) -> ConsoleSession:
        row: Any = super().create_model_instance(data)
        for name, value in data.get(FACTS, {}).items():
            setattr(row, name, value)
        found: ConsoleSession = row
        return found

    def cycle_key(self) -> None:
        """Give the session a new id with its new key: until Django deletes the old row there are two."""
        facts = self.get(FACTS)
        if facts is not None:
            self[FACTS] = {**facts, "id": str(new_id())}
        super().cycle_key()

    def _validate_session_key(self, key: str | None) -> bool:
        """Take a key for none if Django did not make it; PostgreSQL fails on one with NUL."""
        return bool(key and _KEY.fullmatch(key))
