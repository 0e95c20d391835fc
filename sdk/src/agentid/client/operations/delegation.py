"""Delegation tokens, and the keys that verify them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import Request, as_json, given, path
from agentid.client.results.delegation import Delegation, DelegationVerdict


class Delegations(Group[S]):
    """Delegation tokens, and the keys that verify them."""

    @operation("getJwks")
    def jwks(self, *, environment: str | None = None) -> Request[Mapping[str, Any]]:
        """The public keys that verify delegation tokens."""
        return Request(
            "GET", "/.well-known/jwks.json", answers.json_object, query=given(environment=environment)
        )

    @operation("issueDelegation")
    def issue(
        self,
        agent_id: str,
        *,
        chain: Sequence[Mapping[str, Any]],
        scope: str | None = None,
        audience: str | None = None,
        ttl_seconds: int | None = None,
        parent_token: str | None = None,
        idempotency_key: str = "",
    ) -> Request[Delegation]:
        """Issue a delegation token."""
        return Request(
            "POST",
            path("/v1/agents/{}/delegation", agent_id),
            answers.data(Delegation),
            **as_json(
                given(
                    chain=chain,
                    scope=scope,
                    audience=audience,
                    ttl_seconds=ttl_seconds,
                    parent_token=parent_token,
                )
            ),
            key=idempotency_key,
        )

    @operation("verifyDelegation")
    def verify(self, *, token: str) -> Request[DelegationVerdict]:
        """Verify a delegation token."""
        return Request(
            "POST",
            "/v1/delegation/verify",
            answers.data(DelegationVerdict),
            **as_json(given(token=token)),
            repeatable=True,
        )
