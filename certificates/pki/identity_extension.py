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

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from asn1crypto.core import Integer, Sequence, SequenceOf, UTF8String

VERSION: Final = 1


class InvalidExtension(ValueError):
    """The octets are not an AgentIdentity of a known version."""


@dataclass(frozen=True)
class IdentityClaims:
    """The claims of the extension; `permitted_actions` is None when the agent declares no scope."""

    operator: str
    did: str
    environment: str
    model: str | None = None
    model_version: str | None = None
    model_hash: str | None = None
    permitted_actions: tuple[str, ...] | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "IdentityClaims":
        actions = fields["permitted_actions"]
        return cls(**{**fields, "permitted_actions": None if actions is None else tuple(actions)})


class _PermittedActions(SequenceOf):
    _child_spec = UTF8String


class _AgentIdentity(Sequence):
    _fields = [
        ("version", Integer),
        ("operator", UTF8String),
        ("did", UTF8String),
        ("model_version", UTF8String, {"implicit": 0, "optional": True}),
        ("model_hash", UTF8String, {"implicit": 1, "optional": True}),
        ("permitted_actions", _PermittedActions, {"implicit": 2, "optional": True}),
        ("model", UTF8String, {"implicit": 3, "optional": True}),
        ("environment", UTF8String, {"implicit": 4, "optional": True}),
    ]


def encode(claims: IdentityClaims) -> bytes:
    stated = {name: value for name, value in asdict(claims).items() if value is not None}
    der: bytes = _AgentIdentity({"version": VERSION, **stated}).dump()
    return der


def decode(der: bytes) -> IdentityClaims:
    """Read the extension's value; raises `InvalidExtension`, also for an encoding that is not DER."""
    try:
        fields = dict(_AgentIdentity.load(der, strict=True).native)
    except (ValueError, TypeError) as error:
        raise InvalidExtension("not an AgentIdentity") from error
    version = fields.pop("version")
    if version != VERSION:
        raise InvalidExtension(f"version {version} is unknown")
    claims = IdentityClaims.of({**fields, "environment": fields["environment"] or ""})
    if encode(claims) != der:
        raise InvalidExtension("not in DER")
    return claims
