"""A hierarchy of software keys, for the pure modules: no token, no database."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from certificates.pki.identity_extension import IdentityClaims
from certificates.pki.names import authority_name
from certificates.pki.serials import new_serial
from certificates.pki.x509 import (
    CertificateProfile,
    CertifiedAgent,
    IssuerInfo,
    LeafExpectation,
    Validity,
    authority_builder,
    leaf_builder,
    sign,
)
from compliance.core.environments import Environment

NOW: Final = datetime.now(UTC)
BASE_URL: Final = "http://127.0.0.1:8000"
PROFILE: Final = CertificateProfile(oid_arc="1.3.6.1.4.1.32473.1")
AGENT_ID: Final = UUID("0192e4a0-0000-7000-8000-000000000001")
DID: Final = f"did:service:live:{AGENT_ID}"


@dataclass(frozen=True)
class SoftwareCa:
    """Root and issuing CA with their keys."""

    root: IssuerInfo
    root_key: rsa.RSAPrivateKey
    issuer: IssuerInfo
    issuer_key: rsa.RSAPrivateKey


@cache
def make_rsa_key(purpose: str) -> rsa.RSAPrivateKey:
    """One RSA-2048 key for each purpose in a test run."""
    del purpose
    return rsa.generate_private_key(65537, 2048)


@cache
def make_ca() -> SoftwareCa:
    """A root and an issuing CA, both valid now."""
    root_key, issuer_key = make_rsa_key("root"), make_rsa_key("issuer")
    root = authority_builder(
        name=authority_name(organization="Example Service", common_name="Test Root"),
        public_key=root_key.public_key(),
        serial=new_serial(Environment.LIVE),
        validity=Validity.lasting(timedelta(days=7300), now=NOW),
    )
    root_info = IssuerInfo(sign(root, root_key), f"{BASE_URL}/v1/ca/root", f"{BASE_URL}/v1/crl/root")
    issuing = authority_builder(
        name=authority_name(organization="Example Service", common_name="Test Issuing CA"),
        public_key=issuer_key.public_key(),
        serial=new_serial(Environment.LIVE),
        validity=Validity.lasting(timedelta(days=1825), now=NOW),
        issuer=root_info,
    )
    certificate = sign(issuing, root_key)
    info = IssuerInfo(certificate, f"{BASE_URL}/v1/ca/issuing", f"{BASE_URL}/v1/crl/issuing")
    return SoftwareCa(root_info, root_key, info, issuer_key)


def make_certified(**fields: Any) -> CertifiedAgent:
    """A trading agent of the live environment; `fields` replace its own fields or those of its claims."""
    claims = IdentityClaims(
        operator="Example Trading GmbH",
        did=DID,
        environment="live",
        model="gpt-5",
        model_version="2.1.0",
        model_hash="sha256:9f86d081884c7d65",
        permitted_actions=("read_market_data", "place_order"),
    )
    own = {name: fields.pop(name) for name in ("name", "resolver_url") if name in fields}
    agent = CertifiedAgent(
        agent_id=AGENT_ID,
        name="trade-bot",
        resolver_url=f"{BASE_URL}/1.0/identifiers/{DID}",
        claims=replace(claims, **fields),
    )
    return replace(agent, **own)


def make_expectation(**fields: Any) -> LeafExpectation:
    """What the certificate of `make_certified(**fields)` must state."""
    agent = make_certified(**fields)
    serial = new_serial(Environment(agent.claims.environment))
    return LeafExpectation(agent, make_rsa_key("agent").public_key(), serial, make_ca().issuer, PROFILE)


def make_leaf_builder(
    expected: LeafExpectation, *, duration: timedelta = timedelta(days=365), now: datetime = NOW
) -> x509.CertificateBuilder:
    """The builder of the expected certificate."""
    return leaf_builder(expected, validity=Validity.lasting(duration, now=now))


def make_leaf(**fields: Any) -> x509.Certificate:
    """A certificate of the agent, signed by the software CA, valid for 365 days."""
    return sign(make_leaf_builder(make_expectation(**fields)), make_ca().issuer_key)
