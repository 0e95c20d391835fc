"""Gather the cosignatures of the policy's witnesses under the newest checkpoint.

Recording and sealing never wait for a witness: without a quorum, checkpoints are published and say so.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from auditlog.errors import WitnessPolicyInvalid
from auditlog.models import SignedHead, WitnessState
from auditlog.sealing.tree import StoredTiles, latest_checkpoint
from auditlog.submitting.submission import SubmissionFailed, WitnessIsAt, submit
from auditlog.tlog.errors import TlogError
from auditlog.tlog.notes import Note, Signature
from auditlog.tlog.policy import NONE, Policy, TrustedWitness
from compliance.core import environments

log = logging.getLogger(__name__)

DEADLINE_SECONDS: Final = 5.0
REST: Final = timedelta(seconds=8)
"""A witness that failed is not asked again for so long."""
MAX_PROBLEM: Final = 255
ROLLED_BACK: Final = "it was rolled back"
REFUSED_PROOF: Final = (409, 422)  # C2SP tlog-witness: another root of this size; not consistent


@dataclass(frozen=True)
class AskedWitness:
    """A witness and what is sent to it: the checkpoint `note`, and the proof from its `old_size` leaves."""

    witness: TrustedWitness
    note: str
    size: int
    old_size: int
    proof: list[bytes]


@dataclass(frozen=True)
class WitnessAnswer:
    """What a witness answered: a cosignature, a size to prove from, or a problem in words."""

    asked: AskedWitness
    cosignature: Signature | None = None
    witness_size: int | None = None
    problem: str = ""


def policy() -> Policy | None:
    """Return the policy of AUDIT_WITNESS_POLICY; None if none is set. Raises: WitnessPolicyInvalid."""
    path = Path(settings.AUDIT_WITNESS_POLICY)
    if not settings.AUDIT_WITNESS_POLICY:
        return None
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, TlogError, UnicodeDecodeError) as error:
        raise WitnessPolicyInvalid(f"AUDIT_WITNESS_POLICY: {error}") from error


def contradicts(problem: str) -> bool:
    """Whether a problem of `WitnessState` means that the witness knows another tree of this log."""
    refusals = tuple(f"The witness answered {status}:" for status in REFUSED_PROOF)
    return problem.endswith(ROLLED_BACK) or problem.startswith(refusals)


def gather(*, now: datetime) -> int:
    """Submit the newest checkpoint to every witness that has not cosigned it; return the new cosignatures.

    Raises: WitnessPolicyInvalid.
    """
    rules, newest = policy(), latest_checkpoint()
    if rules is None or newest is None:
        return 0
    have = _cosigners(newest, rules)
    states = {state.name: state for state in WitnessState.objects.all()}
    asked = [
        _prepared(witness, newest, states[witness.name].size if witness.name in states else 0)
        for witness in rules.witnesses
        if witness.url and witness.name not in have and not _rests(states.get(witness.name), now)
    ]
    answers = _retried(_submitted(asked), newest)
    for answer in answers:
        _note_state(answer, newest, now)
    found = [answer.cosignature for answer in answers if answer.cosignature is not None]
    _add(newest.size, found, rules)
    return len(found)


def ask_all(*, newest: SignedHead) -> list[WitnessAnswer]:
    """Ask every witness whether it knows the log as of a checkpoint, also those that have cosigned it.

    Nothing is stored. A witness that has seen a larger tree answers with its size.
    Raises: WitnessPolicyInvalid.
    """
    rules = policy()
    witnesses = [each for each in rules.witnesses if each.url] if rules else []
    return _submitted([AskedWitness(each, newest.note, newest.size, newest.size, []) for each in witnesses])


def _cosigners(newest: SignedHead, rules: Policy) -> set[str]:
    """Return who has cosigned; nobody if a stored cosignature does not verify."""
    try:
        return rules.cosigners(Note.parse(newest.note))
    except TlogError as error:
        log.critical("checkpoint of %d entries: %s", newest.size, error)
        return set()


def _rests(state: WitnessState | None, now: datetime) -> bool:
    """Whether the witness failed so recently that it is not asked again yet."""
    return state is not None and bool(state.problem) and now - (state.tried_at or now) < REST


def _prepared(witness: TrustedWitness, newest: SignedHead, old_size: int) -> AskedWitness:
    old_size = min(old_size, newest.size)
    proof = StoredTiles().consistency_path(old_size, newest.size)
    return AskedWitness(witness, newest.note, newest.size, old_size, proof)


def _submitted(asked: list[AskedWitness]) -> list[WitnessAnswer]:
    """Submit to all side by side, outside of any transaction."""
    if not asked:
        return []
    with ThreadPoolExecutor(len(asked), "witness") as pool:
        return list(pool.map(_submit, asked))


def _retried(answers: list[WitnessAnswer], newest: SignedHead) -> list[WitnessAnswer]:
    """Ask those once more that are at another size than was known: they are new, or were restored."""
    again = [
        _prepared(answer.asked.witness, newest, answer.witness_size)
        for answer in answers
        if answer.witness_size is not None and answer.witness_size <= newest.size
    ]
    second = {answer.asked.witness.name: answer for answer in _submitted(again)}
    return [second.get(answer.asked.witness.name, answer) for answer in answers]


def _submit(asked: AskedWitness) -> WitnessAnswer:
    try:
        cosignature = submit(
            str(asked.witness.url),
            old_size=asked.old_size,
            proof=asked.proof,
            note=asked.note,
            key=asked.witness.key,
            deadline=DEADLINE_SECONDS,
            ca_file=settings.AUDIT_WITNESS_CA_FILE or None,
        )
    except WitnessIsAt as error:
        return WitnessAnswer(asked, witness_size=error.size, problem=_beyond(error.size, asked.size))
    except SubmissionFailed as error:
        return WitnessAnswer(asked, problem=str(error))
    return WitnessAnswer(asked, cosignature=cosignature)


def _beyond(witness_size: int, size: int) -> str:
    if witness_size > size:
        return f"The witness has cosigned {witness_size} entries, this log has {size}: {ROLLED_BACK}"
    return f"The witness has a tree of {witness_size} entries"


def _note_state(answer: WitnessAnswer, newest: SignedHead, now: datetime) -> None:
    name = answer.asked.witness.name
    fields: dict[str, object] = {"tried_at": now, "problem": answer.problem[:MAX_PROBLEM]}
    if answer.cosignature is not None:
        fields |= {"size": newest.size, "cosigned_at": now, "problem": ""}
    elif answer.problem:
        log.warning("witness %s did not cosign %d: %s", name, newest.size, answer.problem)
    WitnessState.objects.update_or_create(name=name, defaults=fields)


def _add(size: int, cosignatures: list[Signature], rules: Policy) -> None:
    """Add cosignatures to the stored note, once each."""
    if not cosignatures:
        return
    with environments.atomic():
        head = SignedHead.objects.select_for_update().get(size=size)
        note = Note.parse(head.note)
        known = {(signature.name, signature.key_id) for signature in note.signatures}
        head.note += "".join(
            cosignature.line()
            for cosignature in cosignatures
            if (cosignature.name, cosignature.key_id) not in known
        )
        head.has_quorum = rules.quorum != NONE and rules.is_met(_cosigners(head, rules))
        head.save(update_fields=["note", "has_quorum"])


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> Policy:
    return Policy.parse(path.read_bytes().decode())
