"""Certificates of agents."""

from datetime import datetime

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Request, as_json, given, path
from agentid.client.results.certificates import Certificate, Revocation, Verification


class Certificates(Group[S]):
    """Certificates of agents."""

    @listing("listCertificates")
    def list(
        self,
        *,
        agent_id: str | None = None,
        before: datetime | str | None = None,
        limit: int | None = None,
        status: str | None = None,
    ) -> Request[Page[Certificate]]:
        """List certificates, newest first."""
        return Request(
            "GET",
            "/v1/certificates",
            answers.page(Certificate),
            query=given(agent_id=agent_id, before=before, limit=limit, status=status),
        )

    @operation("getCertificate")
    def get(self, certificate_id: str) -> Request[Certificate]:
        """Fetch a certificate."""
        return Request("GET", path("/v1/certificates/{}", certificate_id), answers.data(Certificate))

    @operation("renewCertificate")
    def renew(self, certificate_id: str, *, idempotency_key: str = "") -> Request[Certificate]:
        """Issue a successor and supersede this certificate."""
        return Request(
            "POST",
            path("/v1/certificates/{}/renew", certificate_id),
            answers.data(Certificate),
            key=idempotency_key,
        )

    @operation("revokeCertificate")
    def revoke(self, certificate_id: str, *, reason: str) -> Request[Revocation]:
        """Revoke a certificate."""
        return Request(
            "POST",
            path("/v1/certificates/{}/revoke", certificate_id),
            answers.data(Revocation),
            **as_json(given(reason=reason)),
        )

    @operation("verifyCertificate")
    def verify(self, serial: str, *, at: datetime | str | None = None) -> Request[Verification]:
        """Verify a certificate by its serial number."""
        return Request("GET", path("/v1/verify/{}", serial), answers.data(Verification), query=given(at=at))
