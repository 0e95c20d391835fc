"""Django's sessions in the live database, encrypted: one that is under way may hold a new app's secret."""

import re
from typing import Any, Final

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from compliance.core.encryption import Undecryptable, decrypt, encrypt

_KEY: Final = re.compile("[a-z0-9]{32}")


class SessionStore(DatabaseStore):
    def encode(self, session_dict: dict[str, Any]) -> str:
        return encrypt(super().encode(session_dict).encode()).decode()

    def decode(self, session_data: Any) -> dict[str, Any]:
        try:
            return super().decode(decrypt(session_data.encode()).decode())
        except Undecryptable:
            return {}

    def _validate_session_key(self, key: str | None) -> bool:
        """Take a key for none if Django did not make it; PostgreSQL fails on one with NUL."""
        return bool(key and _KEY.fullmatch(key))
