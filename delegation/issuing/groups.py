"""Issue tokens for requests that arrived together: each is decided by itself, one commit serves all.

The HSM signs before the transaction, and so does not hold up the locks on the agents. All checks are repeated
under those locks, so that no token is issued after a revocation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from django.db import DataError, IntegrityError

from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.observing import correlation
from compliance.stores import sql
from delegation.issued import rows, status_entries
from delegation.issuing import applications, decision_rows
from delegation.issuing.applications import Grant, TokenApplication
from delegation.issuing.authority import Authority, check_certificate
from delegation.issuing.decision_rows import GroupRows, Locking, WantedRows
from delegation.jose import jws, tokens
from delegation.jose.tokens import Delegation
from delegation.models import TokenKey
from delegation.token_keys import keyring, keys


@dataclass(frozen=True)
class IssuedDelegation:
    token: str
    delegation: Delegation


@dataclass(frozen=True)
class Postponed:
    """Stands for the outcome of a request that must be repeated alone.

    Its agent is locked by another transaction, or PostgreSQL refuses a row of its group.
    """


Outcome = IssuedDelegation | ServiceError | Postponed


class _KeyReplaced(Exception):
    """Another key signs by now; `active_keys` holds it, if there is one."""

    def __init__(self, active_keys: Sequence[TokenKey]) -> None:
        super().__init__()
        self.active_keys = active_keys


@dataclass
class _GroupMember:
    """A request of a group, open until it has an `outcome`: it is refused, or its group is committed."""

    asked: TokenApplication
    grant: Grant | None = None
    authority: Authority | None = None
    issued: IssuedDelegation | None = None
    outcome: Outcome | None = None

    @property
    def wanted(self) -> list[WantedRows]:
        asked = self.asked
        return [WantedRows(asked.tenant_id, asked.agent_id, asked.parent)] if asked.agent_id else []


def issue_each(asked: Sequence[TokenApplication]) -> list[Outcome]:
    """Return the outcome of each request, in order; called outside a transaction, after the commit.

    It waits for no lock on an agent. Raises: Django's errors; then nothing is stored.
    """
    return _outcomes(asked, Locking.FREE_ONES)


def issue_alone(asked: TokenApplication) -> IssuedDelegation:
    """Issue the token of one request, which waits for its agent. Raises: ServiceError, Django's errors."""
    (outcome,) = _outcomes([asked], Locking.WAIT)
    if isinstance(outcome, IssuedDelegation):
        return outcome
    if isinstance(outcome, ServiceError):
        raise outcome
    raise RuntimeError("a request that waits was postponed")


def _outcomes(asked: Sequence[TokenApplication], locking: Locking) -> list[Outcome]:
    cases = [_GroupMember(one) for one in asked]
    found = sql.read_again(lambda: decision_rows.read(_wanted(cases)))
    _each(cases, lambda case: _authorise(case, found))
    if _open(cases):
        _issue(cases, found, locking)
    return [_outcome(case) for case in cases]


def _outcome(case: _GroupMember) -> Outcome:
    if case.outcome is None:
        raise RuntimeError("a request was left undecided")
    return case.outcome


def _issue(cases: Sequence[_GroupMember], found: GroupRows, locking: Locking) -> None:
    """Sign and store the tokens of the open cases."""
    try:
        key = keys.the_active(found.active_keys)
        _sign(cases, key)
    except ServiceError as error:
        # An HSM that does not answer is not asked again for each of them.
        _end(cases, repeat(error))
        return
    try:
        with environments.atomic():
            _store(cases, key, found, locking)
    except (DataError, IntegrityError):
        if locking is Locking.WAIT:
            raise
        _end(cases, repeat(Postponed()))
        return
    except _KeyReplaced as replaced:
        _issue(cases, replace(found, active_keys=replaced.active_keys), locking)
        return
    keyring.add(key)
    _end(cases, [case.issued for case in _open(cases) if case.issued is not None])


