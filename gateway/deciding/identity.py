"""The identity that passes, as headers for the protected service; every value is printable ASCII.

Anything but letters, digits and the characters of `_PLAIN` is percent-encoded as UTF-8, so that no name can
end a header or an item of a list.
"""

from urllib.parse import quote

from compliance.api.answers import service_header
from gateway.deciding.decisions import Passage
from gateway.deciding.refusals import ALLOW, DECISION

NAMES = (
    *("Agent-Id", "Agent-Did", "Tenant-Id", "Principal", "Chain", "Scope", "Action", "Risk-Band"),
    *("Cert-Serial", "Environment", "Assurance", "Credential"),
)
"""The headers of an identity: a gateway takes them away from what a client sends."""
_PLAIN = "-._~@:/+!*"


def headers_of(passage: Passage) -> dict[str, str]:
    """The headers of an answer that lets a request pass."""
    values = (
        str(passage.agent_id),
        passage.did,
        str(passage.tenant_id),
        encoded(passage.principal),
        ",".join(f"{actor.type.value}={encoded(actor.sub)}" for actor in passage.chain),
        " ".join(map(encoded, passage.scope)),
        encoded(passage.action),
        passage.risk_band,
        passage.serial or "",
        passage.environment,
        passage.assurance.value,
        passage.credential.value,
    )
    named = {service_header(name): value for name, value in zip(NAMES, values, strict=True)}
    return {service_header(DECISION): ALLOW, **named}


def encoded(text: str) -> str:
    """The text percent-encoded (RFC 3986 §2.1); `urllib.parse.unquote` reads it."""
    return quote(text, safe=_PLAIN, errors="replace")
