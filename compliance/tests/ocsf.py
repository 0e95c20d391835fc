"""The JSON schemas that are generated of the released OCSF schema, and what they say of an event."""

from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

VERSION = "1.8.0"


@cache
def _released() -> OcsfJsonSchemaEmbedded:
    return OcsfJsonSchemaEmbedded(get_ocsf_schema(version=VERSION))


@cache
def _validator(class_uid: int, profiles: tuple[str, ...]) -> Draft202012Validator:
    name = _released().lookup_class_name_from_uid(class_uid)
    return Draft202012Validator(_released().get_class_schema(name, list(profiles)))


def problems(event: dict[str, Any]) -> list[str]:
    """What the schema of the event's class and profiles finds wrong, unknown attributes included."""
    profiles = tuple(event["metadata"].get("profiles", ()))
    found = [str(error) for error in _validator(event["class_uid"], profiles).iter_errors(event)]
    kind, activity = event["class_uid"], event["activity_id"]
    if (event["category_uid"], event["type_uid"]) != (kind // 1000, kind * 100 + activity):
        found.append("category or type is another class's")
    return found
