"""The endpoint of `GET /v1/gateway/authorize`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from typing import Any

from compliance.api import gate
from compliance.api.endpoint import Deferred, EndpointRequest, SteppedEndpoint
from compliance.api.gate import GateRequest
from compliance.api.rest.permissions import Scope
from compliance.api.rest.throttling import GatewayThrottle
from compliance.api.service_headers import service_header
from compliance.core.errors import ServiceError
from compliance.gateway import serializers
from compliance.gateway.deciding import authorizing, identity, requests
from compliance.gateway.deciding.decisions import Passage
from compliance.gateway.deciding.requests import DecisionRequest
from compliance.stores.trips import Steps
from delegation.token_keys import keyring

PATH = "/v1/gateway/authorize"


class Authorize(SteppedEndpoint[DecisionRequest, Passage]):
    """`GET /v1/gateway/authorize`: questions that arrive together share their trips."""

    method, path, allow = "GET", PATH, "GET, HEAD"
    scope, bucket = Scope.GATEWAY_AUTHORIZE, GatewayThrottle.bucket
    headers = {"cache-control": "no-store"}

    def key_of(self, request: GateRequest, body: bytes) -> str:
        return gateway_key(request)

    def read(self, request: EndpointRequest) -> DecisionRequest:
        return requests.read(request)

    def steps(
        self, questions: Sequence[DecisionRequest]
    ) -> Steps[Sequence[Passage | ServiceError | Deferred[Passage]]]:
        return authorizing.decide_in_steps(questions)

    def show(self, outcome: Passage) -> Mapping[str, Any]:
        return {"data": serializers.shown_passage(outcome)}

    def headers_of(self, outcome: Passage) -> Mapping[str, str]:
        return identity.headers_of(outcome)

    def warm(self) -> None:
        """Read the token keys, so that the first decisions need no thread."""
        keyring.warm()


def gateway_key(request: GateRequest) -> str:
    """The key of the gateway: in a header of its own, else in `Authorization`; "" without one."""
    sent = request.headers.get(service_header(requests.KEY).lower())
    return (gate.bearer_token(request) or "") if sent is None else sent.strip()


AUTHORIZE = Authorize()
