"""Who may do what with which table, column and function: the one list, which every `migrate` brings about.

A table that is not on it is nobody's but its owner's; a test demands a line for each. Nobody gets TRUNCATE,
REFERENCES or TRIGGER, and sequences need no line: identity columns draw from theirs without a privilege.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

READ: Final = frozenset({"SELECT"})
APPEND: Final = READ | {"INSERT"}
CHANGE: Final = APPEND | {"UPDATE"}
ADD_AND_REMOVE: Final = APPEND | {"DELETE"}
CHANGE_AND_REMOVE: Final = CHANGE | {"DELETE"}
NOTHING: Final = frozenset[str]()


@dataclass(frozen=True)
class Access:
    """What the service and the reader may do with one table; columns in `secret` are not the reader's."""

    service: frozenset[str]
    reader: frozenset[str] = READ
    secret: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.secret and self.reader != READ:
            raise ValueError("where columns are secret, the reader reads the others: leave `reader` as it is")


TABLES: Final[Mapping[str, Access]] = {
    # Append-only: what is written stays as it is.
    "auditlog_auditentry": Access(APPEND),
    "events_behaviorevent": Access(APPEND),
    "events_eventreview": Access(APPEND),
    "django_admin_log": Access(APPEND),
    # The last net; its rows move by `events_partition_make`.
    "events_behaviorevent_default": Access(READ, NOTHING),
    # Written by migrations.
    "django_migrations": Access(READ),
    "django_content_type": Access(READ),
    "auth_permission": Access(READ),
    # People and sessions.
    "auth_user": Access(CHANGE, secret=frozenset({"password"})),
    "auth_group": Access(CHANGE),
    "auth_group_permissions": Access(ADD_AND_REMOVE),
    "auth_user_groups": Access(ADD_AND_REMOVE),
    "auth_user_user_permissions": Access(ADD_AND_REMOVE),
    "django_session": Access(CHANGE_AND_REMOVE, NOTHING),
    "tenancy_membership": Access(CHANGE_AND_REMOVE),
    # Locking a row (`FOR UPDATE`) takes the right to update a column, though no tenant is changed.
    "tenancy_tenant": Access(APPEND | {"UPDATE (name)"}),
    "tenancy_apikey": Access(CHANGE, secret=frozenset({"digest"})),
    # Answers kept for a retry may hold a secret that is shown once.
    "api_idempotencyrecord": Access(CHANGE_AND_REMOVE, NOTHING),
    "agents_agent": Access(CHANGE),
    "certificates_certificate": Access(CHANGE),
    "certificates_certificateauthority": Access(CHANGE),
    "certificates_endedhold": Access(APPEND | {"UPDATE (end_crl_number)"}),
    "certificates_issuance": Access(CHANGE),
    "certificates_ocspresponder": Access(ADD_AND_REMOVE),
    "certificates_pooledkey": Access(ADD_AND_REMOVE | {"UPDATE (created_at)"}),
    "certificates_revocationlist": Access(CHANGE_AND_REMOVE),
    "certificates_revocationlistpart": Access(ADD_AND_REMOVE),
    "delegation_tokenkey": Access(CHANGE),
    "events_markedplace": Access(ADD_AND_REMOVE),
    "events_pendingreview": Access(ADD_AND_REMOVE | {"UPDATE (created_at)"}),
    "events_riskday": Access(CHANGE_AND_REMOVE),
    "events_riskwatermark": Access(CHANGE),
    "events_scorerprogress": Access(CHANGE),
    "events_scorersnapshot": Access(CHANGE_AND_REMOVE),
    "events_tenantbaseline": Access(CHANGE),
    "events_tenantmarks": Access(CHANGE),
    "reports_report": Access(CHANGE),
    # Addresses may carry a token of the receiver's.
    "webhooks_webhook": Access(CHANGE, secret=frozenset({"url", "secret", "previous_secret"})),
    "webhooks_message": Access(APPEND),
    "webhooks_delivery": Access(CHANGE),
    "webhooks_attempt": Access(CHANGE, secret=frozenset({"url"})),
}

PARTITIONED: Final = "events_behaviorevent"
"""Its partitions are reached through it: they need no line, and nobody gets a privilege on one."""

FUNCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "events_partition_make(timestamp with time zone,timestamp with time zone)": frozenset({"EXECUTE"}),
    "events_partition_drop(text)": frozenset({"EXECUTE"}),
    "events_default_forget(timestamp with time zone)": frozenset({"EXECUTE"}),
    "events_first_id(timestamp with time zone)": NOTHING,
    # A trigger's function runs without a privilege on it.
    "auditlog_refuse_change()": NOTHING,
    "events_refuse_change()": NOTHING,
    "certificates_list_number_rises()": NOTHING,
    "certificates_crl_number_rises()": NOTHING,
}
"""What the service may execute; the reader executes none."""
