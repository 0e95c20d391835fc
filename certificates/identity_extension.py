"""The certificate extension that binds an agent's operator, model and permitted scope to its key.

    AgentIdentity ::= SEQUENCE {
        version           INTEGER { v1(1) },
        operator          UTF8String,
        did               UTF8String,
        modelVersion      [0] IMPLICIT UTF8String OPTIONAL,
        modelHash         [1] IMPLICIT UTF8String OPTIONAL,
        permittedActions  [2] IMPLICIT SEQUENCE OF UTF8String OPTIONAL,
        model             [3] IMPLICIT UTF8String OPTIONAL,
        environment       [4] IMPLICIT UTF8String OPTIONAL,
        ... }

DER, non-critical. An absent `permittedActions` means that none were declared; an empty one permits nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

from asn1crypto.core import Integer, Sequence, SequenceOf, UTF8String

VERSION: Final = 1


class InvalidExtension(ValueError):
    """The octets are not an AgentIdentity of a version known here."""


@dataclass(frozen=True)
class IdentityClaims:
    """What the extension says; `permitted_actions` is None when the agent declares no scope."""

    operator: str
    did: str
    environment: str
    model: str | None = None
    model_version: str | None = None
    model_hash: str | None = None
    permitted_actions: tuple[str, ...] | None = None


class _Actions(SequenceOf):
    _child_spec = UTF8String


class _AgentIdentity(Sequence):
    _fields = [
        ("version", Integer),
        ("operator", UTF8String),
        ("did", UTF8String),
        ("model_version", UTF8String, {"implicit": 0, "optional": True}),
        ("model_hash", UTF8String, {"implicit": 1, "optional": True}),
        ("permitted_actions", _Actions, {"implicit": 2, "optional": True}),
        ("model", UTF8String, {"implicit": 3, "optional": True}),
        ("environment", UTF8String, {"implicit": 4, "optional": True}),
    ]


OPTIONAL: Final = ("model_version", "model_hash", "permitted_actions", "model", "environment")


def encode(claims: IdentityClaims) -> bytes:
    """The DER of the extension's value."""
    values: dict[str, Any] = {"version": VERSION, "operator": claims.operator, "did": claims.did}
    for name in OPTIONAL:
        value = getattr(claims, name)
        if value is not None:
            values[name] = list(value) if isinstance(value, tuple) else value
    der: bytes = _AgentIdentity(values).dump()
    return der


def decode(der: bytes) -> IdentityClaims:
    """Read the extension's value; raises `InvalidExtension`, also for an encoding that is not DER."""
    try:
        native = _AgentIdentity.load(der, strict=True).native
    except (ValueError, TypeError) as error:
        raise InvalidExtension("not an AgentIdentity") from error
    if native["version"] != VERSION:
        raise InvalidExtension(f"version {native['version']} is unknown")
    actions = native["permitted_actions"]
    claims = IdentityClaims(
        operator=native["operator"],
        did=native["did"],
        environment=native["environment"] or "",
        model=native["model"],
        model_version=native["model_version"],
        model_hash=native["model_hash"],
        permitted_actions=None if actions is None else tuple(actions),
    )
    if encode(claims) != der:
        raise InvalidExtension("not in DER")
    return claims
