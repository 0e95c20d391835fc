"""Which proofs count, once, and with which nonces: against the real Redis of the test run."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from redis.client import Pipeline

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.stores import asking, redis
from delegation import proofs
from delegation.errors import NonceRequired, ProofRejected, ReplayStoreUnavailable
from delegation.jose.dpop import Proof
from delegation.proofs import PresentedProof
from delegation.tests.holders import Holder

URI = "https://api.example/v1/things"
HOLDER = Holder()


def check(proof: str, at: datetime | None = None, **how: Any) -> Proof:
    return proofs.check(PresentedProof(proof, **{"method": "POST", "uri": URI, **how}), now=at or now())


def check_all(presented: list[PresentedProof]) -> list[Proof | ServiceError]:
    """Check a group as a gateway's questions are."""
    begun = proofs.begin_check(presented, now=now())
    return begun.settled(asking.answers_to(begun.commands))


def test_proof_counts_once_in_both_environments_together() -> None:
    proof = HOLDER.proof(uri=URI)
    assert check(proof).jkt == HOLDER.jkt

    with (
        environments.use(Environment.TEST),
        pytest.raises(ProofRejected, match="invalid_dpop_proof: the proof was used before"),
    ):
        check(proof)


def test_same_id_under_another_key_is_another_proof() -> None:
    check(HOLDER.proof(uri=URI, jti="one"))
    check(Holder().proof(uri=URI, jti="one"))


def test_id_counts_once_for_a_key_whatever_else_the_proof_says() -> None:
    check(HOLDER.proof(uri=URI, jti="two"))

    with pytest.raises(ProofRejected, match="used before"):
        check(HOLDER.proof("GET", uri=URI, jti="two"), method="GET")


def test_refused_proof_uses_nothing_up() -> None:
    proof = HOLDER.proof(uri=URI)

    with pytest.raises(ProofRejected, match="htm"):
        check(proof, method="GET")

    assert check(proof)


def test_used_proof_is_remembered_until_no_check_accepts_it() -> None:
    made = now()
    proof = check(HOLDER.proof(uri=URI, at=made + timedelta(seconds=59)), at=made)

    left = redis.client().pttl(proofs.name_of(proof))

    assert timedelta(milliseconds=left) > timedelta(seconds=59 + 60)


def test_group_of_proofs_is_checked_in_order_and_its_twins_count_once() -> None:
    good, other = HOLDER.proof(uri=URI), HOLDER.proof(uri=URI)
    group = [PresentedProof(text, "POST", URI) for text in (good, "nonsense", good, other)]

    found = check_all(group)

    assert [isinstance(one, Proof) for one in found] == [True, False, False, True]
    assert str(found[2]) == "invalid_dpop_proof: the proof was used before"


def test_group_asks_redis_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    execute = Pipeline.execute

    def counted(self: Pipeline, raise_on_error: bool = True) -> list[Any]:
        asked.append(len(self.command_stack))
        return execute(self, raise_on_error)

    monkeypatch.setattr(Pipeline, "execute", counted)

    check_all([PresentedProof(HOLDER.proof(uri=URI), "POST", URI) for _ in range(7)])

    assert asked == [7]


def test_without_redis_proofs_are_refused_as_unavailable(redis_is_down: None) -> None:
    group = [PresentedProof(HOLDER.proof(uri=URI), "POST", URI), PresentedProof("x", "POST", URI)]

    found = check_all(group)

    assert isinstance(found[0], ReplayStoreUnavailable)
    assert found[0].status == 503
    assert isinstance(found[1], ProofRejected)


def test_required_nonce_is_asked_for_and_then_accepted() -> None:
    with pytest.raises(NonceRequired) as asked:
        check(HOLDER.proof(uri=URI), nonce_required=True)

    assert asked.value.error == "use_dpop_nonce"
    assert asked.value.headers == {"DPoP-Nonce": asked.value.nonce}
    assert check(HOLDER.proof(uri=URI, nonce=asked.value.nonce), nonce_required=True)


@pytest.mark.parametrize(("intervals", "counts"), [(0, True), (1, True), (2, False), (-1, False)])
def test_nonce_counts_in_its_interval_and_the_next(intervals: int, counts: bool) -> None:
    made = now()
    nonce = proofs.current_nonce(now=made)

    later = made + timedelta(seconds=proofs.INTERVAL_SECONDS * intervals)

    assert proofs.is_accepted(nonce, now=later) is counts


def test_nonce_of_the_other_environment_does_not_count() -> None:
    with environments.use(Environment.TEST):
        foreign = proofs.current_nonce(now=now())

    with pytest.raises(NonceRequired):
        check(HOLDER.proof(uri=URI, nonce=foreign), nonce_required=True)


@pytest.mark.parametrize("nonce", ["", "x", "\ud800", "é", "A" * 43])
def test_foreign_nonce_does_not_count(nonce: str) -> None:
    with pytest.raises(NonceRequired):
        check(HOLDER.proof(uri=URI, nonce=nonce), nonce_required=True)


def test_nonces_outlive_a_new_key_of_the_service(settings: Settings) -> None:
    moment = now()
    nonce = proofs.current_nonce(now=moment)
    settings.ENCRYPTION_KEYS = ["A" * 43 + "=", *settings.ENCRYPTION_KEYS]

    assert proofs.current_nonce(now=moment) != nonce
    assert proofs.is_accepted(nonce, now=moment)


def test_errors_tell_nothing_of_the_proof() -> None:
    proof = HOLDER.proof(uri=URI)

    with pytest.raises(ServiceError) as refused:
        check(proof, method="GET")

    assert all(part not in str(refused.value) for part in proof.split("."))
