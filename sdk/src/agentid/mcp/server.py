"""The Model Context Protocol server with which an agent verifies peers, asks, reports and gets tokens."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ConfigDict, Field

from agentid.client.service import ID_TOKEN, AsyncClient, SubjectType
from agentid.errors import AgentIdError
from agentid.keys import DpopKey
from agentid.reporting.encoding import ActionType

INSTRUCTIONS = (
    "Verify an agent before trusting it, a delegation token before acting on it, and a signed message "
    "before believing it. `valid: false` or a status other than active means: do not trust. Ask by "
    "check_action before an act, do it only if `decision` is true, and report it by report_action."
)
P = ParamSpec("P")
T = TypeVar("T")
WAIT_SECONDS, MOST_SECONDS = 30, 300
Serial = Annotated[str, Field(description="Serial number of the certificate, hexadecimal")]


class ChainMember(BaseModel):
    """Someone in a delegation chain."""

    sub: str
    type: Literal["human", "agent", "sub_agent", "service"]


class OpenModel(BaseModel):
    """An argument or a result; what else it holds is passed on."""

    model_config = ConfigDict(extra="allow")


class ActedOn(OpenModel):
    """What an act is done to."""

    type: str
    id: str


class CertificateStanding(OpenModel):
    """A certificate as it stands now; `status` is active, revoked or expired."""

    serial_number: str
    status: str
    agent_id: str


class MessageVerdict(OpenModel):
    """Whether the agent signed the payload, or the reason why not."""

    valid: bool
    reason: str | None = None
    agent_id: str | None = None


class DelegationVerdict(MessageVerdict):
    """Whether a token is authentic and in its time, with its chain, or the reason why not."""

    principal: str | None = None
    scope: str | None = None


class WaitingFor(OpenModel):
    """The approval that a person is asked for."""

    id: str
    status: str
    expires_at: str


class ActDecision(OpenModel):
    """Whether this agent may act; `outcome` is allow, ask or deny, and `approval` what ask waits for."""

    decision: bool
    outcome: str
    decision_id: str
    reasons: list[dict[str, Any]]
    risk_score: float | None
    risk_band: str | None
    approval: WaitingFor | None = None


class ApprovalStanding(OpenModel):
    """An approval as it stands now; `status` is pending, approved, denied, expired or used."""

    id: str
    status: str
    note: str
    expires_at: str
    receipt: str | None


class RecordedEvent(OpenModel):
    """An event as it was stored, with its risk."""

    id: str
    risk_score: float
    risk_band: str


class OwnRisk(BaseModel):
    """How the agent stands; `agent_status` is pending, active, suspended or retired."""

    agent_id: str
    agent_status: str
    risk_score: float
    risk_band: str


class IssuedToken(OpenModel):
    """A delegation token; `bound_to` names the key whose possession its holder must prove."""

    token: str
    principal: str
    scope: str
    audience: str | None = None
    expires_at: str
    bound_to: str | None = None


def told(tool: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have a tool tell the model what went wrong with the service, in the service's words."""

    @wraps(tool)
    async def called(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await tool(*arguments, **named)
        except AgentIdError as error:
            raise ToolError(str(error)) from None

    return called


@dataclass(frozen=True)
class Tools:
    """What a model may call."""

    client: AsyncClient
    agent_id: str | None
    key: DpopKey | None = None

    async def verify_agent(self, serial_number: Serial) -> CertificateStanding:
        """Look up how an agent's certificate stands now, and what it permits."""
        found = await self.client.certificates.verify(serial_number)
        return CertificateStanding.model_validate(found.raw)

    async def verify_delegation(self, token: str, audience: str | None = None) -> DelegationVerdict:
        """Check a delegation token: signature and times, and that it is meant for `audience`, your own name.

        Ask verify_agent whether the agent has been stopped since.
        """
        found = await self.client.delegation.verify(token=token, audience=audience)
        return DelegationVerdict.model_validate(found.raw)

    async def verify_message(
        self, payload: Any, signature: str, certificate_serial: Serial
    ) -> MessageVerdict:
        """Check that an agent signed this JSON payload; `signature` is base64, as it came."""
        found = await self.client.messages.verify(
            payload=payload, signature=signature, certificate_serial=certificate_serial
        )
        return MessageVerdict.model_validate(found.raw)

    async def check_action(
        self,
        action: str,
        resource: ActedOn,
        action_type: ActionType | None = None,
        details: dict[str, Any] | None = None,
        token: str | None = None,
        approval: str | None = None,
    ) -> ActDecision:
        """Ask whether this agent may do something, before it does it: only if `decision` is true.

        Nothing is recorded as done: `action_type` and `details` are those that report_action would get. If
        `outcome` is ask, a person is asked: call wait_for_approval with `approval.id`, then this again with
        the same arguments and its `receipt` as `approval`. A receipt is good for this act, once.
        """
        found = await self.client.decide(
            self._own_id(),
            action,
            resource=resource.model_dump(),
            action_type=action_type,
            details=details,
            token=token,
            approval=approval,
        )
        waiting = None if found.approval is None else found.approval.raw
        reasons = [each.raw for each in found.reasons]
        return ActDecision.model_validate({**vars(found), "reasons": reasons, "approval": waiting})

    async def wait_for_approval(
        self, approval_id: str, seconds: Annotated[int, Field(ge=0, le=MOST_SECONDS)] = WAIT_SECONDS
    ) -> ApprovalStanding:
        """Wait for the person who is asked; if `status` still is pending, call again.

        The receipt is there if `status` is approved: hand it back to check_action.
        """
        found = await self.client.wait_for_approval(approval_id, seconds)
        return ApprovalStanding.model_validate(found.raw)

    async def report_action(
        self,
        action_type: ActionType,
        details: dict[str, Any] | None = None,
        session_id: str | None = None,
        decision_id: str | None = None,
    ) -> RecordedEvent:
        """Record an action of this agent, by the `decision_id` of check_action; says how risky it looked."""
        found = await self.client.events.record(
            agent_id=self._own_id(),
            action_type=action_type,
            details=details,
            session_id=session_id,
            decision_id=decision_id,
        )
        return RecordedEvent.model_validate(found.raw)

    async def my_risk(self) -> OwnRisk:
        """How this agent stands now: its status, and its risk from 0 to 1 by the events of 30 days."""
        own = self.client.certificates.list(agent_id=self._own_id(), limit=1)
        async for certificate in own:
            found = await self.client.certificates.verify(certificate.serial_number)
            return OwnRisk.model_validate(found.raw)
        raise ToolError("This agent has no certificate, by which its risk is looked up")

    async def obtain_token(
        self,
        subject_token: str | None = None,
        subject_token_type: SubjectType = ID_TOKEN,
        chain: list[ChainMember] | None = None,
        scope: str | None = None,
        audience: str | None = None,
        ttl_seconds: int | None = None,
        parent_token: str | None = None,
    ) -> IssuedToken:
        """Get a token with which this agent acts for someone else.

        Give `subject_token`: the ID token of the person, or a delegation token (`access_token`) that another
        agent handed to this one. Without one, give `chain`, from the root to this agent, and `parent_token`
        to hand a token on. `scope` holds action names with spaces between. If `bound_to` is set, only the
        holder of this agent's key can use the token.
        """
        found = await self.client.obtain_token(
            self._own_id(),
            subject_token=subject_token,
            subject_token_type=subject_token_type,
            chain=None if chain is None else [member.model_dump() for member in chain],
            scope=scope,
            audience=audience,
            ttl_seconds=ttl_seconds,
            parent_token=parent_token,
            proof=None if self.key is None else self.key.proof,
        )
        return IssuedToken.model_validate({**vars(found), "expires_at": found.expires_at.isoformat()})

    def _own_id(self) -> str:
        if self.agent_id is None:
            raise ToolError("AGENTID_AGENT_ID is not set")
        return self.agent_id


def make_server(client: AsyncClient, *, agent_id: str | None, key: DpopKey | None = None) -> MCPServer[Any]:
    """The server, whose tools act for the agent `agent_id`, and get tokens that are bound to `key`."""
    tools = Tools(client, agent_id, key)
    server: MCPServer[Any] = MCPServer("agentid", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (
        *(tools.verify_agent, tools.verify_delegation, tools.verify_message, tools.obtain_token),
        *(tools.check_action, tools.wait_for_approval, tools.report_action, tools.my_risk),
    ):
        server.add_tool(told(tool))
    return server
