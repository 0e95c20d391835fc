"""Chains, grants and tokens for tests."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.db.models import Q

from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from delegation import services
from delegation.issued import status_lists
from delegation.issuing.applications import Grant
from delegation.issuing.issuance import IssuedDelegation, row_of
from delegation.jose.jws import public_jwk
from delegation.jose.tokens import Chain, ChainActor, ChainActorType, Delegation, SubjectIdentifier
from delegation.lifecycle import KeyStatus
from delegation.models import IssuedToken, TokenKey
from delegation.token_keys import keys

ACTOR = Actor.system("tests")

CHAIN = [
    {"sub": "alice@example.com", "type": "human"},
    {"sub": "research-agent", "type": "agent"},
    {"sub": "price-checker", "type": "sub_agent"},
]

JKT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
"""The thumbprint of the key in RFC 9449's examples."""
VERIFIED = SubjectIdentifier("https://issuer.example", "248289761001")

_token_keys: Final[dict[Environment, TokenKey]] = {}


def make_token_key() -> TokenKey:
    """Return the environment's active token key; generated once in a test run, as that is slow.

    A test that destroys keys calls `services.bootstrap()` instead.
    """
    moment = now()
    known = _token_keys.get(environments.current())
    if known and not TokenKey.objects.filter(Q(status=KeyStatus.ACTIVE) | Q(kid=known.kid)).exists():
        row = TokenKey(
            kid=known.kid,
            uri=known.uri,
            public_jwk=known.public_jwk,
            status=KeyStatus.ACTIVE,
            published_at=moment,
            active_from=moment,
        )
        with environments.atomic():
            keys.add(row, actor=ACTOR, now=moment)
    key = services.bootstrap(now=moment)
    _token_keys.setdefault(environments.current(), key)
    return key


def forget_keys() -> None:
    """For a test that destroys keys which no row names: later tests get new ones."""
    _token_keys.clear()


def as_chain(actors: list[dict[str, str]]) -> Chain:
    return tuple(ChainActor(actor["sub"], ChainActorType(actor["type"])) for actor in actors)


def make_token(
    agent: Agent, *, at: datetime | None = None, parent_token: str | None = None, **grant: Any
) -> IssuedDelegation:
    """A token of the current environment, issued `at` a moment of choice."""
    fields, moment = {"chain": as_chain(CHAIN), **grant}, at or now()
    return services.issue(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        grant=Grant(**fields),
        parent=services.read_parent(token=parent_token, now=moment),
        actor=ACTOR,
        now=moment,
    )


def make_software_key() -> tuple[ec.EllipticCurvePrivateKey, str]:
    """A key of nobody's, for forgeries, and its kid."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key, public_jwk(key.public_key())["kid"]


def make_line(agents: Sequence[Agent]) -> list[IssuedDelegation]:
    """A token of the first agent, handed on by each of the others in turn; oldest first."""
    line: list[IssuedDelegation] = []
    for number, agent in enumerate(agents):
        chain = as_chain([{"sub": f"actor-{place}", "type": "agent"} for place in range(number + 1)])
        line.append(make_token(agent, chain=chain, parent_token=line[-1].token if line else None))
    return line


def make_issued_token(agent: Agent, *, principal: str = "price-checker") -> IssuedToken:
    """The row of a token that nobody signed."""
    moment = int(now().timestamp())
    delegation = Delegation.of(
        (*as_chain(CHAIN[:1]), ChainActor(principal, ChainActorType.AGENT)),
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=new_id(),
        agent_id=agent.id,
        issued_at=moment,
        not_before=moment,
        expires_at=moment + 3600,
        scope="read",
        certificate_serial=None,
    )
    row = row_of(agent.tenant_id, delegation, status_index=status_lists.next_index())
    row.save(force_insert=True)
    return row
