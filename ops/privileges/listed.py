"""The one list of privileges on tables, columns and functions; every `migrate` applies it.

A test demands a line for each table: one without a line is open to its owner only. TRUNCATE, REFERENCES and
TRIGGER are granted to no role, and an identity column needs no privilege on its sequence.
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
    """The privileges of the roles on a table; the reader cannot see `secret` columns.

    The auditor may read what the console's pages of the audit log show, salts included: exports open leaves.
    """

    service: frozenset[str]
    reader: frozenset[str] = READ
    secret: frozenset[str] = frozenset()
    auditor: frozenset[str] = NOTHING

    def __post_init__(self) -> None:
        if self.secret and self.reader != READ:
            raise ValueError("the reader of a table with secret columns reads the others: give no `reader`")


def _all(access: Access, *names: str) -> dict[str, Access]:
    return dict.fromkeys(names, access)


TABLES: Final[Mapping[str, Access]] = {
    # Without a row: on Citus an UPDATE that finds none has a commit take two phases.
    "tenancy_commitmark": Access(READ | {"UPDATE"}),
    "auditlog_auditentry": Access(APPEND, auditor=READ),
    **_all(Access(APPEND), "events_behaviorevent", "events_eventreview"),
    **_all(Access(APPEND), "incidents_timelineentry", "incidents_notificationdraft"),
    "incidents_incident": Access(CHANGE),
    "incidents_touchedagent": Access(APPEND | {"UPDATE (is_current)", "UPDATE (case_number)"}),
    "incidents_touchedcertificate": Access(APPEND),
    # The tree grows by `auditlog_seal`. Salts open the commitments to what is erased from the tables.
    **_all(Access(READ, auditor=READ), "auditlog_pendingentry", "auditlog_tile", "auditlog_treehead"),
    "auditlog_witnessstate": Access(CHANGE, auditor=READ),
    "auditlog_leaf": Access(READ, secret=frozenset({"salts"}), auditor=READ),
    "auditlog_signedhead": Access(APPEND | {"UPDATE (note)", "UPDATE (has_quorum)"}, auditor=READ),
    **_all(Access(APPEND), "django_admin_log", "webhooks_message"),
    "auditlog_logkey": Access(APPEND | {"UPDATE (retired_at)", "UPDATE (destroyed_at)"}, auditor=READ),
    # Rows that fit no partition; `events_partition_make` moves them.
    "events_behaviorevent_default": Access(READ, NOTHING),
    # Written by migrations.
    **_all(Access(READ), "django_migrations", "django_content_type", "auth_permission"),
    # People and sessions.
    "auth_user": Access(CHANGE, secret=frozenset({"password"})),
    # The database makes a person with the user. Groups and permissions of Django give no rights.
    **_all(Access(READ), "people_person", "auth_group", "auth_group_permissions"),
    **_all(Access(READ), "auth_user_groups", "auth_user_user_permissions"),
    "people_onetimelink": Access(CHANGE_AND_REMOVE, secret=frozenset({"digest"})),
    "mfa_authenticator": Access(CHANGE_AND_REMOVE, secret=frozenset({"data"})),
    # Attempts counted, codes used, keys of sessions.
    **_all(Access(CHANGE_AND_REMOVE, NOTHING), "people_cache", "usersessions_usersession", "django_session"),
    # django-allauth looks for addresses; there are none.
    **_all(Access(READ), "account_emailaddress", "account_emailconfirmation"),
    "people_externalidentity": Access(ADD_AND_REMOVE),
    "tenancy_tenant": Access(
        APPEND | {f"UPDATE ({name})" for name in ("enforcement", "alarm_budget", "owner_required")},
        auditor=READ,
    ),
    "tenancy_apikey": Access(CHANGE, secret=frozenset({"digest"})),
    # An answer stored for a retry may hold a secret that is shown once.
    "api_idempotencyrecord": Access(CHANGE_AND_REMOVE, NOTHING),
    "agents_ownermail": Access(ADD_AND_REMOVE | {"UPDATE (next_attempt_at)"}, secret=frozenset({"sealed"})),
    "agents_blueprintrenewal": Access(APPEND | {"UPDATE (worked_at)", "UPDATE (ended_at)"}),
    "agents_renewedagent": Access(APPEND | {"UPDATE (outcome)", "UPDATE (error)"}),
    "agents_blueprint": Access(CHANGE),
    **_all(Access(CHANGE), "agents_agent", "delegation_tokenkey", "reports_reportschedule"),
    **_all(Access(CHANGE), "certificates_certificate", "certificates_certificateauthority"),
    **_all(Access(CHANGE), "certificates_issuance", "certificates_signedcard", "webhooks_delivery"),
    **_all(Access(CHANGE), "events_riskwatermark", "events_scorerprogress", "events_simulation"),
    "streaming_streamposition": Access(CHANGE),
    **_all(Access(CHANGE), "events_tenantbaseline", "events_tenantmarks"),
    **_all(Access(CHANGE_AND_REMOVE), "tenancy_membership", "certificates_revocationlist", "reports_report"),
    **_all(Access(CHANGE_AND_REMOVE), "events_riskday", "events_scorersnapshot"),
    **_all(Access(ADD_AND_REMOVE), "certificates_ocspresponder", "certificates_revocationlistpart"),
    **_all(Access(ADD_AND_REMOVE), "events_markedplace", "inbox_openevent", "otlp_countedspan"),
    **_all(Access(CHANGE_AND_REMOVE), "gateway_askpolicy", "otlp_tracedname"),
    **_all(Access(CHANGE_AND_REMOVE), "gateway_gatewayroute", "gateway_gatewayviolation"),
    "approvals_approval": Access(
        ADD_AND_REMOVE
        | {f"UPDATE ({name})" for name in ("status", "decided_at", "decided_by", "decided_by_kind", "note")}
        | {f"UPDATE ({name})" for name in ("used_at", "jti", "receipt")},
        secret=frozenset({"receipt", "owner_digest"}),
    ),
    "stops_kindstop": Access(
        APPEND
        | {f"UPDATE ({name})" for name in ("state", "stopped", "skipped", "failed", "released", "ended_at")}
        | {f"UPDATE ({name})" for name in ("root", "receipt", "release_reason", "released_by")}
        | {f"UPDATE ({name})" for name in ("released_by_kind", "released_at", "worked_at")}
    ),
    "stops_stoppedagent": Access(
        APPEND
        | {f"UPDATE ({name})" for name in ("outcome", "serial_number", "decided_at", "suspended")}
        | {"UPDATE (told)", "UPDATE (release)"}
    ),
    "reviews_accessreview": Access(
        APPEND
        | {f"UPDATE ({name})" for name in ("match", "reviewer", "state", "next_at", "overdue_at")}
        | {f"UPDATE ({name})" for name in ("ended_at", "root", "record")}
    ),
    "reviews_accessreviewitem": Access(
        APPEND
        | {f"UPDATE ({name})" for name in ("decision", "removed", "note", "seen", "problem", "applied_at")}
        | {f"UPDATE ({name})" for name in ("decided_by", "decided_by_kind", "decided_at", "next_try_at")}
    ),
    "inbox_inboxcomment": Access(APPEND),
    "inbox_agentqueue": Access(CHANGE),
    **_all(Access(CHANGE_AND_REMOVE), "inbox_dayfigures", "figures_actionday"),
    "delegation_issuedtoken": Access(
        ADD_AND_REMOVE | {"UPDATE (revoked_at)", "UPDATE (revoked_by)", "UPDATE (revocation_reason)"}
    ),
    "delegation_issuedcredential": Access(ADD_AND_REMOVE),
    "issuers_trustedissuer": Access(CHANGE_AND_REMOVE),
    "agent_keys_agentkey": Access(APPEND | {"UPDATE (revoked_at)"}),
    "certificates_endedhold": Access(APPEND | {"UPDATE (end_crl_number)"}),
    "certificates_pooledkey": Access(ADD_AND_REMOVE | {"UPDATE (created_at)"}),
    "certificates_wrappingkey": Access(APPEND | {"UPDATE (retired_at)", "UPDATE (destroyed_at)"}),
    "certificates_wrappedagentkey": Access(
        ADD_AND_REMOVE | {"UPDATE (blob)", "UPDATE (wrapping_key_id)"}, secret=frozenset({"blob"})
    ),
    "events_pendingreview": Access(ADD_AND_REMOVE | {"UPDATE (created_at)"}),
    # A URL may carry a token of the receiver's.
    "webhooks_webhook": Access(CHANGE, secret=frozenset({"url", "secret", "previous_secret"})),
    "signals_stream": Access(CHANGE_AND_REMOVE, secret=frozenset({"endpoint_url", "authorization"})),
    # Tokens are the tenant's; they say nothing that the audit log does not.
    "signals_signal": Access(CHANGE_AND_REMOVE, secret=frozenset({"token"})),
    "signals_feedposition": Access(CHANGE),
    "webhooks_attempt": Access(CHANGE, secret=frozenset({"url"})),
    "wiring_schedulerlease": Access(CHANGE),
}

PARTITIONED: Final = "events_behaviorevent"
"""Its partitions are reached through it: they need no line, and no role has a privilege on one."""

FUNCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "events_partition_make(timestamp with time zone,timestamp with time zone)": frozenset({"EXECUTE"}),
    "events_partition_begin(timestamp with time zone,timestamp with time zone)": frozenset({"EXECUTE"}),
    "events_partition_attach(timestamp with time zone,timestamp with time zone)": frozenset({"EXECUTE"}),
    "events_partition_drop(text,text)": frozenset({"EXECUTE"}),
    "events_partition_name(timestamp with time zone,timestamp with time zone)": NOTHING,
    "events_first_id(timestamp with time zone)": NOTHING,
    "auditlog_seal(bigint,bigint[],uuid[],bytea[],smallint[],bigint[],bytea[],bytea)": frozenset({"EXECUTE"}),
    "auditlog_record(jsonb)": NOTHING,
    "auditlog_erase(uuid,text[],bytea,jsonb)": frozenset({"EXECUTE"}),
    "auditlog_drop(timestamp with time zone,bigint,jsonb)": frozenset({"EXECUTE"}),
    "delegation_next_status_index()": frozenset({"EXECUTE"}),
    "delegation_next_status_list()": frozenset({"EXECUTE"}),
    # PostgreSQL runs a trigger's function without a privilege on it.
    "auditlog_refuse_change()": NOTHING,
    "auditlog_only_grows()": NOTHING,
    "auditlog_states_tree()": NOTHING,
    "auditlog_enqueue()": NOTHING,
    "people_identify()": NOTHING,
    "people_refuse_change()": NOTHING,
    "events_refuse_change()": NOTHING,
    "incidents_refuse_change()": NOTHING,
    "certificates_list_number_rises()": NOTHING,
    "certificates_crl_number_rises()": NOTHING,
}
"""The privileges of the service; reader and auditor may execute none."""
