"""Examples of incidents in the OpenAPI description."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

_DETECTED = "2026-11-20T09:15:00.123456Z"
_WHY = "Automatic revocation: 3 high-risk events within 15 minutes"
_CLOCKS = [
    {
        "kind": "ai_act.report",
        "state": "due",
        "provision": "Regulation (EU) 2024/1689, Article 73(2)",
        "basis": "detection by the service",
        "started_at": _DETECTED,
        "due_at": "2026-12-05T09:15:00.123456Z",
        "met_at": None,
    },
    {
        "kind": "dora.initial",
        "state": "due",
        "provision": "Regulation (EU) 2022/2554, Article 19(4)",
        "basis": "classification as major, as stated",
        "started_at": "2026-11-20T10:00:00Z",
        "due_at": "2026-11-20T14:00:00Z",
        "met_at": None,
    },
]
INCIDENT: dict[str, Any] = {
    "reference": "INC-20261120-3C3C3C3C",
    "id": "0199f2a5-1200-7a00-8b00-3c3c3c3c3c3c",
    "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
    "agent_name": "trade-bot",
    "title": "Stopped by the service",
    "cause": "threshold",
    "state": "contained",
    "severity": "high",
    "owner": "Ana Sousa",
    "detected_at": _DETECTED,
    "opened_at": _DETECTED,
    "contained_at": _DETECTED,
    "closed_at": None,
    "updated_at": "2026-11-20T10:00:00Z",
    "serious_harm": "undecided",
    "dora_class": "major",
    "aware_at": None,
    "ai_act_reported_at": None,
    "classified_at": "2026-11-20T10:00:00Z",
    **dict.fromkeys(("dora_initial_at", "dora_intermediate_at", "dora_final_at")),
    "merged_into": None,
    "agents": [
        {
            "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
            "agent_name": "trade-bot",
            "since": _DETECTED,
            "why": _WHY,
        }
    ],
    "clocks": _CLOCKS,
}
TIMELINE = [
    {
        "id": "0199f2a5-1201-7a00-8b00-4d4d4d4d4d4d",
        "kind": "opened",
        "at": _DETECTED,
        "actor_kind": "system",
        "actor_id": "auto_revocation",
        "text": _WHY,
        "event_id": "0199f2a4-9d20-7f55-8a44-6f2f8f1f9c77",
        "certificate_id": "0199f2a4-8b10-7c11-a111-0d0d0d0d0d0d",
        "serial_number": "5f1c0a9e4b7d4c2f8e6a1b3c5d7e9f01",
        "data": {"cause": "threshold"},
    }
]
CERTIFICATES = [
    {
        "certificate_id": "0199f2a4-8b10-7c11-a111-0d0d0d0d0d0d",
        "serial_number": "5f1c0a9e4b7d4c2f8e6a1b3c5d7e9f01",
        "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
        "since": _DETECTED,
        "why": _WHY,
    }
]
LISTED = OpenApiExample(
    "One incident",
    {"data": [INCIDENT], "has_next_page": False, "next_cursor": None},
    response_only=True,
    status_codes=["200"],
)
SHOWN = OpenApiExample(
    "With its timeline",
    {"data": {**INCIDENT, "certificates": CERTIFICATES, "timeline": TIMELINE}},
    response_only=True,
    status_codes=["200"],
)
CLASSIFIED = OpenApiExample(
    "Classified as major",
    {"dora_class": "major", "classified_at": "2026-11-20T10:00:00Z", "owner": "Ana Sousa"},
    request_only=True,
)
SENT = OpenApiExample(
    "The initial notification was sent",
    {"dora_initial_at": "2026-11-20T12:30:00Z", "note": "Receipt 4711 of the authority."},
    request_only=True,
)
MERGED = OpenApiExample(
    "One attack, one incident",
    {"merged_into": "0199f2a5-1300-7a00-8b00-5e5e5e5e5e5e", "note": "The same stolen credential."},
    request_only=True,
)
