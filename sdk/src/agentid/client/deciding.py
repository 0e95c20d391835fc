"""Ask before an act, and wait for the person who is asked, by a client of either kind."""

import math
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Required, Self, TypedDict, Unpack

from agentid import errors
from agentid.client.generated.operations import Operations
from agentid.client.generated.results import AccessDecision, AccessReason, ApprovalDetail, WaitingApproval
from agentid.client.transport import completed, settled

ALLOW, PENDING, EXPIRED = "allow", "pending", "expired"
LONGEST_WAIT: Final = 30  # seconds, of one request
PAUSE: Final = 1.0  # seconds between requests that don't wait, or fail


class Act(TypedDict, total=False):
    """What an agent is about to do to `resource`, which has a `type` and an `id`.

    `action_type` and `details` are those of the event that would follow. `token` is the delegation token that
    the act is under.
    """

    resource: Required[Mapping[str, Any]]
    action_type: str | None
    details: Mapping[str, Any] | None
    token: str | None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether the agent may act: only if `decision` is true; `outcome` is allow, ask or deny.

    Of the outcome ask `approval` waits for a person. The event that follows may name the `decision_id`.
    """

    decision: bool
    outcome: str
    decision_id: str
    reasons: tuple[AccessReason, ...]
    risk_score: float | None
    risk_band: str | None
    approval: WaitingApproval | None

    @classmethod
    def of(cls, answer: AccessDecision) -> Self:
        """Read the answer to one evaluation. Raises: UnexpectedAnswer."""
        told = answer.context
        if told.outcome is None or told.decision_id is None or answer.decision != (told.outcome == ALLOW):
            raise errors.UnexpectedAnswer("not a decision")
        return cls(
            decision=answer.decision,
            outcome=told.outcome,
            decision_id=told.decision_id,
            reasons=told.reasons,
            risk_score=told.risk_score,
            risk_band=told.risk_band,
            approval=told.approval,
        )


def evaluation(agent_id: str, action: str, act: Act, approval: str | None = None) -> dict[str, Any]:
    """The arguments of `decisions.evaluate`."""
    told = {**act, "approval": approval}
    return {
        "subject": {"type": "agent", "id": agent_id},
        "action": {"name": action},
        "resource": told.pop("resource"),
        "context": {name: value for name, value in told.items() if value is not None},
    }


async def decided(client: Operations[Any], approval_id: str, seconds: float | None) -> ApprovalDetail:
    """The approval once it waits no longer, or as it is after so many seconds.

    Meanwhile a service that is away or busy is asked again, until the approval has expired by this machine's
    clock. Raises: what a call raises.
    """
    ends = math.inf if seconds is None else time.monotonic() + seconds
    longest = max(0, min(LONGEST_WAIT, int(client.transport.configuration.timeout) - 1))
    found: ApprovalDetail = await settled(client.approvals.get(approval_id))
    while found.status == PENDING and (left := ends - time.monotonic()) > 0:
        wait, rest = min(longest, int(min(left, longest))), None
        try:
            found = await settled(client.approvals.get(approval_id, wait=wait))
        except errors.PASSING as error:
            if found.expires_at <= datetime.now(UTC):
                raise
            rest = getattr(error, "retry_after", None) or PAUSE
        if rest is not None or (wait == 0 and found.status == PENDING):
            await settled(client.transport.pause(min(rest or PAUSE, max(ends - time.monotonic(), 0.0))))
    return found


async def allowed(
    client: Operations[Any], agent_id: str, action: str, act: Act, seconds: float | None
) -> Decision:
    """The decision that allows the act. Raises: NotAllowed, and what a call raises."""
    evaluate = client.decisions.evaluate
    decision = Decision.of(await settled(evaluate(**evaluation(agent_id, action, act))))
    approval_id = None
    if decision.approval is not None:
        approval_id = decision.approval.id
        found = await decided(client, approval_id, seconds)
        if found.receipt is None:
            raise _refusal(found, decision.decision_id)
        again = evaluation(agent_id, action, act, found.receipt)
        decision = Decision.of(await settled(evaluate(**again)))
    if not decision.decision:
        names = tuple(each.name for each in decision.reasons)
        kind = errors.ApprovalExpired if "approval_expired" in names else errors.Denied
        text = "; ".join(each.text for each in decision.reasons) or decision.outcome
        raise kind(text, decision_id=decision.decision_id, approval_id=approval_id, reasons=names)
    return decision


def _refusal(approval: ApprovalDetail, decision_id: str) -> errors.NotAllowed:
    """Why an approval has no receipt."""
    kind: type[errors.NotAllowed] = errors.Denied
    text = f"the approval is {approval.status}" + (f": {approval.note}" if approval.note else "")
    if approval.status == PENDING:
        kind, text = errors.ApprovalTimedOut, "nobody has decided yet"
    elif approval.status == EXPIRED:
        kind, text = errors.ApprovalExpired, "the approval has expired"
    return kind(text, decision_id=decision_id, approval_id=approval.id)


class Asking:
    """A block that is entered only if the agent may act; `with`, or `async with` for an `AsyncClient`."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, Decision]]) -> None:
        self._ask = ask

    def __enter__(self) -> Decision:
        return completed(self._ask())

    async def __aenter__(self) -> Decision:
        return await self._ask()

    def __exit__(self, *error: object) -> None:
        pass

    async def __aexit__(self, *error: object) -> None:
        pass


def asking(
    client: Operations[Any],
    agent_id: str,
    action: str,
    *,
    wait_seconds: float | None = None,
    **act: Unpack[Act],
) -> Asking:
    """Enter the block only if the agent may act; with an `AsyncClient` by `async with`. Yields the decision.

    If a person is asked, the block waits for the decision until the approval expires, or `wait_seconds`, and
    uses the receipt, which is good once: a block that fails must ask again.
    Raises on entry: Denied, ApprovalExpired, ApprovalTimedOut, and what a call raises.
    """
    return Asking(lambda: allowed(client, agent_id, action, act, wait_seconds))
