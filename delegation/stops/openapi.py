"""Texts, parameters and examples of stops in the API description."""

from typing import Final

from drf_spectacular.utils import OpenApiExample

BEGIN_TEXT: Final = (
    "Suspends every agent that matches, with its certificate on hold as `POST /v1/agents/{id}/suspend` does, "
    "or with `revoke` revoked for good. The agents are those that match when the stop begins. Up to 100 are "
    "stopped in the request (201); more follow at once (202: ask until `state` is `done`). With `revoke`, "
    "agents suspended already count as stopped where a certificate on hold is revoked."
)
RELEASE_TEXT: Final = (
    "Reinstates the agents whose certificates this stop put on hold, but for those that somebody stopped "
    "since, or that another stop, not released, holds too. 202: `state` will be `released`. A released stop "
    "can be released again, for agents that another stop kept."
)
RECEIPT_TEXT: Final = (
    "`root` is the Merkle root (RFC 6962 §2.1) over the lines, each in canonical JSON (RFC 8785). The key is "
    "one of `/.well-known/jwks.json`. 425 while the stop is running."
)
QUESTION: Final = OpenApiExample(
    "All agents of a model",
    value={"match": {"model_hash": "sha256:9f86d081884c7d65"}, "reason": "This model leaks its prompts"},
    request_only=True,
)
RECEIPT: Final = OpenApiExample(
    "A receipt",
    value={
        "data": {
            "receipt": "eyJhbGciOiJFUzI1NiIsInR5cCI6ImhhbHQr….eyJpc3MiOiJodHRwczovL….QWx3YXlzIHNpZ25lZA",
            "lines": [
                {
                    "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
                    "serial": "2f6f0f7f3b105e5e5e5e5e5e5e5e5e5e4d4d4d4d",
                    "stopped_at": "2026-11-20T09:15:00.223456Z",
                    "outcome": "stopped",
                }
            ],
        }
    },
    response_only=True,
    status_codes=["200"],
)
