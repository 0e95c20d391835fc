"""CAs, and what they say of certificates by CRL and OCSP."""

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import Request, given, path
from agentid.client.results.authorities import Chain


class Authorities(Group[S]):
    """CAs, and what they say of certificates by CRL and OCSP."""

    @operation("getAuthorities")
    def list(self, *, environment: str | None = None) -> Request[Chain]:
        """The CA certificates of an environment."""
        return Request("GET", "/v1/ca", answers.data(Chain), query=given(environment=environment))

    @operation("getAuthority")
    def get(self, serial: str) -> Request[bytes]:
        """One CA certificate."""
        return Request(
            "GET", path("/v1/ca/{}", serial), answers.octets, headers={"Accept": "application/pkix-cert"}
        )

    @operation("getRevocationList")
    def crl(self, *, environment: str | None = None) -> Request[bytes]:
        """The current certificate revocation list."""
        return Request(
            "GET",
            "/v1/crl",
            answers.octets,
            query=given(environment=environment),
            headers={"Accept": "application/pkix-crl"},
        )

    @operation("getRevocationListOfAuthority")
    def crl_of(self, serial: str) -> Request[bytes]:
        """The revocation list of one CA."""
        return Request(
            "GET", path("/v1/crl/{}", serial), answers.octets, headers={"Accept": "application/pkix-crl"}
        )

    @operation("getPartialRevocationList")
    def crl_part(self, serial: str, part: str) -> Request[bytes]:
        """One shard of a CA's revocation list, or its delta."""
        return Request(
            "GET",
            path("/v1/crl/{}/{}", serial, part),
            answers.octets,
            headers={"Accept": "application/pkix-crl"},
        )

    @operation("askOcsp")
    def ocsp(self, request: bytes) -> Request[bytes]:
        """Ask for the status of certificates by OCSP."""
        return Request(
            "POST",
            "/v1/ocsp",
            answers.octets,
            content=request,
            headers={"Accept": "application/ocsp-response", "Content-Type": "application/ocsp-request"},
            repeatable=True,
        )

    @operation("askOcspByAddress")
    def ocsp_by_address(self, encoded: str) -> Request[bytes]:
        """Ask for the status of certificates by OCSP, in the address."""
        return Request(
            "GET",
            path("/v1/ocsp/{}", encoded),
            answers.octets,
            headers={"Accept": "application/ocsp-response"},
        )
