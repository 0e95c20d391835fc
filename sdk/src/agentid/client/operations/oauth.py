"""OAuth: exchange, introspection and revocation of tokens."""

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import Prove, Request, as_form, given, proven
from agentid.client.results.oauth import Introspection, Metadata, TokenResponse

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class OAuth(Group[S]):
    """OAuth: exchange, introspection and revocation of tokens."""

    @operation("getAuthorizationServerMetadata")
    def metadata(self) -> Request[Metadata]:
        """What this authorization server offers."""
        return Request("GET", "/.well-known/oauth-authorization-server", answers.bare(Metadata))

    @operation("introspectToken")
    def introspect(self, *, token: str, token_type_hint: str | None = None) -> Request[Introspection]:
        """Whether a token stands now (RFC 7662)."""
        return Request(
            "POST",
            "/oauth/introspect",
            answers.bare(Introspection),
            **as_form(given(token=token, token_type_hint=token_type_hint)),
            repeatable=True,
        )

    @operation("revokeToken")
    def revoke(self, *, token: str, token_type_hint: str | None = None) -> Request[None]:
        """Revoke a token and all that came of it (RFC 7009)."""
        return Request(
            "POST",
            "/oauth/revoke",
            answers.nothing,
            **as_form(given(token=token, token_type_hint=token_type_hint)),
            repeatable=True,
        )

    @operation("exchangeToken")
    def exchange(
        self,
        *,
        subject_token: str,
        subject_token_type: str,
        actor_token: str,
        actor_token_type: str,
        scope: str | None = None,
        audience: str | None = None,
        resource: str | None = None,
        requested_token_type: str | None = None,
        dpop_jkt: str | None = None,
        proof: str | Prove | None = None,
        grant_type: str = TOKEN_EXCHANGE,
    ) -> Request[TokenResponse]:
        """Exchange a token for a delegation to an agent (RFC 8693); DPoP `proof` for a bound one.

        `proof` is `key.proof`, or a ready-made text.
        """
        return Request(
            "POST",
            "/oauth/token",
            answers.bare(TokenResponse),
            **proven(
                as_form(
                    given(
                        grant_type=grant_type,
                        subject_token=subject_token,
                        subject_token_type=subject_token_type,
                        actor_token=actor_token,
                        actor_token_type=actor_token_type,
                        scope=scope,
                        audience=audience,
                        resource=resource,
                        requested_token_type=requested_token_type,
                        dpop_jkt=dpop_jkt,
                    )
                ),
                proof,
            ),
        )
