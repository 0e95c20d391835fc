"""The results of the tools; what else the service tells is passed on."""

from pydantic import BaseModel, ConfigDict


class Result(BaseModel):
    model_config = ConfigDict(extra="allow")


class CertificateStanding(Result):
    """A certificate as it stands now; `status` is active, revoked or expired."""

    serial_number: str
    status: str
    agent_id: str


class DelegationVerdict(Result):
    """Whether a token is authentic and in its time, with its chain, or the reason why not."""

    valid: bool
    reason: str | None = None
    principal: str | None = None
    scope: str | None = None
    agent_id: str | None = None


class MessageVerdict(Result):
    """Whether the agent signed the payload, or the reason why not."""

    valid: bool
    reason: str | None = None
    agent_id: str | None = None


class RecordedEvent(Result):
    """An event as it was stored, with its risk."""

    id: str
    risk_score: float
    risk_band: str


class IssuedToken(Result):
    """A delegation token; `bound_to` names the key whose possession its holder must prove."""

    token: str
    principal: str
    scope: str
    audience: str | None = None
    expires_at: str
    bound_to: str | None = None
