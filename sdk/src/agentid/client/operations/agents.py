"""Agents, their standing and their documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.agents import Agent, UpdatedAgent
from agentid.client.results.certificates import Certificate


class Agents(Group[S]):
    """Agents, their standing and their documents."""

    @operation("resolveDid")
    def resolve(self, did: str, *, version_time: datetime | str | None = None) -> Request[Mapping[str, Any]]:
        """Resolve an agent's decentralized identifier."""
        return Request(
            "GET",
            path("/1.0/identifiers/{}", did),
            answers.json_object,
            query=given(versionTime=version_time),
        )

    @operation("getAgentCard")
    def card(self, did: str) -> Request[Mapping[str, Any]]:
        """The signed A2A card of an agent that publishes one."""
        return Request("GET", path("/v1/agent-cards/{}", did), answers.json_object)

    @listing("listAgents")
    def list(
        self, *, before: datetime | str | None = None, limit: int | None = None, status: str | None = None
    ) -> Request[Page[Agent]]:
        """List agents, newest first."""
        return Request(
            "GET", "/v1/agents", answers.page(Agent), query=given(before=before, limit=limit, status=status)
        )

    @operation("registerAgent")
    def register(
        self,
        *,
        name: str,
        model_hash: str,
        model: str | None = None,
        version: str | None = None,
        description: str | None = None,
        inbox_address: str | None = None,
        financial_scope: Mapping[str, Any] | None = None,
        agent_card: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        enforcement: str | None = None,
        idempotency_key: str = "",
    ) -> Request[Agent]:
        """Register an agent."""
        return Request(
            "POST",
            "/v1/agents",
            answers.data(Agent),
            **as_json(
                given(
                    model=model,
                    version=version,
                    description=description,
                    inbox_address=inbox_address,
                    financial_scope=financial_scope,
                    agent_card=agent_card,
                    metadata=metadata,
                    enforcement=enforcement,
                    name=name,
                    model_hash=model_hash,
                )
            ),
            key=idempotency_key,
        )

    @operation("getAgent")
    def get(self, agent_id: str) -> Request[Agent]:
        """Fetch an agent."""
        return Request("GET", path("/v1/agents/{}", agent_id), answers.data(Agent))

    @operation("updateAgent")
    def update(
        self,
        agent_id: str,
        *,
        model: str | Unset | None = UNSET,
        version: str | Unset | None = UNSET,
        description: str | Unset | None = UNSET,
        inbox_address: str | Unset | None = UNSET,
        financial_scope: Mapping[str, Any] | Unset | None = UNSET,
        agent_card: Mapping[str, Any] | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        enforcement: str | Unset | None = UNSET,
        name: str | Unset = UNSET,
        model_hash: str | Unset = UNSET,
    ) -> Request[UpdatedAgent]:
        """Edit an agent's profile."""
        return Request(
            "PATCH",
            path("/v1/agents/{}", agent_id),
            answers.data(UpdatedAgent),
            **as_json(
                changed(
                    model=model,
                    version=version,
                    description=description,
                    inbox_address=inbox_address,
                    financial_scope=financial_scope,
                    agent_card=agent_card,
                    metadata=metadata,
                    enforcement=enforcement,
                    name=name,
                    model_hash=model_hash,
                )
            ),
        )

    @operation("certifyAgent")
    def certify(self, agent_id: str, *, idempotency_key: str = "") -> Request[Certificate]:
        """Issue a certificate for an agent."""
        return _certifying(path("/v1/agents/{}/certify", agent_id), idempotency_key)

    @operation("reinstateAgent")
    def reinstate(self, agent_id: str, *, reason: str) -> Request[Agent]:
        """Reinstate a suspended agent."""
        return _with_reason(path("/v1/agents/{}/reinstate", agent_id), reason)

    @operation("renewAgentCertificate")
    def renew(self, agent_id: str, *, idempotency_key: str = "") -> Request[Certificate]:
        """Issue a successor of the agent's active certificate."""
        return _certifying(path("/v1/agents/{}/renew", agent_id), idempotency_key)

    @operation("retireAgent")
    def retire(self, agent_id: str, *, reason: str) -> Request[Agent]:
        """Retire an agent for good."""
        return _with_reason(path("/v1/agents/{}/retire", agent_id), reason)

    @operation("suspendAgent")
    def suspend(self, agent_id: str, *, reason: str) -> Request[Agent]:
        """Suspend an agent and put its certificate on hold."""
        return _with_reason(path("/v1/agents/{}/suspend", agent_id), reason)


def _with_reason(address: str, reason: str) -> Request[Agent]:
    return Request("POST", address, answers.data(Agent), **as_json(given(reason=reason)))


def _certifying(address: str, idempotency_key: str) -> Request[Certificate]:
    return Request("POST", address, answers.data(Certificate), key=idempotency_key)
