"""What a route demands, as decisions read it."""

from dataclasses import dataclass
from typing import Final

from agents.risk import BANDS
from compliance.gateway.models import GatewayAgents, GatewayCredential, GatewayRoot, GatewayRoute


@dataclass(frozen=True, slots=True)
class RouteRules:
    """The settings of a route; the defaults are those of a gateway that names none."""

    name: str = ""
    credentials: frozenset[str] = frozenset(GatewayCredential.values)
    action: str | None = None
    audience: str | None = None
    highest_band: str = "high"
    is_root_verified: bool = False
    takes_any_tenant: bool = False
    nonce_required: bool = False

    @classmethod
    def of(cls, route: GatewayRoute) -> "RouteRules":
        return cls(
            name=route.name,
            credentials=frozenset(route.credentials),
            action=route.action,
            audience=route.audience,
            highest_band=route.highest_band,
            is_root_verified=route.root == GatewayRoot.VERIFIED,
            takes_any_tenant=route.agents == GatewayAgents.ANY,
            nonce_required=route.nonce_required,
        )

    @property
    def reads_tokens(self) -> bool:
        return not self.credentials.isdisjoint((GatewayCredential.BEARER, GatewayCredential.DPOP))

    def admits_band(self, band: str) -> bool:
        return BANDS.index(band) <= BANDS.index(self.highest_band)


PLAIN: Final = RouteRules()
"""The rules of a request that names no route: any credential of the tenant's own agents."""
