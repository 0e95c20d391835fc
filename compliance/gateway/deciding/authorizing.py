"""Decide what gateways ask, together for all that asked at once.

Tokens, certificates and proofs take one trip to PostgreSQL and Redis. Routes that this process did not read a
moment ago take one before it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from certificates import services as certificates
from certificates.pki.serials import environment_of, parse_serial
from certificates.public.verification import first_query, second_query
from compliance.api.endpoint import Deferred
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.gateway.deciding import decisions, known_routes, violations
from compliance.gateway.deciding.decisions import Passage
from compliance.gateway.deciding.refusals import GatewayRefused, ScopeViolated, invalid_token, proof_refused
from compliance.gateway.deciding.requests import (
    DecisionRequest,
    PresentedCredential,
    action_of,
    credential_of,
    original_of,
)
from compliance.gateway.deciding.rules import PLAIN, RouteRules
from compliance.gateway.errors import RouteNotFound
from compliance.gateway.models import GatewayCredential
from compliance.stores.async_postgres import Rows
from compliance.stores.trips import Steps, Trip
from delegation import proofs, standing
from delegation import services as delegation
from delegation.errors import ProofRejected, RejectionReason
from delegation.jose.tokens import Delegation
from delegation.proofs import PresentedProof, Proof, ProofCheck

_MESSAGES = {
    RejectionReason.EXPIRED: "The token has expired",
    RejectionReason.NOT_YET_VALID: "The token is not valid yet",
}


@dataclass
class _Case:
    """A question on its way to its answer: `outcome` once there is one."""

    request: DecisionRequest
    rules: RouteRules = PLAIN
    action: str = ""
    credential: PresentedCredential = field(
        default_factory=lambda: PresentedCredential(GatewayCredential.SERIAL, "")
    )
    token: Delegation | None = None
    outcome: Passage | ServiceError | None = None

    @property
    def is_open(self) -> bool:
        return self.outcome is None

    @property
    def kind(self) -> GatewayCredential:
        return self.credential.kind

    @property
    def has_proof(self) -> bool:
        return self.kind is GatewayCredential.DPOP

    def invalid(self, message: str, reason: str) -> GatewayRefused:
        return invalid_token(self.rules, message, self.kind, reason)


def decide_in_steps(
    requests: Sequence[DecisionRequest],
) -> Steps[list[Passage | ServiceError | Deferred[Passage]]]:
    """Answer each question, in order; a violation of a scope is answered once it is on record.

    Nothing is remembered of an agent: each answer is by what the database says now.
    """
    cases = [_Case(request) for request in requests]
    yield from _find_routes(cases)
    _each(cases, _read_token)
    proven = [case for case in cases if case.is_open and case.has_proof]
    check = _begin_check(proven)
    # Before the trip, so that no row is read for a refused token.
    _refuse_unproven(proven, check.found)
    tokens = [case.token for case in cases if case.is_open and case.token is not None]
    serials = {
        number
        for case in cases
        if case.is_open and case.token is None and (number := _number(case.credential.text)) is not None
    }
    queries = [standing.query(tokens)] if tokens else []
    if serials:
        queries.append(first_query(serials, environments.current()))
    brought = yield Trip(queries, check.commands)
    _refuse_unproven(proven, check.settled(brought.answers))
    rows = iter(brought.rows)
    _decide_tokens(cases, tokens, next(rows) if tokens else [])
    _decide_serials(cases, (yield from _completed(serials, next(rows))) if serials else [])
    return [_answer(case) for case in cases]


def _completed(serials: Collection[int], rows: Rows) -> Steps[Rows]:
    """The rows of serial numbers, with those that the first query did not find."""
    rest = second_query(serials, rows, environments.current())
    if rest is None:
        return rows
    brought = yield Trip([rest])
    return [*rows, *brought.rows[0]]


def _answer(case: _Case) -> Passage | ServiceError | Deferred[Passage]:
    outcome = case.outcome
    if isinstance(outcome, ScopeViolated):
        return Deferred(
            partial(
                violations.recorded,
                outcome,
                request=case.request,
                kind=case.kind,
                route=case.rules.name,
                action=case.action,
            )
        )
    if outcome is None:
        raise RuntimeError("a case was left undecided")
    return outcome


def _each(cases: Iterable[_Case], step: Callable[[_Case], None]) -> None:
    """Take a step with every open case; an error ends it."""
    for case in cases:
        if case.is_open:
            try:
                step(case)
            except ServiceError as error:
                case.outcome = error


def _find_routes(cases: Sequence[_Case]) -> Steps[None]:
    """Find the rules, the action and the credential of each case."""
    found = yield from known_routes.find_in_steps(
        {(case.request.tenant_id, case.request.route) for case in cases if case.request.route is not None}
    )

    def step(case: _Case) -> None:
        request = case.request
        rules = PLAIN if request.route is None else found.get((request.tenant_id, request.route))
        if rules is None:
            raise RouteNotFound()
        case.rules = rules
        case.action = action_of(request, rules)
        case.credential = credential_of(request, rules)

    _each(cases, step)


def _read_token(case: _Case) -> None:
    """Verify what a token says itself: signature, issuer, times, environment, audience, binding.

    Token keys may have to be read, which the event loop leaves to a thread (`SteppedEndpoint`).
    """
    if case.kind is GatewayCredential.SERIAL:
        return
    found = delegation.verify(token=case.credential.text, now=case.request.now)
    token = found.delegation
    if token is None:
        reason = found.reason or RejectionReason.MALFORMED
        raise case.invalid(_MESSAGES.get(reason, "The token is not valid"), reason.value)
    if token.environment != environments.current().value:
        raise case.invalid("The token is not valid", RejectionReason.INVALID_ISSUER.value)
    if token.audience != case.rules.audience:
        raise case.invalid("The token is for another audience", "invalid_audience")
    if case.has_proof and token.bound_to is None:
        raise case.invalid("The token is bound to no key", "token_not_bound")
    if not case.has_proof and token.bound_to is not None:
        raise case.invalid("The token is bound to a key: present it with a proof", "token_bound")
    case.token = token
    if case.has_proof:
        if not case.credential.proof:
            raise proof_refused(case.rules, ProofRejected("the request has no DPoP header"))
        original_of(case.request)


def _begin_check(cases: Sequence[_Case]) -> ProofCheck:
    """Check the cases' proofs as far as possible without Redis."""
    presented = [
        PresentedProof(
            case.credential.proof,
            original_of(case.request).method,
            original_of(case.request).uri,
            case.credential.text,
            case.rules.nonce_required,
        )
        for case in cases
    ]
    return proofs.begin_check(presented, now=_now(cases)) if cases else ProofCheck([])


