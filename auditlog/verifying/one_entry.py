"""Verify one entry step by step, in plain words; outsiders verify its proof file instead."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Final
from uuid import UUID

from auditlog.errors import WitnessPolicyInvalid
from auditlog.leaves import ERASABLE
from auditlog.models import AuditEntry, PendingEntry, SignedHead
from auditlog.sealing import keys
from auditlog.sealing.stored_rows import SealedEntry, sealed_entry_of
from auditlog.sealing.tree import StoredTiles, forged_checkpoint, published_checkpoint
from auditlog.submitting import gathering
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import SignatureInvalid, TlogError
from auditlog.tlog.merkle import root_from_inclusion
from auditlog.tlog.notes import Note, Signature, VerifierKey, timestamp_of, verified
from auditlog.tlog.policy import NONE, TrustedWitness
from auditlog.verifying.findings import problem_of
from auditlog.vocabulary import AuditAction

PLACE: Final = "Place in the tree"
CONTENTS: Final = "Contents of the entry"
CHECKPOINT: Final = "Checkpoint"
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999


class StepOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """It cannot be checked yet, or nobody outside the service vouches for it."""
    NOT_NEEDED = "not needed"


@dataclass(frozen=True)
class CheckedStep:
    """One check; `expected` and `found` are given where two values differ."""

    outcome: StepOutcome
    name: str
    detail: str
    expected: str = ""
    found: str = ""


_passed = partial(CheckedStep, StepOutcome.PASSED)
_open = partial(CheckedStep, StepOutcome.OPEN)


@dataclass(frozen=True)
class EntryCheck:
    steps: tuple[CheckedStep, ...]

    @property
    def outcome(self) -> StepOutcome:
        outcomes = {step.outcome for step in self.steps}
        worst_first = (StepOutcome.FAILED, StepOutcome.OPEN, StepOutcome.PASSED)
        return next(each for each in worst_first if each in outcomes)


def verify(*, tenant_id: UUID, entry_id: str, now: datetime) -> EntryCheck:
    """Verify the tenant's entry, as its row is now, under the published checkpoint. Raises: EntryNotFound."""
    entry = AuditEntry.objects.for_tenant(tenant_id).find(entry_id)
    # In this order: it may be sealed in between.
    is_queued = PendingEntry.objects.filter(entry_id=entry.id).exists()
    sealed = sealed_entry_of(entry.id)
    if sealed is not None:
        under = forged_checkpoint() or published_checkpoint(now=now, covering=sealed.index)
        return EntryCheck(tuple(_steps(sealed, under, now)))
    if is_queued:
        return EntryCheck((_open(PLACE, "The entry waits to be sealed. Look again in a second."),))
    detail = "The entry is neither in the tree nor queued for it: it did not come through the service."
    return EntryCheck((_failed(PLACE, detail),))


def _steps(sealed: SealedEntry, under: SignedHead | None, now: datetime) -> Iterator[CheckedStep]:
    stored = StoredTiles()
    yield _passed(PLACE, f"The entry was sealed at index {sealed.index}.")
    if sealed.erased:
        yield _erasure(sealed)
    expected, found = stored.leaf(sealed.index), b""
    with suppress(ValueError, TypeError):  # of a row that has no leaf
        found = sealed.hash()
    if found == expected:
        yield _passed(CONTENTS, "The leaf computed from the row as it is now is in the tree.")
    else:
        detail = (
            "The row is not what was sealed: a field or its salt was changed afterwards, or the tree was."
        )
        yield _failed(CONTENTS, detail, expected.hex(), found.hex())
    if under is None:
        yield _open(CHECKPOINT, "No published checkpoint covers the entry yet. Look again in some seconds.")
        return
    try:
        note = Note.parse(under.note)
        checkpoint = Checkpoint.parse(note.text)
    except TlogError as error:
        yield _failed(CHECKPOINT, f"The stored checkpoint cannot be read: {error}.")
        return
    yield _inclusion(sealed.index, found, checkpoint, stored)
    yield _log_signature(note, checkpoint, now)
    yield from _cosignatures(note)


