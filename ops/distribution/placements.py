"""The one list of where each table lies on Citus; `manage.py distribute` applies it.

A test demands a line for each table.
"""

from collections.abc import Mapping
from typing import Final

COLUMN: Final = "tenant_id"
"""The column by which tables are distributed; a tenant's rows of all of them lie on one node."""

DISTRIBUTED: Final = (
    "agents_agent",
    "certificates_certificate",
    "delegation_issuedcredential",
    "delegation_issuedtoken",
    "events_behaviorevent",
    "events_eventreview",
    "events_markedplace",
    "events_tenantbaseline",
    "events_tenantmarks",
    "inbox_agentqueue",
    "inbox_inboxcomment",
    "inbox_openevent",
    "otlp_countedspan",
)
"""Tables divided among the workers by `COLUMN`; the first one anchors the others' colocation."""

REFERENCE: Final = (
    "tenancy_tenant",
    "certificates_certificateauthority",
    "certificates_endedhold",
    "events_pendingreview",
)
"""Small tables of which each node has a copy, since distributed tables are joined with them."""

MANAGED: Final = ("tenancy_commitmark",)
"""Tables that stay on the coordinator, where Citus plans statements for them."""

_TREE = "the log has one tree, which one sealer extends"
_PEOPLE = "people and sessions have no tenant"
_DJANGO = "Django's own"
_KEYS = "keys of the environment have no tenant"
_LISTS = "revocation lists are of a CA, with certificates of all tenants"
_QUEUE = "the sender claims deliveries of all tenants in one statement"
_PROGRESS = "how far one task has come over all tenants"
_FEW = "few rows, written by people"


def _all(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


LOCAL: Final[Mapping[str, str]] = {
    **_all(_TREE, "auditlog_auditentry", "auditlog_leaf", "auditlog_pendingentry", "auditlog_tile"),
    **_all(_TREE, "auditlog_treehead", "auditlog_signedhead", "auditlog_witnessstate", "auditlog_logkey"),
    **_all(_TREE, "signals_feedposition"),
    **_all(_PEOPLE, "auth_user", "people_person", "people_onetimelink", "people_externalidentity"),
    **_all(_PEOPLE, "people_cache", "mfa_authenticator", "usersessions_usersession", "tenancy_membership"),
    **_all(_PEOPLE, "account_emailaddress", "account_emailconfirmation"),
    **_all(_DJANGO, "django_migrations", "django_content_type", "django_admin_log", "django_session"),
    **_all(_DJANGO, "auth_permission", "auth_group", "auth_group_permissions"),
    **_all(_DJANGO, "auth_user_groups", "auth_user_user_permissions"),
    **_all(_KEYS, "delegation_tokenkey", "certificates_wrappingkey", "certificates_wrappedagentkey"),
    **_all(_KEYS, "certificates_pooledkey", "certificates_ocspresponder"),
    **_all(_LISTS, "certificates_revocationlist", "certificates_revocationlistpart"),
    **_all(_PROGRESS, "events_riskwatermark", "events_scorerprogress", "wiring_schedulerlease"),
    **_all(_PROGRESS, "streaming_streamposition"),
    "agents_ownermail": "the task sends messages of all tenants",
    **_all(_QUEUE, "webhooks_attempt", "webhooks_delivery", "webhooks_message", "webhooks_webhook"),
    **_all("the signal sender claims streams of all tenants", "signals_stream", "signals_signal"),
    **_all(_FEW, "incidents_incident", "incidents_touchedagent", "incidents_touchedcertificate"),
    **_all(_FEW, "incidents_timelineentry", "incidents_notificationdraft", "reports_report"),
    **_all(_FEW, "reports_reportschedule", "issuers_trustedissuer", "gateway_gatewayroute"),
    **_all(_FEW, "gateway_askpolicy", "agents_blueprint", "otlp_tracedname"),
    **_all("a few rows for each tenant, written by one task", "events_simulation", "inbox_dayfigures"),
    "certificates_issuance": "an intent is inserted by the statement that takes its key from the pool",
    "agent_keys_agentkey": "looked up by its thumbprint before the tenant is known",
    "tenancy_apikey": "looked up by its digest before the tenant is known",
    "api_idempotencyrecord": "rows of a day; claimed in the transaction of the request, whatever it writes",
    **_all("a stop's rows are worked on in portions", "stops_kindstop", "stops_stoppedagent"),
    **_all("as a stop's rows", "agents_blueprintrenewal", "agents_renewedagent"),
    **_all("the sweep goes on with those of all tenants", "reviews_accessreview", "reviews_accessreviewitem"),
    "approvals_approval": "the sweep marks those of all tenants, and people answer few",
    "gateway_gatewayviolation": "named by a digest; a row says only when it was last recorded",
    **_all("has no tenant_id", "certificates_signedcard", "events_riskday", "events_scorersnapshot"),
    "figures_actionday": "has no tenant_id; one task counts for all tenants",
}
"""Tables that stay on the coordinator, each with the reason."""
