"""REST framework, and the API's description."""

from typing import Any

from compliance.settings.service import BASE_URL, SERVICE_TITLE

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["tenancy.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["compliance.api.rest.requests.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["compliance.api.rest.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["compliance.api.rest.renderers.FastJSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "compliance.api.rest.renderers.AlwaysFirstRenderer",
    "DEFAULT_SCHEMA_CLASS": "compliance.api.rest.schema.ServiceAutoSchema",
    "EXCEPTION_HANDLER": "compliance.api.exceptions.handle",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": SERVICE_TITLE,
    "DESCRIPTION": (
        "Registers AI agents, certifies them, scores what they do, and proves it to anyone. "
        "Under `/v1` a query parameter that the operation does not name is a 400, but for OCSP; of one "
        "that is repeated the last counts. Strings hold no NUL and no lone surrogates. Any request may "
        "be answered 408, 414, 417 or 431 before an operation sees it."
    ),
    "VERSION": "1.0.0",  # of the API, as its specification has it; releases stand in CHANGELOG.md
    "SCHEMA_PATH_PREFIX": "/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # The documentation begins with these.
    "TAGS": [{"name": name} for name in ("Agents", "Certificates", "Events")],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,  # generators of clients can't write a null enum
    "ENUM_NAME_OVERRIDES": {
        "AccessReviewDecisionEnum": "delegation.reviews.models.AccessReviewDecision",
        "AccessReviewStateEnum": "delegation.reviews.models.AccessReviewState",
        "AgentStatusEnum": "agents.models.AgentStatus",
        "ApprovalStatusEnum": "gateway.approvals.models.ApprovalStatus",
        "AuthorityStateEnum": "certificates.models.AuthorityState",
        "CertificateStatusEnum": "certificates.models.CertificateStatus",
        "ChainActorTypeEnum": "delegation.serializers.ACTOR_TYPES",
        "ClockStateEnum": "incidents.duties.clocks.ClockState",
        "GatewayCredentialEnum": "gateway.models.GatewayCredential",
        "RenewalOutcomeEnum": "agents.models.RenewalOutcome",
        "RiskBandEnum": "events.models.RiskBand",
        "IncidentSeverityEnum": "incidents.vocabulary.IncidentSeverity",
        "IncidentStateEnum": "incidents.vocabulary.IncidentState",
        "EnforcementEnum": "tenancy.models.Enforcement",
        "ReportStatusEnum": "reports.vocabulary.ReportStatus",
        "StopStateEnum": "delegation.stops.models.StopState",
        "StreamStatusEnum": "signals.vocabulary.StreamStatus",
        "WebhookFormatEnum": "webhooks.models.Format",
        "TrueEnum": [(True, True)],
        "ReportTypeEnum": "reports.vocabulary.ReportType",
    },
    "SERVERS": [{"url": BASE_URL}],
}
