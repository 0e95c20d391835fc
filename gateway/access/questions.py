"""A request for decisions as a client sends it (AuthZEN Authorization API 1.0 §5 to §7), read and checked.

Members that the standard or this service does not know are ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from agents.models import MAX_ACTION_NAME, parse_did
from certificates.pki.serials import environment_of, parse_serial
from compliance.core import environments
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import canonical_id
from compliance.core.json_values import MAX_OCTETS, octets_of
from compliance.observing.correlation import Correlation
from delegation.jose.jws import MAX_LENGTH
from events.errors import InvalidActionType
from events.ingest.event_input import ACTION_TYPES
from events.models import ActionType

MOST_EVALUATIONS: Final = 100
MAX_NAME: Final = 1_024
"""Characters of an entity's type or id."""
REQUIRED: Final[Mapping[str, Sequence[str]]] = {
    "subject": ("type", "id"),
    "action": ("name",),
    "resource": ("type", "id"),
}
"""The entities of an evaluation, and the strings that each must have."""
AGENT, CERTIFICATE = "agent", "certificate"


class EvaluationsSemantic(StrEnum):
    """When a request of several evaluations ends (§7.1.2.1)."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"

    def ends_with(self, *, decision: bool) -> bool:
        """Return whether nothing after this decision is evaluated."""
        return self is (self.PERMIT_ON_FIRST_PERMIT if decision else self.DENY_ON_FIRST_DENY)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """May this subject do this?

    `agent_id` or `serial` names the subject; both None: one that this service cannot know. `details` are
    those of the event that would follow, `act` is what a person approves: the details with the resource,
    which then holds the details' own one as `in_details`.
    """

    subject: str
    agent_id: str | None
    serial: int | None
    action: str
    resource: Mapping[str, Any]
    action_type: str
    details: Mapping[str, Any]
    token: str | None
    receipt: str | None

    @property
    def act(self) -> dict[str, Any]:
        own = {"in_details": self.details["resource"]} if "resource" in self.details else {}
        return {**self.details, "resource": {**self.resource, **own}}


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """What one request asks; an error stands in the place of an evaluation that is malformed.

    `is_single`: answered by one decision, not by a list of them. `ids`: of the request.
    """

    tenant_id: UUID
    key_id: UUID
    now: datetime
    evaluations: Sequence[Evaluation | ServiceError]
    semantic: EvaluationsSemantic = EvaluationsSemantic.EXECUTE_ALL
    is_single: bool = True
    ids: Correlation | None = None


def read_one(data: Any) -> Evaluation:
    """The evaluation in a body. Raises: Invalid."""
    if not isinstance(data, dict):
        raise Invalid("Request body must be a JSON object")
    for entity in REQUIRED:
        if data.get(entity) is None:
            raise Invalid(f"{entity}: This field is required.")
        _check_entity(data[entity], entity, is_whole=True)
    context = _object(data, "context")
    subject, resource = data["subject"], data["resource"]
    for entity in ("action", "resource"):
        if octets_of(data[entity]) > MAX_OCTETS:
            raise Invalid(f"{entity}: Must take at most {MAX_OCTETS} octets as JSON.")
    agent_id, serial = _named(subject["type"], subject["id"])
    details, action = _details(context), data["action"]
    if details is None:
        details = {**_object(action, "properties"), "action": action["name"]}
    return Evaluation(
        subject=f"{subject['type']}:{subject['id']}",
        agent_id=agent_id,
        serial=serial,
        action=action["name"],
        resource={name: resource[name] for name in ("type", "id", "properties") if name in resource},
        action_type=_action_type(context),
        details=details,
        token=_credential(context, "token"),
        receipt=_credential(context, "approval"),
    )


def read_all(data: Any) -> tuple[Sequence[Evaluation | ServiceError], EvaluationsSemantic, bool]:
    """The evaluations of a body, their semantic, and whether it asks for a single decision (§7.1).

    Raises: Invalid for what is wrong with all of it.
    """
    if not isinstance(data, dict):
        raise Invalid("Request body must be a JSON object")
    semantic, items = _semantic(data), data.get("evaluations")
    if items is None or items == []:
        return [read_one(data)], semantic, True
    if not isinstance(items, list):
        raise Invalid("evaluations: Must be an array.")
    if len(items) > MOST_EVALUATIONS:
        raise Invalid(f"evaluations: Must hold at most {MOST_EVALUATIONS} evaluations.")
    defaults = {name: data[name] for name in (*REQUIRED, "context") if data.get(name) is not None}
    for entity in REQUIRED.keys() & defaults.keys():
        _check_entity(defaults[entity], entity, is_whole=False)
    context = _object(defaults, "context")
    _action_type(context)
    _details(context)
    _credential(context, "token")
    _credential(context, "approval")
    return [_read_or_refuse(item, defaults) for item in items], semantic, False


def _read_or_refuse(item: Any, defaults: Mapping[str, Any]) -> Evaluation | ServiceError:
    if not isinstance(item, dict):
        return Invalid("An evaluation must be a JSON object")
    try:
        return read_one(_with_defaults(item, defaults))
    except ServiceError as error:
        return error


def _with_defaults(item: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Take each entity from the item, else from the defaults; of an incomplete one what it lacks, too."""
    merged = {**defaults, **item}
    for entity, names in REQUIRED.items():
        own, default = item.get(entity), defaults.get(entity)
        if isinstance(own, dict) and isinstance(default, dict):
            merged[entity] = {**{name: default[name] for name in names if name in default}, **own}
    return merged