def _refuse_unproven(cases: Sequence[_Case], found: Sequence[Proof | ServiceError]) -> None:
    """Refuse the cases whose proof does not count, or is of another key than the token's."""
    for case, proof in zip(cases, found, strict=True):
        if isinstance(proof, ProofRejected):
            case.outcome = proof_refused(case.rules, proof)
        elif isinstance(proof, ServiceError):
            case.outcome = proof
        elif case.token is None or proof.jkt != case.token.bound_to:
            case.outcome = case.invalid("The token is bound to another key", "wrong_key")


def _decide_tokens(cases: Sequence[_Case], tokens: Sequence[Delegation], rows: Rows) -> None:
    """Decide the open cases with tokens, by the rows of `standing.query(tokens)`."""
    stands = standing.standings_from(tokens, rows, now=_now(cases))
    by_token = dict(zip(map(id, tokens), stands, strict=True))

    def step(case: _Case) -> None:
        if case.token is not None:
            case.outcome = decisions.of_token(
                case.rules,
                case.action,
                case.kind,
                case.token,
                by_token[id(case.token)],
                tenant_id=case.request.tenant_id,
            )

    _each(cases, step)


def _decide_serials(cases: Sequence[_Case], rows: Rows) -> None:
    """Decide the cases still open, which have serial numbers, by the rows of their certificates."""
    found = certificates.verifications(rows, environment=environments.current(), now=_now(cases))

    def step(case: _Case) -> None:
        number = _number(case.credential.text)
        verified = None if number is None else found.get(number)
        case.outcome = decisions.of_serial(
            case.rules, case.action, verified, tenant_id=case.request.tenant_id
        )

    _each(cases, step)


def _number(text: str) -> int | None:
    """The serial number in a header, if it is one of the current environment."""
    number = parse_serial(text)
    return number if number is not None and environment_of(number) is environments.current() else None


def _now(cases: Sequence[_Case]) -> datetime:
    return max(case.request.now for case in cases)
