"""`POST /oauth/token`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.endpoint import Deferred, EndpointRequest, ThreadEndpoint
from compliance.api.gate import GateRequest
from compliance.api.rest.endpoints import answered, question_of
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest, Credential
from compliance.api.rest.throttling import KeyThrottle
from compliance.core.errors import Forbidden, ServiceError
from compliance.observing import correlation
from compliance.stores import sql
from delegation import proofs
from delegation.issuing.groups import IssuedDelegation, Postponed
from delegation.oauth import clients, description, errors, exchange, forms, possession, serializers
from delegation.oauth.base import OAuthViewSet, form_of
from delegation.oauth.exchange import Possession, TokenExchange


class ExchangeQuestion(NamedTuple):
    """A request whose `proof`, a `DPoP` header, is not yet checked."""

    asked: TokenExchange
    proof: str | None


@dataclass(frozen=True)
class TokenAnswer:
    """An issued token; `nonce` is for the client's next proof."""

    issued: IssuedDelegation
    issued_type: str
    nonce: str | None


class ExchangeToken(ThreadEndpoint[ExchangeQuestion, TokenAnswer]):
    """`POST /oauth/token`: tokens that are asked for together share one commit."""

    method, path, allow = "POST", possession.TOKEN_PATH, "POST"
    scope, bucket = Scope.DELEGATIONS_ISSUE, KeyThrottle.bucket
    headers = {name.lower(): value for name, value in errors.NO_STORE.items()}
    takes_query = False
    media_types = frozenset({forms.MEDIA_TYPE})
    largest_group, longest_queue = 32, 500
    calls_tenants = True  # for the keys of an ID token's issuer

    def key_of(self, request: GateRequest, body: bytes) -> str:
        try:
            return clients.presented(request, partial(forms.parse, body)).secret
        except ServiceError:
            return ""

    def fits(self, request: GateRequest, body: bytes, key: Credential) -> bool:
        return clients.presented(request, partial(forms.parse, body)).client_id in (None, str(key.id))

    def body_of(self, octets: bytes) -> forms.Form:
        return forms.parse(octets)

    def read(self, request: EndpointRequest) -> ExchangeQuestion:
        if request.tenant_id is None or request.key_id is None:
            raise Forbidden()
        asked = TokenExchange(
            tenant_id=request.tenant_id,
            request=exchange.read(request.body),
            possession=Possession(bound_to=possession.bound_to(request.body)),
            actor=Actor.api_key(request.key_id),
            now=request.received_at,
            ids=correlation.current(),
        )
        return ExchangeQuestion(asked, request.headers.get("dpop"))

    def work(
        self, questions: Sequence[ExchangeQuestion]
    ) -> Sequence[TokenAnswer | ServiceError | Deferred[TokenAnswer]]:
        now = questions[-1].asked.now
        keys = proofs.proven_keys([(one.proof, self.path) for one in questions], now=now)
        proven = [
            key if isinstance(key, ServiceError) else _with_key(one.asked, key)
            for one, key in zip(questions, keys, strict=True)
        ]
        sound = [one for one in proven if isinstance(one, TokenExchange)]
        found = iter(exchange.exchange_each(sound) if sound else [])
        return [one if isinstance(one, ServiceError) else _outcome(one, next(found)) for one in proven]

    def show(self, outcome: TokenAnswer) -> Mapping[str, Any]:
        delegation = outcome.issued.delegation
        return {
            "access_token": outcome.issued.token,
            "issued_token_type": outcome.issued_type,
            "token_type": "DPoP" if delegation.bound_to else "Bearer",
            "expires_in": delegation.expires_at - delegation.issued_at,
            "scope": delegation.scope,
        }

    def headers_of(self, outcome: TokenAnswer) -> Mapping[str, str]:
        return {} if outcome.nonce is None else {"DPoP-Nonce": outcome.nonce}

    def refusal(
        self, error: Exception, request: GateRequest
    ) -> tuple[int, Mapping[str, str], Mapping[str, str]] | None:
        return errors.answer_to(error, request)

    def warm(self) -> None:
        """Connect the thread to the database."""
        sql.reach()


def _with_key(asked: TokenExchange, proven_key: str | None) -> TokenExchange:
    return replace(asked, possession=replace(asked.possession, proven_key=proven_key))


def _outcome(
    asked: TokenExchange, found: IssuedDelegation | ServiceError | Postponed
) -> TokenAnswer | ServiceError | Deferred[TokenAnswer]:
    if isinstance(found, Postponed):
        return Deferred(partial(_alone, asked))
    return found if isinstance(found, ServiceError) else _answer(asked, found)


def _alone(asked: TokenExchange) -> TokenAnswer | ServiceError:
    found = exchange.exchange(asked)
    return found if isinstance(found, ServiceError) else _answer(asked, found)


def _answer(asked: TokenExchange, issued: IssuedDelegation) -> TokenAnswer:
    return TokenAnswer(issued, asked.request.issued_type, possession.next_nonce(now=asked.now))


EXCHANGE_TOKEN = ExchangeToken()


class TokenViewSet(OAuthViewSet):
    schema_tag = "OAuth"
    required_scopes: ClassVar = {"create": EXCHANGE_TOKEN.scope}

    @extend_schema(
        operation_id="exchangeToken",
        summary="Exchange a token for a delegation to an agent (RFC 8693)",
        description=(
            "The new token's chain is the subject's and the agent that `actor_token` names. An ID token "
            "of a trusted issuer makes its root `verified`. The client is an API key with the scope "
            "`delegations:issue`: by HTTP Basic with its id and itself, in the body, or as a bearer."
        ),
        parameters=[description.DPOP],
        request={description.FORM: serializers.TokenRequestSerializer},
        examples=[description.EXCHANGE, description.EXCHANGED],
        responses={200: serializers.TokenResponseSerializer, **description.errors()},
    )
    def create(self, request: ApiRequest) -> Response:
        return answered(EXCHANGE_TOKEN, question_of(EXCHANGE_TOKEN, request, body=form_of(request)))
