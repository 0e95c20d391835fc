"""`/verify`: a page on which people, without an account, check a certificate by its serial number or PEM."""

import re
from collections.abc import Mapping
from typing import Any, Final

from cryptography import x509
from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import FormParser
from rest_framework.request import Request

from certificates.errors import CertificateNotFound
from certificates.models import CertificateStatus
from certificates.pki.serials import format_serial
from certificates.public import verification
from certificates.public.verification import Verification
from certificates.querysets import HOLD
from certificates.serializers import shown_verification
from compliance.api.exceptions import error_parts
from compliance.api.rest.description import DescribingView
from compliance.console.display import visible
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment

LONGEST: Final = 20_000  # characters of a text that is read
PEM_BEGINS: Final = "-----BEGIN"
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_BESIDE_A_SERIAL: Final = re.compile(r"^serial(?: number)?\s*[:=]|\s", re.IGNORECASE)
"""What openssl and other programs show before a serial number, and between its digits."""


VerifyAnswer = tuple[str, str, dict[str, str]]
"""Verdict, explanation, and facts by name."""


class VerifyPage(DescribingView):
    bucket = "verify"
    parser_classes = [FormParser]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        return _page("", ("", "", {}))

    @extend_schema(exclude=True)
    def post(self, request: Request) -> HttpResponse:
        form: Any = request.data
        text = str(form.get("certificate", "")).strip()
        return _page(text, _answered(text))

    def handle_exception(self, exc: Exception) -> Any:
        """Tell a person's browser on the page itself, other programs as everywhere."""
        found = error_parts(exc)
        if found is None or "text/html" not in self.request.headers.get("Accept", ""):
            return super().handle_exception(exc)
        status, message, headers = found
        return _page("", ("Not checked", f"{message.rstrip('.')}.", {}), status, headers)


def _page(
    text: str, answer: VerifyAnswer, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    verdict, explanation, facts = answer
    context = {"text": text, "verdict": verdict, "explanation": explanation, "facts": facts}
    body = render_to_string("verify.html", {"site_title": settings.SERVICE_TITLE, **context})
    own = {"Cache-Control": "no-store", "Content-Security-Policy": CONTENT_SECURITY_POLICY}
    return HttpResponse(body, status=status, headers={**(headers or {}), **own})


def _answered(text: str) -> VerifyAnswer:
    """Return the answer about a serial number or a PEM certificate."""
    certificate = None
    if not text:
        return "Not read", "Give a serial number, or a certificate in PEM.", {}
    if PEM_BEGINS in text:
        try:
            certificate = x509.load_pem_x509_certificate(text[:LONGEST].encode())
        except (ValueError, x509.InvalidVersion):
            return "Not read", "The text holds no certificate in PEM.", {}
    try:
        given = _BESIDE_A_SERIAL.sub("", text)
        serial = given if certificate is None else format_serial(certificate.serial_number)
        found = verification.verify(serial=serial, now=now())
    except CertificateNotFound:
        return "Unknown", "This service issued no such certificate. Don't trust it.", {}
    if certificate is not None:
        with environments.use(found.environment):
            issued = x509.load_pem_x509_certificate(found.certificate.certificate_pem.encode())
        if certificate != issued:
            why = "It bears the serial number of a certificate of ours, but is another. Don't trust it."
            return "Forged", why, {}
    return (*_judged(found), _facts(found))


def _judged(found: Verification) -> tuple[str, str]:
    certificate = found.certificate
    is_held = found.status == CertificateStatus.REVOKED and certificate.revocation_reason == HOLD
    if is_held and now() <= certificate.expires_at:
        return "On hold", "The agent is suspended. Don't rely on it now."
    if found.status == CertificateStatus.REVOKED:
        why = visible(certificate.revocation_reason)
        return "Revoked", f"Since {certificate.revoked_at:%Y-%m-%d %H:%M} UTC: {why}"
    if found.status == CertificateStatus.EXPIRED:
        return "Expired", f"Since {certificate.expires_at:%Y-%m-%d %H:%M} UTC."
    if found.environment is Environment.TEST:
        return "Valid in the test environment", "It vouches for nobody."
    return "Valid", "The agent's identity stands as certified."


def _facts(found: Verification) -> dict[str, str]:
    shown = shown_verification(found)
    actions = ", ".join(shown["permitted_actions"]) or ("none" if shown["scope_declared"] else "not declared")
    model = " ".join(part for part in (shown["model"], shown["model_version"]) if part)
    facts = {
        "Operator": shown["operator"],
        "Agent": str(shown["agent_id"]),
        "Model": model,
        "Permitted actions": actions,
        "Validity": f"{shown['not_before']:%Y-%m-%d %H:%M} to {shown['not_after']:%Y-%m-%d %H:%M} UTC",
        "Risk": f"{shown['risk_band']} ({shown['risk_score']:.2f})",
        "Serial number": shown["serial_number"],
    }
    return {name: visible(value) for name, value in facts.items() if value}
