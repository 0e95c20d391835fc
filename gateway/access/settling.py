"""From what evaluations come to, to decisions: approvals are opened and used, and refusals put on record."""

from collections.abc import Callable, Sequence
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
    """Return whether a person may have to be asked, or an approval used."""
    return any(one.outcome is AccessOutcome.ASK for one in weighed)


def settle_together(
    asked: Sequence[tuple[AccessQuestion, Sequence[Weighed]]],
) -> list[AccessAnswer | ServiceError]:
    """Decide questions of which none asks a person, with their refusals on record in one transaction.

    Raises: Django's errors.
    """
    entries: list[AuditEntry] = []

    def note(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AccessDecision:
        entries.append(_entry(question, evaluation, decision))
        return decision

    answers = [_decided(question, weighed, note) for question, weighed in asked]
    if entries:
        with environments.atomic():
            auditlog.record_all(entries)
    return answers


def settle(question: AccessQuestion, weighed: Sequence[Weighed]) -> AccessAnswer | ServiceError:
    """Decide one question, with each evaluation in a transaction of its own. Raises: Django's errors."""

    def record(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AccessDecision:
        try:
            with environments.atomic():
                return _recorded(question, evaluation, decision)
        except ServiceError as error:
            return replace(decision, weighed=failed(error))

    return _decided(question, weighed, record)


def _decided(
    question: AccessQuestion,
    weighed: Sequence[Weighed],
    write: Callable[[AccessQuestion, Evaluation, AccessDecision], AccessDecision],
) -> AccessAnswer | ServiceError:
    """Decide evaluations in their order until one ends the request; `write` what is not plainly allowed."""
    made: list[AccessDecision] = []
    for evaluation, one in zip(question.evaluations, weighed, strict=True):
        found = AccessDecision(UUID(new_id_at(question.now)), one)
        if isinstance(evaluation, Evaluation) and one.error is None and not found.is_allowed:
            found = write(question, evaluation, found)
        if question.is_single and found.weighed.error is not None:
            return found.weighed.error
        made.append(found)
        if not question.is_single and question.semantic.ends_with(decision=found.is_allowed):
            break
    return AccessAnswer(made, question.is_single)


def _recorded(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AccessDecision:
    """Ask a person, use the given approval, or refuse, and put it on record. Raises: ServiceError."""
    if decision.weighed.outcome is AccessOutcome.ASK:
        try:
            decision = _asked(question, evaluation, decision)
        except ApprovalRefused as refused:
            decision = _refused(decision, f"approval_{refused.reason}", refused.message)
        except TooManyPending as refused:
            decision = _refused(decision, "too_many_pending", refused.message)
        opened_by = None if decision.approval is None else decision.approval.decision_id
        if opened_by is not None and opened_by != decision.decision_id:
            # It waited already, and is on record under the decision that opened it.
            return replace(decision, decision_id=opened_by)
        if decision.is_allowed:
            return decision
    auditlog.record_all([_entry(question, evaluation, decision)])
    return decision


def _asked(question: AccessQuestion, evaluation: Evaluation, decision: AccessDecision) -> AccessDecision:
    """Use the approval of the evaluation, else open one or find the one that waits for the same act.

    Raises: ApprovalRefused, TooManyPending, ServiceError.
    """
    weighed, agent_id = decision.weighed, decision.weighed.agent_id
    if agent_id is None or weighed.verdict is None:
        raise RuntimeError("a person is asked about a known agent's scored act")
    act: dict[str, Any] = {
        "tenant_id": question.tenant_id,
        "agent_id": agent_id,
        "action_name": evaluation.action,
        "details": evaluation.act,
        "now": question.now,
    }
    if evaluation.approval is not None:
        approvals.consume(
            receipt=evaluation.approval,
            action_type=evaluation.action_type,
            risk_band=weighed.verdict.band,
            **act,
        )
        return replace(
            decision,
            weighed=replace(weighed, outcome=AccessOutcome.ALLOW, reasons=[APPROVED, *weighed.reasons]),
        )
    found = approvals.open_approval(
        action_type=evaluation.action_type,
        risk_score=weighed.verdict.score,
        risk_band=weighed.verdict.band,
        reasons=shown_reasons(weighed),
        ttl_seconds=weighed.ttl_seconds,
        decision_id=decision.decision_id,
        actor=Actor.api_key(question.key_id),
        **act,
    )
    return AccessDecision(decision.decision_id, weighed, found)


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
