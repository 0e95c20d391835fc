"""The one list of where each table lies on Citus; `manage.py distribute` applies it.

A test demands a line for each table with a tenant.
"""

from collections.abc import Mapping, Sequence
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

LOCAL: Final[Mapping[str, Sequence[str]]] = {
    "the log has one tree, which one sealer extends": ("auditlog_auditentry",),
    "people and sessions have no tenant": ("tenancy_membership",),
    "the task sends messages of all tenants": ("agents_ownermail",),
    "the sender claims deliveries of all tenants in one statement": (
        *("webhooks_attempt", "webhooks_delivery", "webhooks_message", "webhooks_webhook"),
    ),
    "the signal sender claims streams of all tenants": ("signals_stream",),
    "few rows, written by people": (
        *("agents_blueprint", "gateway_askpolicy", "gateway_gatewayroute", "incidents_incident"),
        *("issuers_trustedissuer", "otlp_tracedname", "reports_report", "reports_reportschedule"),
    ),
    "a few rows for each tenant, written by one task": ("events_simulation", "inbox_dayfigures"),
    "an intent is inserted by the statement that takes its key from the pool": ("certificates_issuance",),
    "looked up by a digest before the tenant is known": ("agent_keys_agentkey", "tenancy_apikey"),
    "rows of a day; claimed in the transaction of the request, whatever it writes": (
        "api_idempotencyrecord",
    ),
    "a job's rows are worked on in portions": (
        *("stops_kindstop", "stops_stoppedagent", "agents_blueprintrenewal", "agents_renewedagent"),
    ),
    "the sweep goes on with those of all tenants": (
        *("approvals_approval", "reviews_accessreview", "reviews_accessreviewitem"),
    ),
}
"""Tables with a tenant that stay on the coordinator, by the reason, as all tables without a tenant do."""
