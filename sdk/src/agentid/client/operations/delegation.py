"""Delegation tokens, how they stand, and the keys that verify them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Prove, Request, as_json, given, path, proven
from agentid.client.results.delegation import Delegation, DelegationVerdict, IssuedToken


class Delegations(Group[S]):
    """Delegation tokens, how they stand, and the keys that verify them."""

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
        dpop_jkt: str | None = None,
        proof: str | Prove | None = None,
        idempotency_key: str = "",
    ) -> Request[Delegation]:
        """Issue a delegation token; a bound parent is handed on with a DPoP `proof` by its key.

        `proof` is `key.proof`, called for each try, or a ready-made text, which is sent once only.
        """
        return Request(
            "POST",
            path("/v1/agents/{}/delegation", agent_id),
            answers.data(Delegation),
            **proven(
                as_json(
                    given(
                        chain=chain,
                        scope=scope,
                        audience=audience,
                        ttl_seconds=ttl_seconds,
                        parent_token=parent_token,
                        dpop_jkt=dpop_jkt,
                    )
                ),
                proof,
            ),
            key=idempotency_key,
        )

    @operation("verifyDelegation")
    def verify(self, *, token: str, audience: str | None = None) -> Request[DelegationVerdict]:
        """Verify a delegation token."""
        return Request(
            "POST",
            "/v1/delegation/verify",
            answers.data(DelegationVerdict),
            **as_json(given(token=token, audience=audience)),
            repeatable=True,
        )

    @listing("listDelegations")
    def list(
        self,
        *,
        active: bool | None = None,
        agent_id: str | None = None,
        before: datetime | str | None = None,
        limit: int | None = None,
    ) -> Request[Page[IssuedToken]]:
        """List issued delegation tokens, newest first."""
        return Request(
            "GET",
            "/v1/delegations",
            answers.page(IssuedToken),
            query=given(active=active, agent_id=agent_id, before=before, limit=limit),
        )

    @operation("getDelegation")
    def get(self, token_id: str) -> Request[IssuedToken]:
        """Fetch an issued delegation token."""
        return Request("GET", path("/v1/delegations/{}", token_id), answers.data(IssuedToken))

    @operation("revokeDelegation")
    def revoke(self, token_id: str, *, reason: str) -> Request[IssuedToken]:
        """Revoke a delegation token and all that came of it."""
        return Request(
            "POST",
            path("/v1/delegations/{}/revoke", token_id),
            answers.data(IssuedToken),
            **as_json(given(reason=reason)),
        )

    @operation("getStatusList")
    def status_list(self, list_id: str) -> Request[str]:
        """The statuses of issued tokens as a signed list."""
        return Request(
            "GET",
            path("/v1/status-lists/{}", list_id),
            answers.text,
            headers={"Accept": "application/statuslist+jwt"},
        )
