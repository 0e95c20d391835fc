"""Messages that agents sign."""

from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import Request, as_json, path
from agentid.client.results.messages import MessageVerification, Signature


class Messages(Group[S]):
    """Messages that agents sign."""

    @operation("signMessage")
    def sign(self, agent_id: str, *, payload: Any) -> Request[Signature]:
        """Sign a payload with an agent's managed key."""
        return Request(
            "POST",
            path("/v1/agents/{}/sign", agent_id),
            answers.data(Signature),
            **as_json({"payload": payload}),
        )

    @operation("verifyMessage")
    def verify(
        self, *, payload: Any, signature: str, certificate_serial: str
    ) -> Request[MessageVerification]:
        """Verify a message that an agent signed."""
        return Request(
            "POST",
            "/v1/verify/message",
            answers.data(MessageVerification),
            **as_json({"payload": payload, "signature": signature, "certificate_serial": certificate_serial}),
            repeatable=True,
        )
