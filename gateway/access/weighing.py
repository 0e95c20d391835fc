"""What evaluations come to before anybody is asked: allow, ask or deny, by what is known of the agents now.

The checks are those of the gateway, and the score is the one that the event would get. Nothing is written,
learned or counted, so that a question can be asked as often as one likes.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from agents.models import AgentStatus
from certificates.models import AGENT_AND_LATEST, status_by_clock
from certificates.public.verification import query_of, verifications
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.stores import asking, sql
from compliance.stores.asking import ThreadAsker
from delegation import services as delegation
from delegation.jose.tokens import Delegation
from delegation.standing import Shortcoming, standings
from events.ingest import standing
from events.ingest.ingestion import drafts_of
from events.ingest.standing import AgentStanding
from events.models import RiskBand
from events.risk import baselines, snapshots
from events.risk.scoring.contract import Event, RiskVerdict
from events.risk.scoring.model import fold, in_words
from events.risk.scoring.rules import RULES
from gateway.access.questions import AccessQuestion, Evaluation
from gateway.deciding import known_policies
from gateway.deciding.decisions import OF_AGENT, OF_SHORTCOMING, of_token, stopped_by
from gateway.deciding.known_policies import TenantPolicies
from gateway.deciding.known_routes import PLAIN
from gateway.deciding.refusals import SCOPE_VIOLATION, GatewayRefused
from gateway.models import GatewayCredential

FORBIDDEN: Final = frozenset(RULES) - {"reported_unauthorized", "repeated_anomaly"}
"""The broken rules that are limits of the agent, which no person's approval widens."""
_STATES: Final = f"""
SELECT agent.id::text, agent.status, latest.status, latest.expires_at
FROM {AGENT_AND_LATEST} WHERE agent.id = ANY(%s::uuid[])
"""  # noqa: S608  (only names of tables are put into the text)


