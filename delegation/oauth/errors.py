"""Errors of the OAuth endpoints: every error has the body of RFC 6749 §5.2.

`error` is a code, and `error_description` is the message that the other endpoints show as `error`.
"""

import logging
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from rest_framework.response import Response

from compliance.api.exceptions import error_parts
from compliance.api.gate import GateRequest
from compliance.core.errors import ServiceError
from delegation.errors import ProofRejected

log = logging.getLogger(__name__)

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# RFC 6749 §5.2: error_description = %x20-21 / %x23-5B / %x5D-7E.
_NOT_DESCRIBABLE = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")


class OAuthErrorCode(StrEnum):
    """The codes of RFC 6749 §5.2 and §4.1.2.1, RFC 7009 §2.2.1, RFC 8707 §2 and RFC 9449 §5 and §8."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_TOKEN_TYPE = "unsupported_token_type"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    INVALID_DPOP_PROOF = "invalid_dpop_proof"
    USE_DPOP_NONCE = "use_dpop_nonce"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"


class OAuthError(ServiceError):
    """Base of the errors with a code of their own."""

    status = 400
    code = OAuthErrorCode.INVALID_REQUEST


class InvalidRequest(OAuthError):
    message = "The request is malformed"


class UnsupportedForm(InvalidRequest):
    status = 415
    message = "Content-Type must be application/x-www-form-urlencoded"


class InvalidClient(OAuthError):
    status = 401
    code = OAuthErrorCode.INVALID_CLIENT
    message = "Client authentication failed: send an API key"


class UnauthorizedClient(OAuthError):
    code = OAuthErrorCode.UNAUTHORIZED_CLIENT
    message = "This API key may not do that"


class InvalidGrant(OAuthError):
    code = OAuthErrorCode.INVALID_GRANT
    message = "The assertion grants nothing"


class UnsupportedGrantType(OAuthError):
    code = OAuthErrorCode.UNSUPPORTED_GRANT_TYPE
    message = "The only grant type of API keys is token exchange; agents use client_credentials, jwt-bearer"


class InvalidScope(OAuthError):
    code = OAuthErrorCode.INVALID_SCOPE
    message = "The scope is malformed or goes too far"


class InvalidDpopProof(OAuthError):
    code = OAuthErrorCode.INVALID_DPOP_PROOF
    message = "The possession of a key must be proven"


class InvalidTarget(OAuthError):
    code = OAuthErrorCode.INVALID_TARGET
    message = "The audience or resource is malformed, or not permitted"


# By the status of an error without a code of its own: the code, and the status of the answer.
_CODES: Mapping[int, tuple[OAuthErrorCode, int]] = {
    401: (OAuthErrorCode.INVALID_CLIENT, 401),
    403: (OAuthErrorCode.UNAUTHORIZED_CLIENT, 400),
    422: (OAuthErrorCode.INVALID_REQUEST, 400),
    429: (OAuthErrorCode.TEMPORARILY_UNAVAILABLE, 429),
    500: (OAuthErrorCode.SERVER_ERROR, 500),
    503: (OAuthErrorCode.TEMPORARILY_UNAVAILABLE, 503),
}


def body(code: OAuthErrorCode, message: str) -> dict[str, str]:
    """The JSON of an error; what RFC 6749 excludes from a description is replaced."""
    described = _NOT_DESCRIBABLE.sub("?", message.replace('"', "'"))
    return {"error": code.value, "error_description": described}


def body_of_status(status: int, message: str) -> tuple[int, dict[str, str]]:
    """Return the status and the JSON for an error of the API that has no OAuth code of its own."""
    code, shown = _CODES.get(status, (OAuthErrorCode.INVALID_REQUEST, status))
    return shown, body(code, message)


def challenge(request: GateRequest) -> str:
    """The scheme in which the client may authenticate: the one it used, else Basic (RFC 6749 §5.2)."""
    scheme = request.headers.get("authorization", "").strip().partition(" ")[0].lower()
    return f'{"Bearer" if scheme == "bearer" else "Basic"} realm="api"'


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """REST framework's exception handler for these endpoints; None for a defect."""
    found = error_parts(error)
    if found is None:
        return None
    status, message, headers = found
    if isinstance(error, OAuthError):
        shown, content = status, body(error.code, message)
    elif isinstance(error, ProofRejected):
        shown, content = status, body(OAuthErrorCode(error.error), error.description)
    else:
        shown, content = body_of_status(status, message)
    if shown == 401:
        headers["WWW-Authenticate"] = challenge(GateRequest.of(context["request"]))
    if shown == 503:
        log.warning("answered 503: %s", type(error).__name__)
    return Response(content, status=shown, headers=headers)
