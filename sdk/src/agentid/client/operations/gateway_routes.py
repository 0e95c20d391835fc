"""Routes of gateways, and what they demand."""

from collections.abc import Sequence

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.gateway_routes import GatewayRoute


class GatewayRoutes(Group[S]):
    """Routes of gateways, and what they demand."""

    @operation("listGatewayRoutes")
    def list(self) -> Request[tuple[GatewayRoute, ...]]:
        """List gateway routes by name."""
        return Request("GET", "/v1/gateway/routes", answers.listed(GatewayRoute))

    @operation("createGatewayRoute")
    def create(
        self,
        *,
        name: str,
        credentials: Sequence[str],
        action: str | None = None,
        audience: str | None = None,
        highest_band: str | None = None,
        root: str | None = None,
        agents: str | None = None,
        nonce_required: bool | None = None,
        idempotency_key: str = "",
    ) -> Request[GatewayRoute]:
        """Create a gateway route."""
        return Request(
            "POST",
            "/v1/gateway/routes",
            answers.data(GatewayRoute),
            **as_json(
                given(
                    action=action,
                    audience=audience,
                    highest_band=highest_band,
                    root=root,
                    agents=agents,
                    nonce_required=nonce_required,
                    name=name,
                    credentials=credentials,
                )
            ),
            key=idempotency_key,
        )

    @operation("getGatewayRoute")
    def get(self, route_id: str) -> Request[GatewayRoute]:
        """Fetch a gateway route."""
        return Request("GET", path("/v1/gateway/routes/{}", route_id), answers.data(GatewayRoute))

    @operation("updateGatewayRoute")
    def update(
        self,
        route_id: str,
        *,
        action: str | Unset | None = UNSET,
        audience: str | Unset | None = UNSET,
        highest_band: str | Unset = UNSET,
        root: str | Unset = UNSET,
        agents: str | Unset = UNSET,
        nonce_required: bool | Unset = UNSET,
        name: str | Unset = UNSET,
        credentials: Sequence[str] | Unset = UNSET,
    ) -> Request[GatewayRoute]:
        """Edit a gateway route."""
        return Request(
            "PATCH",
            path("/v1/gateway/routes/{}", route_id),
            answers.data(GatewayRoute),
            **as_json(
                changed(
                    action=action,
                    audience=audience,
                    highest_band=highest_band,
                    root=root,
                    agents=agents,
                    nonce_required=nonce_required,
                    name=name,
                    credentials=credentials,
                )
            ),
        )

    @operation("deleteGatewayRoute")
    def delete(self, route_id: str) -> Request[None]:
        """Delete a gateway route."""
        return Request("DELETE", path("/v1/gateway/routes/{}", route_id), answers.nothing, repeatable=True)
