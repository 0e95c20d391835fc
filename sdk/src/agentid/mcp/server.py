"""The Model Context Protocol server with which an agent verifies peers, reports events and gets tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import quote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from agentid.mcp.results import (
    CertificateStanding,
    DelegationVerdict,
    IssuedToken,
    MessageVerdict,
    RecordedEvent,
)
from agentid.mcp.service import ToolService
from agentid.reporting.encoding import ActionType

INSTRUCTIONS = (
    "Verify an agent before trusting it, a delegation token before acting on it, and a signed message "
    "before believing it. `valid: false` or a status other than active means: do not trust."
)
Serial = Annotated[str, Field(description="Serial number of the certificate, hexadecimal")]


class ChainMember(BaseModel):
    """Someone in a delegation chain."""

    sub: str
    type: Literal["human", "agent", "sub_agent", "service"]


@dataclass(frozen=True)
class Configuration:
    """Where the service is, and for whom the tools act."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    agent_id: str | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Configuration":
        """Of the variables AGENTID_BASE_URL, AGENTID_API_KEY and AGENTID_AGENT_ID. Raises: KeyError."""
        return cls(
            environ["AGENTID_BASE_URL"], environ.get("AGENTID_API_KEY"), environ.get("AGENTID_AGENT_ID")
        )


@dataclass(frozen=True)
class Tools:
    """What a model may call."""

    service: ToolService
    agent_id: str | None

    async def verify_agent(self, serial_number: Serial) -> CertificateStanding:
        """Look up how an agent's certificate stands now, and what it permits."""
        path = f"/v1/verify/{quote(serial_number, safe='')}"
        return CertificateStanding.model_validate(await self.service.get(path))

    async def verify_delegation(self, token: str, audience: str | None = None) -> DelegationVerdict:
        """Check a delegation token: signature and times, and with `audience` that it is meant for that name.

        Whether the agent has been stopped since is asked of verify_agent.
        """
        body = {"token": token} | ({"audience": audience} if audience is not None else {})
        return DelegationVerdict.model_validate(await self.service.post("/v1/delegation/verify", body))

    async def verify_message(
        self, payload: Any, signature: str, certificate_serial: Serial
    ) -> MessageVerdict:
        """Check that an agent signed this JSON payload; `signature` is base64, as it came."""
        body = {"payload": payload, "signature": signature, "certificate_serial": certificate_serial}
        return MessageVerdict.model_validate(await self.service.post("/v1/verify/message", body))

    async def report_event(
        self,
        action_type: ActionType,
        details: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> RecordedEvent:
        """Record an action of this agent; the answer says how risky it looked."""
        body: dict[str, Any] = {
            "agent_id": self._own_id(),
            "action_type": action_type,
            "details": details or {},
        }
        body |= {"session_id": session_id} if session_id is not None else {}
        return RecordedEvent.model_validate(await self.service.post("/v1/events", body, with_key=True))

    async def obtain_token(
        self,
        chain: list[ChainMember],
        scope: str = "",
        audience: str | None = None,
        ttl_seconds: int | None = None,
        parent_token: str | None = None,
    ) -> IssuedToken:
        """Get a token with which this agent acts for the first of `chain`, ordered from that root to itself.

        `scope` holds action names with spaces between; `parent_token` is the token that is handed on.
        """
        optional = {"audience": audience, "ttl_seconds": ttl_seconds, "parent_token": parent_token}
        body = {
            "chain": [member.model_dump() for member in chain],
            "scope": scope,
            **{name: value for name, value in optional.items() if value is not None},
        }
        path = f"/v1/agents/{quote(self._own_id(), safe='')}/delegation"
        return IssuedToken.model_validate(await self.service.post(path, body, with_key=True))

    def _own_id(self) -> str:
        if self.agent_id is None:
            raise ToolError("AGENTID_AGENT_ID is not set")
        return self.agent_id


def make_server(configuration: Configuration) -> MCPServer[Any]:
    """The server with its tools."""
    service = ToolService(configuration.base_url, configuration.api_key)
    tools = Tools(service, configuration.agent_id)
    server: MCPServer[Any] = MCPServer("agentid", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (
        tools.verify_agent,
        tools.verify_delegation,
        tools.verify_message,
        tools.report_event,
        tools.obtain_token,
    ):
        server.add_tool(tool)
    return server
