"""The settings of REST framework and of the schema."""

from typing import Any, Final

REST_FRAMEWORK: Final[dict[str, Any]] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["compliance.tenancy.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["compliance.api.rest.permissions.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["compliance.api.rest.throttling.KeyThrottle"],
    "DEFAULT_PARSER_CLASSES": ["compliance.api.rest.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["compliance.api.rest.renderers.FastJSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "compliance.api.rest.negotiation.AlwaysFirstRenderer",
    "DEFAULT_SCHEMA_CLASS": "compliance.api.rest.schema.ServiceAutoSchema",
    "EXCEPTION_HANDLER": "compliance.api.exceptions.handle",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "DATETIME_FORMAT": "iso-8601",
}


def spectacular_settings(*, title: str, base_url: str) -> dict[str, Any]:
    """Return the settings of the schema of the API named `title` at `base_url`."""
    return {
        "TITLE": title,
        "DESCRIPTION": (
            "Registers AI agents, certifies them, scores what they do, and proves it to anyone. "
            "Unknown query parameters are ignored; of one that is repeated the last counts. Strings "
            "hold no NUL and no lone surrogates. Any request may be answered 408, 414, 417 or 431 "
            "before an operation sees it."
        ),
        "VERSION": "1.0.0",  # of the API, as its specification has it; releases stand in CHANGELOG.md
        "OAS_VERSION": "3.0.3",
        "SERVE_INCLUDE_SCHEMA": False,
        "SERVE_PUBLIC": True,
        "SERVE_AUTHENTICATION": [],
        "SERVE_PERMISSIONS": [],
        "SCHEMA_PATH_PREFIX": "/v1",
        "SWAGGER_UI_DIST": "SIDECAR",
        "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
        # Its links to operations would stand inside the buttons that open them.
        "SWAGGER_UI_SETTINGS": {"deepLinking": False},
        "COMPONENT_SPLIT_REQUEST": True,
        "ENUM_NAME_OVERRIDES": {
            "AgentStatusEnum": "agents.models.AgentStatus",
            "AuthorityStateEnum": "certificates.models.AuthorityState",
            "CertificateStatusEnum": "certificates.models.CertificateStatus",
            "ChainActorTypeEnum": "delegation.serializers.ACTOR_TYPES",
            "ClockStateEnum": "compliance.incidents.duties.clocks.ClockState",
            "GatewayCredentialEnum": "compliance.gateway.models.GatewayCredential",
            "RiskBandEnum": "events.models.RiskBand",
            "IncidentSeverityEnum": "compliance.incidents.vocabulary.IncidentSeverity",
            "IncidentStateEnum": "compliance.incidents.vocabulary.IncidentState",
            "EnforcementEnum": "compliance.tenancy.models.Enforcement",
            "ReportStatusEnum": "compliance.reports.vocabulary.ReportStatus",
            "StreamStatusEnum": "compliance.signals.vocabulary.StreamStatus",
            "ReportTypeEnum": "compliance.reports.vocabulary.ReportType",
        },
        "DISABLE_ERRORS_AND_WARNINGS": False,
        "PREPROCESSING_HOOKS": ["compliance.api.rest.schema.only_documented_paths"],
        "SERVERS": [{"url": base_url}],
    }