class AccessOutcome(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class AccessReason(NamedTuple):
    """Why a decision came out as it did: a name for programs, and a sentence."""

    name: str
    text: str


UNKNOWN: Final = AccessReason("subject_unknown", "The subject is unknown")
NOT_ACTIVE: Final = AccessReason("agent_not_active", OF_SHORTCOMING[Shortcoming.NOT_ACTIVE])
NOT_CERTIFIED: Final = AccessReason("agent_not_certified", OF_SHORTCOMING[Shortcoming.NOT_CERTIFIED])
UNDECLARED: Final = AccessReason("scope_undeclared", "The agent declares no permitted actions")
OUTSIDE: Final = AccessReason("scope_violation", SCOPE_VIOLATION)
ALWAYS: Final = AccessReason("always_ask", "A person is asked before every act of this name")
RISK: Final = AccessReason("risk_high", "The risk of the act is high")


@dataclass(frozen=True, slots=True)
class Weighed:
    """What one evaluation comes to; `agent_id` None for an unknown subject, `verdict` for an unscored one.

    `error`: of an evaluation that could not be made. `ttl_seconds`: how long an approval would wait.
    """

    outcome: AccessOutcome
    reasons: Sequence[AccessReason]
    agent_id: UUID | None = None
    verdict: RiskVerdict | None = None
    ttl_seconds: int = 0
    error: ServiceError | None = None


@dataclass
class _Pending:
    """An evaluation on its way: `outcome` once there is one."""

    question: AccessQuestion
    evaluation: Evaluation
    agent_id: str | None
    agent: AgentStanding | None = None
    outcome: Weighed | None = None

    def deny(self, *reasons: AccessReason, verdict: RiskVerdict | None = None) -> None:
        known = None if self.agent is None else UUID(self.agent.id)
        self.outcome = Weighed(AccessOutcome.DENY, reasons, known, verdict)


def weigh_all(questions: Sequence[AccessQuestion]) -> list[list[Weighed]]:
    """What each evaluation of each question comes to, in order. Raises: Django's errors."""
    now = max(question.now for question in questions)
    weighed: list[list[_Pending | Weighed]] = [
        [
            _Pending(question, one, one.agent_id) if isinstance(one, Evaluation) else failed(one)
            for one in question.evaluations
        ]
        for question in questions
    ]
    cases = [case for found in weighed for case in found if isinstance(case, _Pending)]
    if cases:
        _find_certified(cases, now)
        _find_agents(cases, now)
        _check_tokens(cases, now)
        _score(cases, now)
    return [[_settled(case) if isinstance(case, _Pending) else case for case in found] for found in weighed]


def _settled(case: _Pending) -> Weighed:
    if case.outcome is None:
        raise RuntimeError("a case was left undecided")
    return case.outcome


def failed(error: ServiceError) -> Weighed:
    """An evaluation that met an error: nothing is allowed by it, and nothing is said of its subject."""
    return Weighed(AccessOutcome.DENY, (), error=error)


def _open(cases: Sequence[_Pending]) -> Iterator[_Pending]:
    return (case for case in cases if case.outcome is None)


def _find_certified(cases: Sequence[_Pending], now: datetime) -> None:
    """Find the agents of the certificates that are subjects; an inactive certificate is refused later."""
    serials = {case.evaluation.serial for case in cases} - {None}
    if not serials:
        return
    rows = sql.asked(*query_of(serial for serial in serials if serial is not None))
    found = verifications(rows, environment=environments.current(), now=now)
    for case in cases:
        known = found.get(case.evaluation.serial) if case.evaluation.serial is not None else None
        if known is not None and known.certificate.tenant_id == case.question.tenant_id:
            case.agent_id = str(known.certificate.agent_id)
            if fault := stopped_by(known.certificate.agent.status, known.status):
                reason = AccessReason(fault.value, OF_AGENT[fault])
                case.outcome = Weighed(AccessOutcome.DENY, [reason], known.certificate.agent_id)


def _find_agents(cases: Sequence[_Pending], now: datetime) -> None:
    """Find how the agents stand, and refuse who may not act; another tenant's agent is an unknown one."""
    named = {(one.question.tenant_id, one.agent_id) for one in _open(cases) if one.agent_id is not None}
    found = standing.of_agents(named, now=now) if named else {}
    stopped = []
    for case in _open(cases):
        agent = found.get(case.agent_id or "")
        if agent is None or agent.profile.tenant_id != case.question.tenant_id:
            case.deny(UNKNOWN)
        elif not agent.may_report:
            case.agent = agent
            stopped.append((case, agent.id))
        else:
            case.agent = agent
            _check_scope(case, agent)
    why = _stopped({agent_id for _, agent_id in stopped}, now) if stopped else {}
    for case, agent_id in stopped:
        case.deny(why.get(agent_id, NOT_ACTIVE))


def _stopped(agent_ids: Collection[str], now: datetime) -> Mapping[str, AccessReason]:
    """Why each of the agents may not act; without those that have become active meanwhile."""
    found = {}
    for agent_id, status, certified, expires_at in sql.prepared(_STATES, [sql.array(agent_ids)]):
        by_clock = "" if certified is None else status_by_clock(certified, expires_at, now)
        if fault := stopped_by(status, by_clock):
            found[agent_id] = AccessReason(fault.value, OF_AGENT[fault])
        elif status == AgentStatus.ACTIVE and certified is None:
            found[agent_id] = NOT_CERTIFIED
    return found


def _check_scope(case: _Pending, agent: AgentStanding) -> None:
    scope = agent.profile.scope
    if scope is None:
        case.deny(UNDECLARED)
    elif case.evaluation.action not in scope:
        case.deny(OUTSIDE)


def _check_tokens(cases: Sequence[_Pending], now: datetime) -> None:
    """Refuse the cases whose delegation token does not cover the act.

    That the holder of a bound token has its key is for the caller to check, who met the holder.
    """
    given: list[tuple[_Pending, Delegation]] = []
    for case in _open(cases):
        if case.evaluation.token is None:
            continue
        try:
            found = delegation.verify_here(token=case.evaluation.token, now=now)
        except ServiceError as error:
            case.outcome = failed(error)
            continue
        if found.delegation is None:
            case.deny(AccessReason(f"token_{found.reason}", "The token is not valid"))
        elif str(found.delegation.agent_id) != case.agent_id:
            case.deny(AccessReason("token_wrong_agent", "The token is another agent's"))
        else:
            given.append((case, found.delegation))
    stands = standings([token for _, token in given], now=now)
    for (case, token), standing_now in zip(given, stands, strict=True):
        action, tenant_id = case.evaluation.action, case.question.tenant_id
        try:
            of_token(PLAIN, action, GatewayCredential.BEARER, token, standing_now, tenant_id=tenant_id)
        except GatewayRefused as refused:
            case.deny(AccessReason(f"token_{refused.reason}", refused.message))


def _score(cases: Sequence[_Pending], now: datetime) -> None:
    """Score what is left, and compare each score with the policy that counts."""
    scored = [(case, case.agent) for case in _open(cases) if case.agent is not None]
    if not scored:
        return
    asked = [
        (agent, Event(case.evaluation.action_type, now.timestamp(), case.evaluation.details))
        for case, agent in scored
    ]
    agents = {(case.question.tenant_id, UUID(agent.id)) for case, agent in scored}
    policies = asking.run(known_policies.find(agents, ThreadAsker()))
    for (case, agent), verdict in zip(scored, _foreseen(asked, now=now), strict=True):
        _judge(case, agent, verdict, policies[case.question.tenant_id])


def _judge(case: _Pending, agent: AgentStanding, verdict: RiskVerdict, policies: TenantPolicies) -> None:
    told = [AccessReason(reason.name, in_words(reason.name)) for reason in verdict.reasons]
    broken = [reason for reason in told if reason.name in FORBIDDEN]
    if broken:
        case.deny(*broken, verdict=verdict)
        return
    agent_id = UUID(agent.id)
    policy, action = policies.policy_for(agent_id), case.evaluation.action
    if policy.asks(action, verdict.band):
        reasons = [ALWAYS, *told] if action in policy.always_ask else told
        case.outcome = Weighed(AccessOutcome.ASK, reasons, agent_id, verdict, policy.ttl_seconds)
    elif verdict.band == RiskBand.HIGH:
        case.deny(RISK, *told, verdict=verdict)
    else:
        case.outcome = Weighed(AccessOutcome.ALLOW, told, agent_id, verdict)


def shown_reasons(weighed: Weighed) -> list[dict[str, Any]]:
    """The reasons for JSON; those of the score with what was observed and expected."""
    scored = {} if weighed.verdict is None else {one.name: one for one in weighed.verdict.reasons}
    shown: list[dict[str, Any]] = []
    for reason in weighed.reasons:
        more = scored.get(reason.name)
        facts = {} if more is None else {"observed": more.observed, "expected": more.expected}
        shown.append({"name": reason.name, "text": reason.text, **facts})
    return shown


def _foreseen(asked: Sequence[tuple[AgentStanding, Event]], *, now: datetime) -> list[RiskVerdict]:
    """The verdict that each event would get as the next one of its agent; nothing is stored or learned."""
    agents = {agent.id: agent for agent, _ in asked}
    states = {agent_id: draft.state for agent_id, draft in drafts_of(agents.values(), {}, now=now).items()}
    for agent_id in agents.keys() - states.keys():
        has_limits = agents[agent_id].has_limits
        states[agent_id] = snapshots.rebuild(agent_id=agent_id, has_limits=has_limits, now=now)
    lent = baselines.of_tenants({agent.profile.tenant_id for agent in agents.values()}, now=now)
    found, left = [], Counter(agent.id for agent, _ in asked)
    for agent, event in asked:
        left[agent.id] -= 1
        # Folding an event in changes the state.
        state = states[agent.id].changeable() if left[agent.id] else states[agent.id]
        found.append(fold(state, event, agent.profile.context, lent.get(agent.profile.tenant_id)))
    return found
