"""Whether ENCRYPTION_KEYS open what is stored encrypted."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Model

from compliance.api.models import IdempotencyRecord
from compliance.core.encryption import Undecryptable, decrypt
from compliance.people.models import Authenticator
from compliance.signals.models import Stream
from webhooks.models import Webhook

ENCRYPTED: Final[tuple[tuple[type[Model], str], ...]] = (
    (Webhook, "secret"),
    (Webhook, "previous_secret"),
    (Stream, "authorization"),
    (Authenticator, "secret"),
    (IdempotencyRecord, "body"),
)
"""Every model and field that holds what `encrypt` returned."""
MOST: Final = 1_000
"""Values of each field that are opened."""


@dataclass
class Opened:
    """How many values were opened, and how many could not be, by table and field."""

    count: int
    closed: dict[str, int]

    def problem(self) -> str:
        """Return what cannot be opened; empty if everything can."""
        return "; ".join(f"{count} of {name}" for name, count in self.closed.items() if count)


def open_stored() -> Opened:
    """Decrypt stored values of the current environment and forget them."""
    opened = Opened(0, {})
    for model, name in ENCRYPTED:
        filled = model._default_manager.exclude(**{f"{name}__isnull": True}).exclude(**{name: b""})
        closed = 0
        for value in filled.order_by("-pk").values_list(name, flat=True)[:MOST]:
            try:
                decrypt(bytes(value))
                opened.count += 1
            except Undecryptable:
                closed += 1
        opened.closed[f"{model._meta.db_table}.{name}"] = closed
    return opened
