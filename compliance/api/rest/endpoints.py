"""The entrance of an endpoint's definition for Django's views."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.endpoint import Endpoint, EndpointRequest
from compliance.api.rest.requests import credential_of
from compliance.api.rest.throttling import count_the_rest
from compliance.core import environments
from compliance.core.clock import now


def respond(
    endpoint: Endpoint[Any, Any],
    request: Request,
    parameter: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The endpoint's response to a request that has passed the view's authentication and limits.

    `headers`, by lower-case name, stand in for the request's own.
    """
    key = credential_of(request)
    question = endpoint.read(
        EndpointRequest(
            received_at=now(),
            parameter=parameter,
            query=request.query_params.dict(),
            body=request.data if endpoint.method == "POST" else None,
            tenant_id=None if key is None else key.tenant_id,
            headers=request.headers if headers is None else headers,
            key_id=None if key is None else key.id,
        )
    )
    count_the_rest(request, endpoint.bucket, endpoint.requests_in(question))
    has_environment = endpoint.scope is not None
    with nullcontext() if has_environment else environments.use(endpoint.environment_of(question)):
        outcome = endpoint.outcome_of(question)
    more = dict(endpoint.headers_of(outcome))
    return Response(endpoint.show(outcome), status=endpoint.status, headers=more)
