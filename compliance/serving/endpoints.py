"""The endpoints that the fast path serves."""

from certificates.public.endpoints import VERIFY_CERTIFICATE
from compliance.gateway.endpoints import AUTHORIZE
from delegation.endpoints import ISSUE_DELEGATION, VERIFY_DELEGATION
from delegation.oauth.token_endpoint import EXCHANGE_TOKEN
from events.endpoints import LIST_EVENTS, RECORD_EVENT

ENDPOINTS = (
    *(RECORD_EVENT, LIST_EVENTS, VERIFY_CERTIFICATE, VERIFY_DELEGATION, ISSUE_DELEGATION, EXCHANGE_TOKEN),
    AUTHORIZE,
)
