"""The endpoints that the fast path serves."""

from certificates.public.endpoints import VERIFY_CERTIFICATE
from events.endpoints import RECORD_EVENT
from gateway.access.endpoints import EVALUATE, EVALUATE_ALL
from gateway.endpoints import AUTHORIZE

ENDPOINTS = (RECORD_EVENT, VERIFY_CERTIFICATE, AUTHORIZE, EVALUATE, EVALUATE_ALL)
