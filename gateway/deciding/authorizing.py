"""Decide what gateways ask, together for all that asked at once.

PostgreSQL and Redis are asked once for tokens, certificates and proofs, and PostgreSQL before that for routes
that this process did not read a moment ago.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from certificates.pki.serials import environment_of, parse_serial
from certificates.public import verification
from certificates.public.verification import query_of, query_of_agents
from compliance.api.endpoint import Deferred
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.stores.asking import Asker
from compliance.stores.async_postgres import Query
from delegation import proofs, services as delegation, standing
from delegation.agent_keys import message_signatures
from delegation.agent_keys.errors import SignatureFault, SignatureRejected
from delegation.agent_keys.message_signatures import RequestSignature, SignedRequest
from delegation.agent_keys.models import AgentKey
from delegation.errors import ProofRejected, RejectionReason
from delegation.jose.dpop import Proof
from delegation.jose.tokens import Delegation
from delegation.proofs import PresentedProof, ProofCheck
from gateway.deciding import approving, decisions, known_policies, known_routes, violations
from gateway.deciding.decisions import Passage
from gateway.deciding.known_policies import TenantPolicies
from gateway.deciding.known_routes import PLAIN
from gateway.deciding.refusals import (
    GatewayRefused,
    ScopeViolated,
    invalid_token,
    proof_refused,
    signature_refused,
)
from gateway.deciding.requests import DecisionRequest, action_of, credential_of, original_of
from gateway.models import GatewayCredential, GatewayRoute, RouteNotFound

_COLUMNS = [field.attname for field in AgentKey._meta.concrete_fields]
_KEYS = f"""
SELECT {", ".join(_COLUMNS)} FROM {AgentKey._meta.db_table}
WHERE thumbprint = ANY($1::text[]) AND revoked_at IS NULL
"""  # noqa: S608  (only names of columns and of a table are put into the text)
_MESSAGES = {
    RejectionReason.EXPIRED: "The token has expired",
    RejectionReason.NOT_YET_VALID: "The token is not valid yet",
}


@dataclass
class _Case:
    """A question on its way to its answer: `outcome` once there is one.

    `text`: the token, or the serial number, which is `number` if it is one of the current environment.
    `signed`: what the `signature` by the agent's `key` proves.
    """

    request: DecisionRequest
    route: GatewayRoute = PLAIN
    action: str = ""
    kind: GatewayCredential = GatewayCredential.SERIAL
    text: str = ""
    number: int | None = None
    token: Delegation | None = None
    signature: RequestSignature | None = None
    key: AgentKey | None = None
    signed: Proof | None = None
    outcome: Passage | ServiceError | None = None

    @property
    def is_open(self) -> bool:
        return self.outcome is None

    def refusal(self, error: ServiceError) -> ServiceError:
        """The error, that of a proof or signature in the form that is for clients."""
        if isinstance(error, SignatureRejected):
            return signature_refused(self.route, error, now=self.request.now)
        return proof_refused(self.route, error) if isinstance(error, ProofRejected) else error

    def invalid(self, message: str, reason: str) -> GatewayRefused:
        return invalid_token(self.route, message, self.kind, reason)


async def decide(
    requests: Sequence[DecisionRequest], asker: Asker
) -> list[Passage | ServiceError | Deferred[Passage]]:
    """Answer each question, in order; a violation of a scope is answered once it is on record.

    Nothing is remembered of an agent: each answer is by what the database says now.
    """
    cases = [_Case(request) for request in requests]
    moment = max(request.now for request in requests)
    named = {(one.tenant_id, one.route) for one in requests if one.route is not None}
    routes = await known_routes.find(named, asker)
    _each(cases, lambda case: _read(case, routes))
    keys = await _keys_of(cases, asker)
    _each(cases, lambda case: _verify_signature(case, keys))
    proven = [case for case in cases if case.is_open and case.kind.is_proven]
    check = ProofCheck([_proof(case, now=moment) for case in proven])
    # Before anybody is asked, so that no row is read for a refused token.
    _refuse_unproven(proven, check.found)
    tokens = [case.token for case in cases if case.is_open and case.token is not None]
    serials = {case.number for case in cases if case.is_open and case.number is not None}
    signers = {case.key.agent_id for case in cases if case.is_open and case.key is not None}
    queries = [
        *([standing.query(tokens, now=moment)] if tokens else []),
        *([query_of(serials)] if serials else []),
        *([query_of_agents(signers)] if signers else []),
    ]
    found, answers = await asker.ask(queries, check.commands)
    _refuse_unproven(proven, check.settled(answers))
    rows = iter(found)
    stands = standing.standings_from(tokens, next(rows) if tokens else [], now=moment)
    by_token = dict(zip(map(id, tokens), stands, strict=True))
    verified = verification.verifications(
        next(rows) if serials else [], environment=environments.current(), now=moment
    )
    of_signers = verification.by_agent(next(rows) if signers else [], now=moment)

    def settle(case: _Case) -> None:
        route, action, tenant_id = case.route, case.action, case.request.tenant_id
        if case.token is not None:
            stand = by_token[id(case.token)]
            case.outcome = decisions.of_token(
                route, action, case.kind, case.token, stand, tenant_id=tenant_id
            )
        elif case.key is not None:
            found, owner = of_signers.get(case.key.agent_id), case.key.tenant_id
            case.outcome = decisions.of_signature(route, action, found, owner=owner, tenant_id=tenant_id)
        else:
            certificate = None if case.number is None else verified.get(case.number)
            case.outcome = decisions.of_serial(route, action, certificate, tenant_id=tenant_id)

    _each(cases, settle)
    passing = {
        (case.request.tenant_id, case.outcome.agent_id) for case in cases if isinstance(case.outcome, Passage)
    }
    policies = await known_policies.find(passing, asker) if passing else {}
    return [_answer(case, policies) for case in cases]


def _answer(
    case: _Case, policies: Mapping[UUID, TenantPolicies]
) -> Passage | ServiceError | Deferred[Passage]:
    outcome, route = case.outcome, case.route
    if isinstance(outcome, Passage):
        of_tenant = policies[case.request.tenant_id]
        policy = of_tenant.policy_for(outcome.agent_id, route.id if route.name else None)
        if policy.asks(outcome.action, outcome.risk_band):
            return Deferred(partial(approving.settled, outcome, request=case.request, policy=policy))
    if isinstance(outcome, ScopeViolated):
        record = partial(violations.recorded, outcome, request=case.request, kind=case.kind)
        return Deferred(partial(record, route=case.route.name, action=case.action))
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
                case.outcome = case.refusal(error)


def _read(case: _Case, routes: Mapping[tuple[UUID, str], GatewayRoute]) -> None:
    """Find the route, the action and the credential; read a serial number, or what a token says itself."""
    request = case.request
    if request.route is not None:
        route = routes.get((request.tenant_id, request.route))
        if route is None:
            raise RouteNotFound()
        case.route = route
    case.action = action_of(request, case.route)
    case.kind, case.text = credential_of(request, case.route)
    if case.kind is GatewayCredential.HTTPSIG:
        _read_signature(case)
    elif case.kind is not GatewayCredential.SERIAL:
        _read_token(case)
    elif (number := parse_serial(case.text)) and environment_of(number) is environments.current():
        case.number = number


def _read_token(case: _Case) -> None:
    """Verify what a token says itself: signature, issuer, times, environment, audience, binding.

    Token keys may have to be read, which the event loop leaves to a thread (`LoopEndpoint`).
    """
    found = delegation.verify(token=case.text, now=case.request.now)
    token, has_proof = found.delegation, case.kind is GatewayCredential.DPOP
    if token is None:
        reason = found.reason or RejectionReason.MALFORMED
        raise case.invalid(_MESSAGES.get(reason, "The token is not valid"), reason.value)
    if token.environment != environments.current().value:
        raise case.invalid("The token is not valid", RejectionReason.INVALID_ISSUER.value)
    if token.audience != case.route.audience:
        raise case.invalid("The token is for another audience", "invalid_audience")
    if has_proof and token.bound_to is None:
        raise case.invalid("The token is bound to no key", "token_not_bound")
    if not has_proof and token.bound_to is not None:
        raise case.invalid("The token is bound to a key: present it with a proof", "token_bound")
    case.token = token
    if has_proof:
        if not case.request.proof:
            raise ProofRejected("the request has no DPoP header")
        original_of(case.request)


def _read_signature(case: _Case) -> None:
    original, now = original_of(case.request), case.request.now
    asked = SignedRequest(original.method, original.uri, case.request.headers)
    case.signature = message_signatures.read(asked, now=now)
    if case.route.nonce_required and not proofs.is_accepted(case.signature.nonce or "", now=now):
        raise SignatureRejected(SignatureFault.NONCE, "it must carry the nonce given here")


async def _keys_of(cases: Iterable[_Case], asker: Asker) -> Mapping[str, AgentKey]:
    """The keys in force that signed requests name, by thumbprint, in the current environment."""
    keyids = [case.signature.keyid for case in cases if case.is_open and case.signature is not None]
    if not keyids:
        return {}
    (rows,), _ = await asker.ask([Query(_KEYS, [keyids])])
    found = [AgentKey.from_db(environments.alias(), _COLUMNS, row) for row in rows]
    return {key.thumbprint: key for key in found}


def _verify_signature(case: _Case, keys: Mapping[str, AgentKey]) -> None:
    if case.signature is not None:
        case.key = keys.get(case.signature.keyid)
        if case.key is None:
            raise SignatureRejected(SignatureFault.KEY_UNKNOWN, "no agent has this key in force")
        case.signed = case.signature.checked(case.key.holder)


def _proof(case: _Case, *, now: datetime) -> Proof | ServiceError:
    """The proof in a request, not yet checked for replay, or why it does not hold."""
    if case.signed is not None:
        return case.signed
    original = original_of(case.request)
    proof, needs_nonce = case.request.proof or "", case.route.nonce_required
    presented = PresentedProof(proof, original.method, original.uri, case.text, needs_nonce)
    return proofs.begin_check([presented], now=now).found[0]


def _refuse_unproven(cases: Sequence[_Case], found: Sequence[Proof | ServiceError]) -> None:
    """Refuse the cases whose proof does not count, or is of another key than the token's."""
    for case, proof in zip(cases, found, strict=True):
        if case.signature is not None and isinstance(proof, ProofRejected):
            # Of a signature that is right, only a second use is refused.
            case.outcome = case.refusal(SignatureRejected(SignatureFault.USED, "it was used before"))
        elif isinstance(proof, ServiceError):
            case.outcome = case.refusal(proof)
        elif case.signature is None and (case.token is None or proof.jkt != case.token.bound_to):
            case.outcome = case.invalid("The token is bound to another key", "wrong_key")
