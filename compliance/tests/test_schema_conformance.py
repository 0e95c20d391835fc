"""The description is what the server does: generated requests find no 500 and nothing undocumented."""

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agents.tests.factories import make_agent
from certificates.models import PooledKey
from certificates.tests.factories import make_authorities
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.description import description
from delegation import services as delegation
from tenancy.tests.factories import make_key, make_tenant

# Twenty requests to each endpoint: `-m matrix` runs them, and CI does.
pytestmark = pytest.mark.matrix

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


schemathesis.serializer.alias("application/ocsp-request", "application/octet-stream")
SCHEMA = schemathesis.openapi.from_dict({**description(), "servers": [{"url": "http://localhost/"}]})
SCHEMA.app = get_wsgi_application()
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}  # type: ignore[union-attr]


@pytest.mark.parametrize("label", OPERATIONS)
def test_server_keeps_to_its_description(committed: None, label: str) -> None:
    for environment in Environment:
        with environments.use(environment):
            make_authorities()
            delegation.bootstrap(now=now())
            # Tests of the console's pages leave rows there that are no keys.
            PooledKey.objects.all().delete()
    tenant = make_tenant()
    agent = make_agent(tenant, metadata={"permitted_actions": ["read"]})
    key = make_key(tenant)

    @settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[label].as_strategy())
    def holds(case: Any) -> None:
        if "agent_id" in case.path_parameters:
            case.path_parameters["agent_id"] = str(agent.id)
        case.call_and_validate(headers={"Authorization": f"Bearer {key}"}, checks=CHECKS)

    holds()
