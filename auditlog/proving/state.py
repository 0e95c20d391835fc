"""The state of the current environment's log: what is sealed, signed, published and witnessed."""

from dataclasses import dataclass
from datetime import datetime

from auditlog.errors import WitnessPolicyInvalid
from auditlog.models import SignedHead, WitnessState
from auditlog.proving.proofs import MISSING, quorum_of
from auditlog.sealing.tree import Backlog, backlog, head, latest_checkpoint, published_checkpoint
from auditlog.submitting import gathering
from auditlog.tlog.policy import TrustedWitness


@dataclass(frozen=True)
class WitnessReport:
    """A witness of the policy; its names there and in cosignatures, its last cosignature and problem."""

    name: str
    key_name: str
    url: str | None
    size: int
    cosigned_at: datetime | None
    problem: str

    @property
    def contradicts(self) -> bool:
        return gathering.contradicts(self.problem)


@dataclass(frozen=True)
class LogState:
    """Sizes in entries, 0 before the first. `minimum_index`: the first entry whose contents are kept.

    `quorum` as in `proofs.quorum_of`; `missing_since`: when the oldest checkpoint without it was signed.
    `policy_problem`: why the witness policy cannot be read.
    """

    tree_size: int
    signed_size: int
    published_size: int
    minimum_index: int
    backlog: Backlog
    published: SignedHead | None
    quorum: str
    missing_since: datetime | None
    witnesses: tuple[WitnessReport, ...]
    policy_problem: str

    @property
    def is_contradicted(self) -> bool:
        return any(witness.contradicts for witness in self.witnesses)


def log_state(*, now: datetime) -> LogState:
    # The newest checkpoint first: a tree read after it is as large at least.
    newest = latest_checkpoint()
    published, tree = published_checkpoint(now=now, newest=newest), head()
    quorum = quorum_of(published)
    missing_since: datetime | None = None
    if quorum == MISSING:
        signed = SignedHead.objects.order_by("size")
        witnessed = signed.filter(has_quorum=True).last()
        waiting = signed.filter(size__gt=witnessed.size if witnessed else 0)
        missing_since = waiting.values_list("signed_at", flat=True).first()
    trusted: list[TrustedWitness] = []
    policy_problem = ""
    try:
        rules = gathering.policy()
        trusted = rules.witnesses if rules else []
    except WitnessPolicyInvalid as error:
        policy_problem = error.message
    states = {state.name: state for state in WitnessState.objects.all()} if trusted else {}
    return LogState(
        tree_size=tree.size,
        signed_size=newest.size if newest else 0,
        published_size=published.size if published else 0,
        minimum_index=tree.minimum_index,
        backlog=backlog(),
        published=published,
        quorum=quorum,
        missing_since=missing_since,
        witnesses=tuple(
            WitnessReport(each.name, each.key.name, each.url, known.size, known.cosigned_at, known.problem)
            for each in trusted
            for known in [states.get(each.name) or WitnessState(name=each.name)]
        ),
        policy_problem=policy_problem,
    )
