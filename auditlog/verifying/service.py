"""Verify a log as a caller demands, and against the checkpoint that was verified last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from auditlog.errors import TreeDamaged
from auditlog.sealing import keys
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.errors import TlogError
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.tlog.policy import Policy
from auditlog.verifying import last_verified, live_log
from auditlog.verifying.findings import Damage, Flaw, LogOutcome, Verdict
from auditlog.verifying.live_log import Claim, Tell
from auditlog.verifying.trust import Trust
from compliance.core import environments


@dataclass(frozen=True)
class Demands:
    """What a caller trusts and demands: keys (else the log's own), witnesses, and old checkpoints by name."""

    keys: Sequence[VerifierKey] = ()
    policy: Policy | None = None
    against: Sequence[tuple[str, Note]] = ()


def verify_log(*, demands: Demands, tell: Tell, now: datetime) -> Verdict:
    """Verify the current environment's log; remember its newest checkpoint if nothing is wrong.

    Raises: Invalid if AUDIT_VERIFIED_FILE is damaged, LogKeysMissing.
    """
    trust = Trust.of(demands.keys or keys.verifier_keys(now=now), demands.policy)
    before = last_verified.read()
    claims, flaws = _claims(demands.against, trust)
    if before is not None:
        claims.append(_claim(before.checkpoint, "the checkpoint verified last"))
    try:
        found = live_log.verify(trust=trust, claims=claims, tell=tell)
    except TreeDamaged as error:
        found = live_log.VerifiedLog(Verdict(environments.current().value))
        flaws.append(Flaw(Damage.HEAD, error.message))
    found.verdict.add(*flaws)
    if found.verdict.outcome is LogOutcome.VERIFIED and found.newest is not None:
        last_verified.keep(found.newest.note, now=now)
    return found.verdict


def _claims(against: Sequence[tuple[str, Note]], trust: Trust) -> tuple[list[Claim], list[Flaw]]:
    """Return what the caller's checkpoints claim, and a flaw for each that no trusted key signed."""
    claims, flaws = [], []
    for name, note in against:
        try:
            claims.append(_claim(trust.checkpoint(note), name))
        except TlogError as error:
            flaws.append(Flaw(Damage.CHECKPOINT, f"{name}: {error}"))
    return claims, flaws


def _claim(checkpoint: Checkpoint, source: str) -> Claim:
    return Claim(checkpoint.size, checkpoint.root, source)
