"""From what evaluations come to, to decisions: approvals are opened and used, and refusals put on record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import new_id_at
from compliance.observing import correlation
from gateway.access.questions import AccessQuestion, Evaluation
from gateway.access.weighing import AccessOutcome, AccessReason, Weighed, failed, shown_reasons
from gateway.approvals import services as approvals
from gateway.approvals.errors import ApprovalRefused, TooManyPending
from gateway.approvals.models import Approval

APPROVED: Final = AccessReason("approved", "A person approved this act")
TOLD: Final = 255  # characters of a client's word that are put on record


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The decision on one evaluation, under its id; `approval`: the one that waits for a person."""

    decision_id: UUID
    weighed: Weighed
    approval: Approval | None = None

    @property
    def is_allowed(self) -> bool:
        return self.weighed.outcome is AccessOutcome.ALLOW


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    decisions: Sequence[AccessDecision]
    is_single: bool


def asks(weighed: Sequence[Weighed]) -> bool:
    """Return whether a person may have to be asked, or a receipt used."""
    return any(one.outcome is AccessOutcome.ASK for one in weighed)


def settle(question: AccessQuestion, weighed: Sequence[Weighed]) -> AccessAnswer | ServiceError:
    """As `settle_together`, one question."""
    return settle_together([(question, weighed)])[0]


def settle_together(
    asked: Sequence[tuple[AccessQuestion, Sequence[Weighed]]],
) -> list[AccessAnswer | ServiceError]:
    """Decide questions, with the refusals of all on record in one transaction. Raises: Django's errors."""
    refusals: list[AuditEntry] = []
    answers = [_decided(question, weighed, refusals) for question, weighed in asked]
    if refusals:
        with environments.atomic():
            auditlog.record_all(refusals)
    return answers


def _decided(
    question: AccessQuestion, weighed: Sequence[Weighed], refusals: list[AuditEntry]
) -> AccessAnswer | ServiceError:
    """Decide evaluations in their order until one ends the request, and add the entries of its refusals."""
    made: list[AccessDecision] = []
    for evaluation, one in zip(question.evaluations, weighed, strict=True):
        found = AccessDecision(UUID(new_id_at(question.now)), one)
        if isinstance(evaluation, Evaluation):
            if one.outcome is AccessOutcome.ASK:
                found = _asked(question, evaluation, found)
            if found.weighed.outcome is AccessOutcome.DENY and found.weighed.error is None:
                refusals.append(_entry(question, evaluation, found))
        if question.is_single and found.weighed.error is not None:
            return found.weighed.error
        made.append(found)
        if not question.is_single and question.semantic.ends_with(decision=found.is_allowed):
            break
    return AccessAnswer(made, question.is_single)


def _asked(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AccessDecision:
    """Use the receipt of the evaluation, else ask a person; refuse if neither can be done."""
    weighed = decision.weighed
    if weighed.agent_id is None or weighed.verdict is None:
        raise RuntimeError("a person is asked about a known agent's scored act")
    act: dict[str, Any] = {
        "tenant_id": question.tenant_id,
        "agent_id": weighed.agent_id,
        "action_name": evaluation.action,
        "action_type": evaluation.action_type,
        "details": evaluation.act,
        "risk_band": weighed.verdict.band,
        "now": question.now,
    }
    try:
        if evaluation.receipt is None:
            return _opened(question, evaluation, decision, act)
        approvals.consume(receipt=evaluation.receipt, **act)
    except ApprovalRefused as refused:
        return _refused(decision, f"approval_{refused.reason}", refused.message)
    except TooManyPending as refused:
        return _refused(decision, "too_many_pending", refused.message)
    except ServiceError as error:
        return replace(decision, weighed=failed(error))
    reasons = [APPROVED, *weighed.reasons]
    return replace(decision, weighed=replace(weighed, outcome=AccessOutcome.ALLOW, reasons=reasons))


def _opened(
    question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision, act: Mapping[str, Any]
) -> AccessDecision:
    """Open an approval and put that on record, or find the one that waits, under the decision it is of.

    Raises: ApprovalRefused, TooManyPending, ServiceError.
    """
    weighed = decision.weighed
    with environments.atomic():
        found = approvals.open_approval(
            risk_score=None if weighed.verdict is None else weighed.verdict.score,
            reasons=shown_reasons(weighed),
            ttl_seconds=weighed.ttl_seconds,
            decision_id=decision.decision_id,
            actor=Actor.api_key(question.key_id),
            **act,
        )
        opened = AccessDecision(found.decision_id or decision.decision_id, weighed, found)
        if found.decision_id in (None, decision.decision_id):
            auditlog.record_all([_entry(question, evaluation, opened)])
    return opened


def _refused(decision: AccessDecision, name: str, text: str) -> AccessDecision:
    reasons = [AccessReason(name, text), *decision.weighed.reasons]
    return replace(decision, weighed=replace(decision.weighed, outcome=AccessOutcome.DENY, reasons=reasons))


def _entry(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AuditEntry:
    weighed, approval, verdict = decision.weighed, decision.approval, decision.weighed.verdict
    became = "denied" if approval is None else "put to a person"
    with correlation.use(question.ids):
        return auditlog.entry(
            tenant_id=question.tenant_id,
            action=AuditAction.DECISION_DENIED if approval is None else AuditAction.DECISION_ASKED,
            affected_id=weighed.agent_id or decision.decision_id,
            description=f"An act was {became}: {weighed.reasons[0].text}",
            metadata={
                "decision_id": str(decision.decision_id),
                "agent_id": None if weighed.agent_id is None else str(weighed.agent_id),
                "subject": evaluation.subject[:TOLD],
                "action": evaluation.action,
                "resource": f"{evaluation.resource['type']}:{evaluation.resource['id']}"[:TOLD],
                "reasons": [reason.name for reason in weighed.reasons],
                "risk_score": None if verdict is None else verdict.score,
                "risk_band": None if verdict is None else verdict.band,
                "approval_id": None if approval is None else str(approval.id),
            },
            actor=Actor.api_key(question.key_id),
            now=question.now,
        )


def shown(answer: AccessAnswer) -> dict[str, Any]:
    """The answer in the form of the standard (§6.2, §7.2)."""
    made = [_shown(decision) for decision in answer.decisions]
    return made[0] if answer.is_single else {"evaluations": made}


def _shown(decision: AccessDecision) -> dict[str, Any]:
    weighed, approval = decision.weighed, decision.approval
    if weighed.error is not None:
        error = {"status": weighed.error.status, "message": weighed.error.message}
        return {"decision": False, "context": {"error": error}}
    context: dict[str, Any] = {
        "outcome": weighed.outcome.value,
        "decision_id": str(decision.decision_id),
        "reasons": shown_reasons(weighed),
        "risk_score": None if weighed.verdict is None else weighed.verdict.score,
        "risk_band": None if weighed.verdict is None else weighed.verdict.band,
    }
    if approval is not None:
        waiting = {"id": str(approval.id), "status": approval.status, "expires_at": approval.expires_at}
        context["approval"] = waiting
    return {"decision": decision.is_allowed, "context": context}
