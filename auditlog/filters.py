"""The filters of the audit log, shared by the list, the export and the command."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import ActorKind, ActorType, AuditAction
from compliance.api.pagination import Cursor, read_choice, read_cursor, read_moment, read_text
from compliance.core.errors import Invalid

ACTION: Final = r"^[a-z_]+(\.[a-z_]*)?$"


@dataclass(frozen=True)
class EntryFilters:
    """Filter of entries; `before` is the cursor of a page, or an exclusive upper bound."""

    event_type: str | None = None
    action: str | None = None
    actor_type: str | None = None
    actor_kind: str | None = None
    actor_id: str | None = None
    affected_id: str | None = None
    after: datetime | None = None
    before: Cursor | None = None

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "EntryFilters":
        """Read query parameters. Raises: Invalid."""
        return cls(
            event_type=read_text(params, "event_type"),
            action=_read_action(params),
            actor_type=read_choice(params, "actor_type", ActorType.values),
            actor_kind=read_choice(params, "actor_kind", ActorKind.values),
            actor_id=read_text(params, "actor_id"),
            affected_id=read_text(params, "affected_id"),
            after=read_moment(params, "after"),
            before=read_cursor(params),
        )

    def applied(self, entries: AuditEntryQuerySet) -> AuditEntryQuerySet:
        """Return those of the entries that meet all filters but `before`."""
        exact = ("event_type", "actor_type", "actor_kind", "actor_id", "affected_id")
        wanted = {name: value for name in exact if (value := getattr(self, name)) is not None}
        if self.after is not None:
            wanted["created_at__gt"] = self.after
        found = entries.filter(**wanted)
        if self.action:
            # A list of actions, which the index by type answers.
            begun = [name for name in AuditAction.values if name.startswith(self.action)]
            found = found.filter(event_type__in=begun or [self.action])
        return found

    def given(self) -> dict[str, Any]:
        found = {name: value for name in NAMES if (value := getattr(self, name)) is not None}
        if self.after is not None:
            found["after"] = self.after.astimezone(UTC).isoformat()
        return found | ({"before": str(self.before)} if self.before else {})


NAMES: Final = tuple(field.name for field in fields(EntryFilters))


def _read_action(params: Mapping[str, str]) -> str | None:
    text = params.get("action")
    if text is not None and (len(text) > 64 or not re.fullmatch(ACTION, text)):
        raise Invalid("action must be the beginning of an event type, for example agent.")
    return text
