"""The entrance of an endpoint's definition for Django's views."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.endpoint import Endpoint, EndpointRequest
from compliance.api.rest.requests import credential_of
from compliance.core import environments
from compliance.core.clock import now

Question = TypeVar("Question")


def respond(
    endpoint: Endpoint[Any, Any],
    request: Request,
    parameter: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The endpoint's response to a request that has passed the view's authentication and limits.

    `headers`, by lower-case name, stand in for the request's own.
    """
    return answered(endpoint, question_of(endpoint, request, parameter, headers=headers))


def question_of(
    endpoint: Endpoint[Question, Any],
    request: Request,
    parameter: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
) -> Question:
    """The question that a request puts; `body` is a parsed one that REST framework has not read."""
    key = credential_of(request)
    if body is None and endpoint.method == "POST":
        body = request.data
    return endpoint.read(
        EndpointRequest(
            received_at=now(),
            parameter=parameter,
            query=request.query_params.dict(),
            body=body,
            tenant_id=None if key is None else key.tenant_id,
            headers=request.headers if headers is None else headers,
            key_id=None if key is None else key.id,
        )
    )


def answered(endpoint: Endpoint[Question, Any], question: Question) -> Response:
    """The endpoint's response to a question."""
    environment = None if endpoint.scope is not None else endpoint.environment_of(question)
    with nullcontext() if environment is None else environments.use(environment):
        outcome = endpoint.outcome_of(question)
    more = dict(endpoint.headers_of(outcome))
    return Response(endpoint.show(outcome), status=endpoint.status, headers=more)
