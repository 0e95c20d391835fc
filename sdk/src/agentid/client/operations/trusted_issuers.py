"""Issuers whose ID tokens prove who stands behind a chain."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.trusted_issuers import TrustedIssuer


class TrustedIssuers(Group[S]):
    """Issuers whose ID tokens prove who stands behind a chain."""

    @operation("listTrustedIssuers")
    def list(self) -> Request[tuple[TrustedIssuer, ...]]:
        """List trusted issuers, newest first."""
        return Request("GET", "/v1/trusted-issuers", answers.listed(TrustedIssuer))

    @operation("createTrustedIssuer")
    def create(
        self,
        *,
        issuer: str,
        audiences: Sequence[str],
        jwks_uri: str | None = None,
        jwks: Mapping[str, Any] | None = None,
        subject_claim: str | None = None,
        required_claims: Mapping[str, Any] | None = None,
        max_age_seconds: int | None = None,
        active: bool | None = None,
        algorithms: Sequence[str] | None = None,
        idempotency_key: str = "",
    ) -> Request[TrustedIssuer]:
        """Trust an issuer of ID tokens."""
        return Request(
            "POST",
            "/v1/trusted-issuers",
            answers.data(TrustedIssuer),
            **as_json(
                given(
                    jwks_uri=jwks_uri,
                    jwks=jwks,
                    subject_claim=subject_claim,
                    required_claims=required_claims,
                    max_age_seconds=max_age_seconds,
                    active=active,
                    issuer=issuer,
                    audiences=audiences,
                    algorithms=algorithms,
                )
            ),
            key=idempotency_key,
        )

    @operation("getTrustedIssuer")
    def get(self, issuer_id: str) -> Request[TrustedIssuer]:
        """Fetch a trusted issuer."""
        return Request("GET", path("/v1/trusted-issuers/{}", issuer_id), answers.data(TrustedIssuer))

    @operation("updateTrustedIssuer")
    def update(
        self,
        issuer_id: str,
        *,
        jwks_uri: str | Unset | None = UNSET,
        jwks: Mapping[str, Any] | Unset | None = UNSET,
        subject_claim: str | Unset = UNSET,
        required_claims: Mapping[str, Any] | Unset = UNSET,
        max_age_seconds: int | Unset = UNSET,
        active: bool | Unset = UNSET,
        audiences: Sequence[str] | Unset = UNSET,
        algorithms: Sequence[str] | Unset = UNSET,
    ) -> Request[TrustedIssuer]:
        """Edit a trusted issuer."""
        return Request(
            "PATCH",
            path("/v1/trusted-issuers/{}", issuer_id),
            answers.data(TrustedIssuer),
            **as_json(
                changed(
                    jwks_uri=jwks_uri,
                    jwks=jwks,
                    subject_claim=subject_claim,
                    required_claims=required_claims,
                    max_age_seconds=max_age_seconds,
                    active=active,
                    audiences=audiences,
                    algorithms=algorithms,
                )
            ),
        )

    @operation("deleteTrustedIssuer")
    def delete(self, issuer_id: str) -> Request[None]:
        """Trust an issuer no more."""
        return Request("DELETE", path("/v1/trusted-issuers/{}", issuer_id), answers.nothing, repeatable=True)
