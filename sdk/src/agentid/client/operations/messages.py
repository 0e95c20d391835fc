"""Messages that agents sign."""

from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.request import Request, as_json, given, path
from agentid.client.results.messages import MessageVerification, Signature


class Messages(Group[S]):
    """Messages that agents sign."""

    @operation("signMessage")
    def sign(
        self, agent_id: str, *, payload: Any, format_: str | None = None, audience: str | None = None
    ) -> Request[Signature]:
        """Sign a payload with an agent's managed key."""
        return Request(
            "POST",
            path("/v1/agents/{}/sign", agent_id),
            answers.data(Signature),
            **as_json({"payload": payload, **given(format=format_, audience=audience)}),
        )

    @operation("verifyMessage")
    def verify(
        self,
        *,
        payload: Any,
        signature: str | None = None,
        certificate_serial: str | None = None,
        jws: str | None = None,
        audience: str | None = None,
        verifier_agent_id: str | None = None,
    ) -> Request[MessageVerification]:
        """Verify a message that an agent signed."""
        return Request(
            "POST",
            "/v1/verify/message",
            answers.data(MessageVerification),
            **as_json(
                {"payload": payload}
                | given(
                    signature=signature,
                    certificate_serial=certificate_serial,
                    jws=jws,
                    audience=audience,
                    verifier_agent_id=verifier_agent_id,
                )
            ),
            repeatable=True,
        )
