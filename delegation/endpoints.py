"""The endpoint of `POST /v1/delegation/verify`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from compliance.api.endpoint import EndpointRequest, ThreadEndpoint
from compliance.api.rest.throttling import PublicThrottle
from compliance.api.rest.views import checked
from compliance.core.errors import ServiceError
from delegation import serializers, services
from delegation.services import TokenVerification


class TokenRequest(NamedTuple):
    token: str
    audience: str | None
    now: datetime


class VerifyDelegation(ThreadEndpoint[TokenRequest, TokenVerification]):
    """`POST /v1/delegation/verify`: a token names its environment itself, by its key."""

    method, path, allow = "POST", "/v1/delegation/verify", "POST"
    bucket = PublicThrottle.bucket

    def read(self, request: EndpointRequest) -> TokenRequest:
        body = checked(serializers.VerifyDelegationSerializer, request.body)
        return TokenRequest(body["token"], body.get("audience"), request.received_at)

    def work(self, questions: Sequence[TokenRequest]) -> Sequence[TokenVerification | ServiceError]:
        return [_verdict(asked) for asked in questions]

    def show(self, outcome: TokenVerification) -> Mapping[str, Any]:
        return {"data": serializers.shown_verification(outcome)}


def _verdict(asked: TokenRequest) -> TokenVerification | ServiceError:
    try:
        return services.verify_for(token=asked.token, audience=asked.audience, now=asked.now)
    except ServiceError as error:
        return error


VERIFY_DELEGATION = VerifyDelegation()