def _erasure(sealed: SealedEntry) -> CheckedStep:
    """Check that erased parts are gone and that their erasure was recorded: neither shows in the leaf."""
    recorded = erasures_of(tenant_id=UUID(sealed.row.tenant_id), entry_id=UUID(sealed.row.id))
    unrecorded = ", ".join(part for part in sealed.erased if part not in recorded)
    problem = problem_of(sealed) or (unrecorded and f"no entry records that {unrecorded} was erased")
    if problem:
        return _failed("Erased parts", f"Not as the service erases: {problem}.")
    parts = ", ".join(sealed.erased)
    return _passed("Erased parts", f"Erased and recorded: {parts}. The commitments to them stand in.")


def erasures_of(*, tenant_id: UUID, entry_id: UUID) -> dict[str, AuditEntry]:
    records = AuditEntry.objects.for_tenant(tenant_id).about(entry_id).of_type(AuditAction.AUDIT_ERASED)
    found: dict[str, AuditEntry] = {}
    for record in records.order_by("created_at", "id"):
        # A record whose own metadata was erased no longer says which parts.
        for part in (record.metadata or {}).get("parts", ERASABLE):
            found.setdefault(part, record)
    return found


def _inclusion(index: int, leaf: bytes, checkpoint: Checkpoint, stored: StoredTiles) -> CheckedStep:
    name = "Path to the checkpoint"
    try:
        path = stored.inclusion_path(index, checkpoint.size)
        found = root_from_inclusion(index, checkpoint.size, leaf, path)
    except TlogError as error:
        return _failed(name, f"The tree does not give the path: {error}.")
    if found == checkpoint.root:
        size = checkpoint.size
        return _passed(name, f"{len(path)} hashes lead from the leaf to the root of all {size} entries.")
    detail = f"The leaf is not in the tree of the checkpoint of {checkpoint.size} entries."
    return _failed(name, detail, checkpoint.root.hex(), found.hex())


def _log_signature(note: Note, checkpoint: Checkpoint, now: datetime) -> CheckedStep:
    name, origin = "Signature of the log", checkpoint.origin
    known = keys.verifier_keys(now=now)
    if origin not in {key.name for key in known}:
        return _failed(name, "The checkpoint is of another log.", keys.origin(), origin)
    try:
        return _passed(name, f"The checkpoint is signed by {_named(verified(note, known))}.")
    except SignatureInvalid as error:
        signers = [signature for signature in note.signatures if signature.name == origin]
        return _failed(name, f"{error}.", _named(known), _named(signers))


def _cosignatures(note: Note) -> Iterator[CheckedStep]:
    name = "Witnesses"
    try:
        rules = gathering.policy()
    except WitnessPolicyInvalid:
        yield _open(name, "The witness policy of the service cannot be read.")
        return
    if rules is None or rules.quorum == NONE:
        detail = "No witness is required: nobody outside the service vouches that there is one tree only."
        yield _open(name, detail)
    if rules is None:
        return
    steps = {witness.name: _cosignature(note, witness) for witness in rules.witnesses}
    cosigners = {witness for witness, step in steps.items() if step.outcome == StepOutcome.PASSED}
    is_met = rules.is_met(cosigners)
    for step in steps.values():
        is_needed = step.outcome != StepOutcome.OPEN or not is_met
        yield step if is_needed else CheckedStep(StepOutcome.NOT_NEEDED, step.name, step.detail)
    if rules.quorum != NONE:
        count = f"{len(cosigners)} of {len(rules.witnesses)} witnesses have cosigned, which"
        yield (
            _passed("Quorum", f"{count} meets the policy of the service.")
            if is_met
            else _open("Quorum", f"{count} the policy of the service does not accept.")
        )


def _cosignature(note: Note, witness: TrustedWitness) -> CheckedStep:
    name = f"Witness {witness.name}"
    if not any(map(witness.key.is_named_in, note.signatures)):
        return _open(name, "It has not cosigned this checkpoint.")
    try:
        (signature, *_) = verified(note, [witness.key])
    except SignatureInvalid as error:
        return _failed(name, f"{error}.")
    moment = datetime.fromtimestamp(min(timestamp_of(signature.value), _LAST_SECOND), UTC)
    return _passed(name, f"{_named([signature])} cosigned the checkpoint at {moment:%Y-%m-%d %H:%M:%S} UTC.")


def _named(signers: list[VerifierKey] | list[Signature]) -> str:
    return ", ".join(f"{each.name} (key {each.key_id.hex()})" for each in signers)


def _failed(name: str, detail: str, *differing: str) -> CheckedStep:
    return CheckedStep(StepOutcome.FAILED, name, detail, *(value or "nothing" for value in differing))
