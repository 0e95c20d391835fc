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

An absent `permittedActions` means that none were declared; an empty one permits nothing.
"""

from dataclasses import dataclass
from typing import Final

from agentid.errors import NotValid, Reason

INTEGER: Final = 0x02
UTF8_STRING: Final = 0x0C
SEQUENCE: Final = 0x30
MODEL_VERSION, MODEL_HASH, MODEL, ENVIRONMENT = 0x80, 0x81, 0x83, 0x84
PERMITTED_ACTIONS: Final = 0xA2
OPTIONAL: Final = (MODEL_VERSION, MODEL_HASH, PERMITTED_ACTIONS, MODEL, ENVIRONMENT)


@dataclass(frozen=True)
class Identity:
    """What a certificate states of its agent; `permitted_actions` is None if it declares no scope."""

    operator: str
    did: str
    environment: str
    model: str | None = None
    model_version: str | None = None
    model_hash: str | None = None
    permitted_actions: frozenset[str] | None = None

    def permits(self, action: str) -> bool:
        """Whether the certificate names the action."""
        return self.permitted_actions is not None and action in self.permitted_actions


def read_identity(der: bytes) -> Identity:
    """Read the extension's value. Raises: NotValid (malformed), also for another version."""
    (tag, contents), *more = _elements(der)
    if tag != SEQUENCE or more:
        raise NotValid(Reason.MALFORMED, "not an AgentIdentity")
    elements = _elements(contents)
    tags = [tag for tag, _ in elements]
    rest = [tag for tag in tags[3:] if tag in OPTIONAL]
    is_ordered = rest == sorted(set(rest), key=OPTIONAL.index)
    if tags[:3] != [INTEGER, UTF8_STRING, UTF8_STRING] or elements[0][1] != b"\1" or not is_ordered:
        raise NotValid(Reason.MALFORMED, "not an AgentIdentity of version 1")
    found = dict(elements[3:])
    actions = found.pop(PERMITTED_ACTIONS, None)
    permitted = _elements(actions) if actions else []
    if any(tag != UTF8_STRING for tag, _ in permitted):
        raise NotValid(Reason.MALFORMED, "an action that is no text")
    try:
        stated = {tag: value.decode() for tag, value in found.items() if tag in OPTIONAL}
        return Identity(
            operator=elements[1][1].decode(),
            did=elements[2][1].decode(),
            environment=stated.get(ENVIRONMENT, ""),
            model=stated.get(MODEL),
            model_version=stated.get(MODEL_VERSION),
            model_hash=stated.get(MODEL_HASH),
            permitted_actions=None if actions is None else frozenset(each.decode() for _, each in permitted),
        )
    except UnicodeDecodeError:
        raise NotValid(Reason.MALFORMED, "not UTF-8") from None


def _elements(der: bytes) -> list[tuple[int, bytes]]:
    """Tag and contents of each element (X.690): tags of one octet, definite lengths, shortest form."""
    found = []
    while der:
        if len(der) < 2:
            raise NotValid(Reason.MALFORMED, "cut off")
        tag, length, start = der[0], der[1], 2
        if length >= 0x80:
            start += length & 0x7F
            length = int.from_bytes(der[2:start])
            if start not in (3, 4) or length < (0x80 if start == 3 else 0x100):
                raise NotValid(Reason.MALFORMED, "a length that is not in DER")
        if tag & 0x1F == 0x1F or len(der) < start + length:
            raise NotValid(Reason.MALFORMED, "cut off, or a tag of several octets")
        found.append((tag, der[start : start + length]))
        der = der[start + length :]
    if not found:
        raise NotValid(Reason.MALFORMED, "empty")
    return found
