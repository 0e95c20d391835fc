"""The content of an agent's card in the form of A2A 1.0 §4.4.1.

No member is empty: A2A leaves empty members out of what is signed, and implementations differ on which.
"""

from dataclasses import dataclass
from typing import Any, Final

EXTENSION: Final = "urn:uuid:0d1c5a52-6f5e-4d5f-9b0e-3c6f6f0c2a71"
"""Identifies the extension that names the agent's DID and certificate (docs/agent-cards.md)."""
PROTOCOL_VERSION: Final = "1.0"
UNVERSIONED: Final = "unversioned"
DEFAULT_MODES: Final = ["application/json"]
TOKEN_SCHEMES: Final[dict[str, dict[str, str]]] = {
    "bearer": {
        "scheme": "Bearer",
        "bearerFormat": "delegation+jwt",
        "description": "A delegation token of the service that certified this agent.",
    },
    "dpop": {
        "scheme": "DPoP",
        "description": "A delegation token bound to the caller's key (RFC 9449).",
    },
}


@dataclass(frozen=True)
class CardFacts:
    """What a card is made of: the tenant's `wishes` (`Agent.agent_card`), and what the service knows."""

    name: str
    description: str | None
    wishes: dict[str, Any]
    did: str
    operator: str
    version: str | None
    permitted_actions: tuple[str, ...]
    certificate_serial: str
    verify_url: str


def content_of(facts: CardFacts) -> dict[str, Any]:
    """The card without its signatures."""
    wishes = facts.wishes
    card: dict[str, Any] = {
        "name": facts.name,
        "description": facts.description or facts.name,
        "version": facts.version or UNVERSIONED,
        "supportedInterfaces": [
            {
                "url": wishes["url"],
                "protocolBinding": wishes.get("protocol_binding", "JSONRPC"),
                "protocolVersion": PROTOCOL_VERSION,
            }
        ],
        "capabilities": _capabilities(facts),
        "defaultInputModes": wishes.get("input_modes", DEFAULT_MODES),
        "defaultOutputModes": wishes.get("output_modes", DEFAULT_MODES),
        "skills": [_skill(action) for action in dict.fromkeys(facts.permitted_actions)],
    }
    if schemes := wishes.get("token_schemes"):
        card["securitySchemes"] = {
            name: {"httpAuthSecurityScheme": TOKEN_SCHEMES[name]} for name in dict.fromkeys(schemes)
        }
    if "provider_url" in wishes:
        card["provider"] = {"organization": facts.operator, "url": wishes["provider_url"]}
    if "documentation_url" in wishes:
        card["documentationUrl"] = wishes["documentation_url"]
    return card


def _capabilities(facts: CardFacts) -> dict[str, Any]:
    identity = {
        "uri": EXTENSION,
        "description": "The agent's decentralized identifier and its certificate in force.",
        "params": {
            "did": facts.did,
            "certificate_serial": facts.certificate_serial,
            "verify_url": facts.verify_url,
        },
    }
    found: dict[str, Any] = {"extensions": [identity]}
    if "streaming" in facts.wishes:
        found["streaming"] = facts.wishes["streaming"]
    return found


def _skill(action: str) -> dict[str, Any]:
    return {
        "id": action,
        "name": action,
        "description": f"The action {action}, which the agent's certificate permits.",
        "tags": ["permitted-action"],
    }
