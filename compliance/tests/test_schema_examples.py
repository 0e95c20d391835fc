"""Every example in the OpenAPI description is valid by the schema beside it."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from compliance.tests.test_schema_boundaries import DESCRIPTION, resolved


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each body of the description that has a schema, with its operation's name and status."""
    for methods in DESCRIPTION["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for status, body in bodies.items():
                for content in body.get("content", {}).values():
                    yield f"{name} {status}", content


EXAMPLES = [
    pytest.param(content["schema"], example["value"], id=f"{place}: {title}")
    for place, content in contents()
    for title, example in content.get("examples", {}).items()
    if title != "Error"
]


@pytest.mark.parametrize(("schema", "value"), EXAMPLES)
def test_example_is_valid_by_its_schema(schema: dict[str, Any], value: Any) -> None:
    validator = jsonschema_rs.Draft4Validator(resolved(schema), validate_formats=True)

    wrong = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(value)]

    assert wrong == []


def test_incidents_and_reports_have_examples() -> None:
    told = {str(parameter.id).split()[0] for parameter in EXAMPLES}

    assert told >= {"listIncidents", "getIncident", "updateIncident", "exportIncident"}
