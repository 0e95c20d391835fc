"""Sessions in the live database, each with the person it belongs to; Django's engine otherwise."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from compliance.people.doors.sessions import FACTS
from compliance.people.models import ConsoleSession


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
