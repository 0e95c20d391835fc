"""Chains and claims, as functions."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, strategies as st

from compliance.core.plain_text import is_plain_text
from delegation.errors import RejectionReason, TokenRejected
from delegation.jose import jws, tokens
from delegation.jose.tokens import (
    ChainActor,
    ChainActorType,
    Confirmation,
    Delegation,
    Delegator,
    RootAssurance,
    StatusListEntry,
    SubjectIdentifier,
    TokenStatus,
)
from delegation.tests.factories import CHAIN, as_chain

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SUBS = st.text(min_size=1, max_size=256).filter(is_plain_text).filter(lambda sub: sub.isprintable())
ACTORS = st.builds(ChainActor, sub=SUBS, type=st.sampled_from(ChainActorType))
JKT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
VERIFIED = {"format": "iss_sub", "iss": "https://issuer.example", "sub": "248289761001"}
URI = "https://service.example/v1/status-lists/live-0"
LISTED = {"idx": 7, "uri": URI}
CHAINS = st.lists(ACTORS, min_size=1, max_size=8).map(tuple)


def make_delegation(**fields: Any) -> Delegation:
    given: dict[str, Any] = {
        "issuer": "https://service.example",
        "environment": "live",
        "token_id": UUID(int=1),
        "agent_id": UUID(int=2),
        "issued_at": 1_000,
        "not_before": 1_000,
        "expires_at": 2_000,
        "scope": "",
        **fields,
    }
    return Delegation.of(given.pop("chain", as_chain(CHAIN)), **given)


@given(chain=CHAINS)
def test_signing_and_parsing_keep_every_name(chain: tokens.Chain) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    delegation = make_delegation(chain=chain)

    parsed = jws.parse(jws.sign(tokens.to_claims(delegation), kid="k", key=key))

    assert tokens.from_claims(jws.verify(parsed, key.public_key())) == delegation


def test_the_lineage_survives_the_claims() -> None:
    via = (Delegator(UUID(int=3), UUID(int=13), "5f"), Delegator(UUID(int=4), UUID(int=14)))

    claims = tokens.to_claims(make_delegation(certificate_serial="6f", via=via))

    assert list(claims["via"]) == [
        {"agent_id": str(UUID(int=3)), "cert_serial": "5f", "jti": str(UUID(int=13))},
        {"agent_id": str(UUID(int=4)), "jti": str(UUID(int=14))},
    ]
    assert tokens.from_claims(claims).lineage == (*via, Delegator(UUID(int=2), UUID(int=1), "6f"))


def test_key_root_and_status_survive_the_claims() -> None:
    delegation = make_delegation(
        confirmation=Confirmation(JKT),
        subject_identifier=SubjectIdentifier("https://issuer.example", "248289761001"),
        status=TokenStatus(StatusListEntry(7, URI)),
    )

    claims = tokens.to_claims(delegation)

    assert (claims["cnf"], claims["sub_id"], claims["status"]) == (
        {"jkt": JKT},
        VERIFIED,
        {"status_list": LISTED},
    )
    assert tokens.from_claims(claims) == delegation
    assert (delegation.bound_to, delegation.root_assurance) == (JKT, RootAssurance.VERIFIED)


def test_a_chain_of_one_has_no_act() -> None:
    claims = tokens.to_claims(make_delegation(chain=as_chain(CHAIN[:1])))

    assert "act" not in claims
    assert not {"aud", "cert_serial", "via", "cnf", "sub_id", "status"} & set(claims)


def test_the_largest_delegation_fits_in_a_token() -> None:
    chain = tuple(ChainActor("\U0001f916" * 256, ChainActorType.SUB_AGENT) for _ in range(8))
    delegation = make_delegation(
        chain=chain,
        issuer="https://" + "i" * 100,
        scope="s" * 500,
        audience="\U0001f916" * 256,
        certificate_serial="f" * 40,
        via=tuple(Delegator(UUID(int=number), UUID(int=number), "f" * 40) for number in range(7)),
        confirmation=Confirmation(JKT),
        subject_identifier=SubjectIdentifier("\\" * 255, '"' * 255),
        status=TokenStatus(StatusListEntry(2**31 - 1, "h" * 256)),
    )

    token = jws.sign(tokens.to_claims(delegation), kid="k" * 43, key=ec.generate_private_key(ec.SECP256R1()))

    assert len(token) <= jws.MAX_LENGTH
    assert jws.parse(token).header["kid"] == "k" * 43


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exp", "2000"),
        ("exp", 2000.0),
        ("exp", 2000.5),
        ("exp", True),
        ("exp", -1),
        ("exp", 10**12),
        ("exp", None),
        ("nbf", "1000"),
        ("iat", 1000.0),
        ("sub", 7),
        ("sub", ""),
        ("sub", "x" * 257),
        ("sub", "a\nb"),
        ("sub_type", "robot"),
        ("act", []),
        ("act", "alice"),
        ("act", {"sub": "x"}),
        ("scope", ["a"]),
        ("aud", ["a", "b"]),
        ("jti", "no uuid"),
        ("agent_id", 5),
        ("via", "abc"),
        ("via", {}),
        ("via", None),
        ("via", [1]),
        ("via", 7),
        ("via", [{}]),
        ("via", [{"cert_serial": "5f"}]),
        ("via", [{"agent_id": str(UUID(int=3)), "cert_serial": 5}]),
        ("via", [{"agent_id": str(UUID(int=3)), "cert_serial": None}]),
        ("via", [{"agent_id": str(UUID(int=3)), "jti": None}]),
        ("via", [{"agent_id": str(UUID(int=3)), "jti": "x"}]),
        ("cnf", None),
        ("cnf", {}),
        ("cnf", "x"),
        ("cnf", {"jkt": None}),
        ("cnf", {"jkt": JKT[1:]}),
        ("cnf", {"jkt": JKT + "="}),
        ("cnf", {"jkt": JKT + "\n"}),
        ("cnf", {"jkt": JKT[:-1] + "J"}),
        ("cnf", {"x5t#S256": JKT}),
        ("cnf", {"jkt": JKT, "x5t#S256": JKT}),
        ("sub_id", None),
        ("sub_id", {}),
        ("sub_id", "alice"),
        ("sub_id", {**VERIFIED, "format": "email"}),
        ("sub_id", {**VERIFIED, "format": None}),
        ("sub_id", {**VERIFIED, "iss": None}),
        ("sub_id", {**VERIFIED, "sub": ""}),
        ("sub_id", {**VERIFIED, "sub": "x" * 256}),
        ("sub_id", {**VERIFIED, "sub": "Zoë"}),
        ("sub_id", {**VERIFIED, "sub": "a\n"}),
        ("sub_id", {**VERIFIED, "email": "a@b.example"}),
        ("status", None),
        ("status", {}),
        ("status", {"status_list": {}}),
        ("status", {"status_list": {**LISTED, "idx": -1}}),
        ("status", {"status_list": {**LISTED, "idx": 2**31}}),
        ("status", {"status_list": {**LISTED, "idx": "7"}}),
        ("status", {"status_list": {**LISTED, "uri": ""}}),
        ("sub", "a\u200bb"),
        ("env", None),
        ("cert_serial", 5),
    ],
)
def test_claims_of_another_shape_are_malformed(name: str, value: Any) -> None:
    claims = {**tokens.to_claims(make_delegation()), name: value}

    with pytest.raises(TokenRejected) as rejected:
        tokens.from_claims(claims)

    assert rejected.value.reason is RejectionReason.MALFORMED


@pytest.mark.parametrize(
    "name", ["iss", "sub", "sub_type", "scope", "iat", "nbf", "exp", "jti", "agent_id", "env"]
)
def test_missing_claims_are_malformed(name: str) -> None:
    claims = tokens.to_claims(make_delegation())
    del claims[name]

    with pytest.raises(TokenRejected):
        tokens.from_claims(claims)


def test_a_ninth_actor_is_malformed() -> None:
    claims = tokens.to_claims(make_delegation(chain=as_chain(CHAIN[:1] * 8)))
    claims["act"] = {"sub": "one more", "sub_type": "agent", "act": claims["act"]}

    with pytest.raises(TokenRejected):
        tokens.from_claims(claims)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (999.999, RejectionReason.NOT_YET_VALID),
        (1_000, None),
        (1_999.999, None),
        (2_000, RejectionReason.EXPIRED),
    ],
)
def test_a_token_counts_from_nbf_up_to_but_not_at_exp(second: float, reason: RejectionReason | None) -> None:
    found = None
    try:
        tokens.check_time(make_delegation(), now=datetime.fromtimestamp(second, UTC))
    except TokenRejected as rejected:
        found = rejected.reason

    assert found is reason


@pytest.mark.parametrize(
    ("asked", "normal"),
    [
        ("", ""),
        ("  ", ""),
        ("a", "a"),
        (" b  a ", "b a"),
        ("a b a", "a b"),
        ("trade:eu/1 ~!#[]", "trade:eu/1 ~!#[]"),
    ],
)
def test_scope_is_normalised(asked: str, normal: str) -> None:
    assert tokens.normalised_scope(asked) == normal


@pytest.mark.parametrize("scope", ['a"b', "a\\b", "a\tb", "a\n", "é", "a\x7fb", "a\u00a0b"])
def test_scope_outside_rfc_6749_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        tokens.normalised_scope(scope)


@pytest.mark.parametrize("sub", ["a\x00", "a\x1b[31m", "a\x85", "a\u2028b", "a\u202eb", "a\u2066b", ""])
def test_names_that_could_show_as_others_are_refused(sub: str) -> None:
    with pytest.raises(ValueError, match="sub must be"):
        ChainActor(sub, ChainActorType.HUMAN)


@pytest.mark.parametrize(
    "sub", ["did:web:example.com", "Zoë Ødegård", "山田太郎", "alice → bob", "<b>", "👩🚀", " "]
)
def test_names_of_any_script_are_accepted(sub: str) -> None:
    assert ChainActor(sub, ChainActorType.HUMAN).sub == sub
