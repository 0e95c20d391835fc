"""Client authentication by API key: HTTP Basic, parameters of the body, or a bearer header.

The client's id is the id of its key. The prefix of the key names the environment in which it is looked up.
"""

import binascii
from base64 import b64decode
from typing import NamedTuple

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.errors import ServiceError, Unauthorized
from delegation.oauth import forms
from delegation.oauth.errors import InvalidClient, InvalidRequest
from tenancy import keys, services
from tenancy.authentication import ApiKeyUser
from tenancy.models import ApiKey

METHODS = ("client_secret_basic", "client_secret_post")
"""As the authorization server's metadata names them; the bearer header has no registered name."""


class ClientCredentials(NamedTuple):
    """A client's credentials; a bearer header has no client id."""

    client_id: str | None
    secret: str


def presented(request: HttpRequest) -> ClientCredentials:
    """The credentials of a request.

    Raises: InvalidClient; InvalidRequest for more than one method (RFC 6749 §2.3); what a form raises.
    """
    by_header = _of_header(GateRequest.of(request))
    form = forms.sent(request)
    secret, stated = form.get("client_secret"), form.get("client_id")
    if by_header is None:
        if secret is None:
            raise InvalidClient()
        return ClientCredentials(form.require("client_id"), secret)
    if secret is not None:
        raise InvalidRequest("Authenticate in one way only")
    if by_header.client_id is not None and stated not in (None, by_header.client_id):
        raise InvalidRequest("client_id and the Authorization header name different clients")
    return by_header


def key_of(request: HttpRequest) -> str | None:
    """The API key that a request presents; None for one without, or whose credentials can't be read."""
    try:
        return presented(request).secret
    except ServiceError:
        return None


class ClientAuthentication(BaseAuthentication):
    """Look the client's key up in the environment that its prefix names."""

    def authenticate(self, request: Request) -> tuple[ApiKeyUser, ApiKey]:
        client_id, secret = presented(request._request)
        if keys.environment_of(secret) is not environments.current():
            raise InvalidClient()
        try:
            row = services.authenticate(secret=secret, now=now())
        except Unauthorized as error:
            raise InvalidClient(error.message) from error
        if client_id not in (None, str(row.id)):
            raise InvalidClient("The client id is not the id of this API key")
        return ApiKeyUser(row.tenant_id), row

    def authenticate_header(self, request: Request) -> str:
        return 'Basic realm="api"'


def _of_header(asked: GateRequest) -> ClientCredentials | None:
    header = asked.headers.get("authorization", "").strip()
    if not header:
        return None
    if bearer := gate.bearer_token(asked):
        return ClientCredentials(None, bearer)
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        raise InvalidClient("Authenticate by Basic or Bearer, or in the body")
    try:
        # RFC 6749 §2.3.1: both are percent-encoded, so there is one colon.
        client_id, secret = b64decode(encoded.strip(), validate=True).decode().split(":")
        return ClientCredentials(forms.decoded(client_id), forms.decoded(secret))
    except (binascii.Error, ValueError, InvalidRequest) as error:
        raise InvalidClient("The Basic credentials can't be read") from error