def _sign(cases: Sequence[_GroupMember], key: TokenKey) -> None:
    """Make the tokens. Raises: ServiceError if the HSM does not sign."""
    signer, opened = keys.private_half(key), _open(cases)
    numbers = status_entries.next_indexes(len(opened))
    for case, number in zip(opened, numbers, strict=True):
        if case.grant is None or case.authority is None or case.asked.agent_id is None:
            raise RuntimeError("a request was not authorised")
        delegation = applications.delegation_for(
            case.asked, case.grant, case.asked.agent_id, case.authority, status_index=number
        )
        token = jws.sign(tokens.to_claims(delegation), kid=key.kid, key=signer)
        case.issued = IssuedDelegation(token, delegation)


def _store(cases: Sequence[_GroupMember], key: TokenKey, known: GroupRows, locking: Locking) -> None:
    """Lock the agents, decide each case again, and write the rows of those that stand.

    Raises: _KeyReplaced if the key may have been withdrawn while a lock was awaited.
    """
    found = decision_rows.read_locked(_wanted(_open(cases)), locking=locking, known=known)
    if key not in found.active_keys:
        raise _KeyReplaced(found.active_keys)
    _each(cases, lambda case: _confirm(case, found, locking))
    granted = [(case, case.issued.delegation) for case in _open(cases) if case.issued is not None]
    if granted:
        agents = {agent_id: party.agent for agent_id, party in found.issuers.items()}
        with sql.pipelined():
            sql.insert_all([rows.row_of(case.asked.tenant_id, one) for case, one in granted])
            auditlog.record_all([_entry(case, one, agents[one.agent_id], key) for case, one in granted])


def _entry(case: _GroupMember, delegation: Delegation, agent: Agent, key: TokenKey) -> AuditEntry:
    if case.authority is None:
        raise RuntimeError("a request was not authorised")
    with correlation.use(case.asked.ids):
        return auditlog.entry(
            tenant_id=agent.tenant_id,
            action=AuditAction.DELEGATION_ISSUED,
            affected_id=agent.id,
            description=f"Delegation to {delegation.principal} issued by agent {agent.name}",
            metadata=applications.audited(case.asked, delegation, case.authority, key_id=key.kid),
            actor=case.asked.actor,
            now=case.asked.now,
        )


def _authorise(case: _GroupMember, found: GroupRows) -> None:
    asked = case.asked
    of_case = found.of(tenant_id=asked.tenant_id, agent_id=asked.agent_id, parent=asked.parent)
    case.grant = asked.grant_to(of_case.issuer)
    case.authority = applications.check(asked, case.grant, of_case)


def _confirm(case: _GroupMember, found: GroupRows, locking: Locking) -> None:
    """Decide by the locked rows, which may have changed since the token was signed."""
    asked = case.asked
    try:
        of_case = found.of(tenant_id=asked.tenant_id, agent_id=asked.agent_id, parent=asked.parent)
    except AgentNotFound:
        if locking is Locking.WAIT:
            raise
        case.outcome = Postponed()
        return
    if case.grant is None or case.issued is None:
        raise RuntimeError("a request was not signed")
    case.authority = applications.check(asked, case.grant, of_case)
    check_certificate(case.authority, case.issued.delegation.certificate_serial)


def _wanted(cases: Sequence[_GroupMember]) -> list[WantedRows]:
    return [one for case in cases for one in case.wanted]


def _open(cases: Sequence[_GroupMember]) -> list[_GroupMember]:
    """The cases without an outcome."""
    return [case for case in cases if case.outcome is None]


def _end(cases: Sequence[_GroupMember], outcomes: Iterable[Outcome]) -> None:
    """Give each open case its outcome, in order."""
    for case, outcome in zip(_open(cases), outcomes, strict=False):
        case.outcome = outcome


def _each(cases: Sequence[_GroupMember], step: Callable[[_GroupMember], None]) -> None:
    """Take a step with every open case; a ServiceError becomes the outcome of its case."""
    for case in _open(cases):
        try:
            step(case)
        except ServiceError as error:
            case.outcome = error
