"""The endpoint of `GET /v1/gateway/authorize`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from typing import Any

from compliance.api import gate
from compliance.api.answers import service_header
from compliance.api.endpoint import Deferred, EndpointRequest, LoopEndpoint
from compliance.api.gate import GateRequest, Scope
from compliance.core.errors import ServiceError
from compliance.stores.asking import Asker
from gateway import serializers
from gateway.deciding import authorizing, identity, requests
from gateway.deciding.decisions import Passage
from gateway.deciding.requests import DecisionRequest

PATH = "/v1/gateway/authorize"


class Authorize(LoopEndpoint[DecisionRequest, Passage]):
    """`GET /v1/gateway/authorize`: questions that arrive together share their statements."""

    method, path, allow = "GET", PATH, "GET, HEAD"
    scope, bucket = Scope.GATEWAY_AUTHORIZE, "gateway"
    headers = {"cache-control": "no-store"}
    # The loop answers nobody else while it computes for a group; some 25 of them may wait.
    largest_group, longest_queue = 8, 200

    def key_of(self, request: GateRequest) -> str:
        return gateway_key(request)

    def read(self, request: EndpointRequest) -> DecisionRequest:
        return requests.read(request)

    async def answer(
        self, questions: Sequence[DecisionRequest], asker: Asker
    ) -> Sequence[Passage | ServiceError | Deferred[Passage]]:
        return await authorizing.decide(questions, asker)

    def show(self, outcome: Passage) -> Mapping[str, Any]:
        return {"data": serializers.shown_passage(outcome)}

    def headers_of(self, outcome: Passage) -> Mapping[str, str]:
        return identity.headers_of(outcome)


def gateway_key(request: GateRequest) -> str:
    """The key of the gateway: in a header of its own, else in `Authorization`; "" without one."""
    sent = request.headers.get(service_header(requests.KEY).lower())
    return (gate.bearer_token(request) or "") if sent is None else sent.strip()


AUTHORIZE = Authorize()