def _semantic(data: Mapping[str, Any]) -> EvaluationsSemantic:
    named = _object(data, "options").get("evaluations_semantic")
    if named is None:
        return EvaluationsSemantic.EXECUTE_ALL
    try:
        return EvaluationsSemantic(named)
    except ValueError as error:
        raise Invalid(
            f"options.evaluations_semantic: Must be one of {', '.join(EvaluationsSemantic)}."
        ) from error


def _check_entity(found: Any, entity: str, *, is_whole: bool) -> None:
    """Check the form of an entity, or of the part of one that stands for defaults. Raises: Invalid."""
    if not isinstance(found, dict):
        raise Invalid(f"{entity}: Must be an object.")
    longest = MAX_ACTION_NAME if entity == "action" else MAX_NAME
    for name in REQUIRED[entity]:
        if is_whole or name in found:
            _check_string(found.get(name), f"{entity}.{name}", longest=longest)
    _object(found, "properties", of=f"{entity}.")


def _object(data: Mapping[str, Any], name: str, of: str = "") -> Mapping[str, Any]:
    """The object of that name, empty where it is null or left out. Raises: Invalid."""
    found = data.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Invalid(f"{of}{name}: Must be an object.")
    return found


def _check_string(value: Any, name: str, *, longest: int) -> None:
    if value is None:
        raise Invalid(f"{name}: This field is required.")
    if not isinstance(value, str):
        raise Invalid(f"{name}: Must be a string.")
    if not 1 <= len(value) <= longest:
        raise Invalid(f"{name}: Must have 1 to {longest} characters.")


def _named(kind: str, name: str) -> tuple[str | None, int | None]:
    """The agent or the certificate that a subject names in the current environment; neither for others."""
    if kind == AGENT:
        if (did := parse_did(name)) is not None:
            return (str(did.agent_id) if did.environment is environments.current() else None), None
        return canonical_id(name), None
    number = parse_serial(name) if kind == CERTIFICATE else None
    return None, number if number is not None and environment_of(number) is environments.current() else None


def _action_type(context: Mapping[str, Any]) -> str:
    found = context.get("action_type")
    if found is None:
        return ActionType.API_CALL.value
    if not isinstance(found, str) or found not in ACTION_TYPES:
        raise InvalidActionType()
    return found


def _details(context: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The details of the event that would follow; None where a request states none."""
    if context.get("details") is None:
        return None
    found = _object(context, "details", of="context.")
    if octets_of(found) > MAX_OCTETS:
        raise Invalid(f"context.details: Must take at most {MAX_OCTETS} octets as JSON.")
    return found


def _credential(context: Mapping[str, Any], name: str) -> str | None:
    found = context.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise Invalid(f"context.{name}: Must be a string.")
    if len(found) > MAX_LENGTH:
        raise Invalid(f"context.{name}: Must have at most {MAX_LENGTH} characters.")
    return found
