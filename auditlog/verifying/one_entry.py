"""Verify one entry step by step, from its row up to the witnesses' cosignatures, each outcome in plain words.

The service checks itself here: an outsider verifies the proof file offline instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
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
from auditlog.tlog.cosignatures import timestamp_of
from auditlog.tlog.errors import SignatureInvalid, TlogError
from auditlog.tlog.merkle import root_from_inclusion
from auditlog.tlog.notes import Note, Signature, VerifierKey, verified
from auditlog.tlog.policy import NONE, Policy, TrustedWitness
from auditlog.tlog.tiles import HASH, WIDTH
from auditlog.verifying.contents import erased_wrongly
from auditlog.vocabulary import AuditAction

NOTHING: Final = "nothing"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StepOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """It cannot be checked yet, or nobody outside the service vouches for it."""
    NOT_NEEDED = "not needed"


@dataclass(frozen=True)
class CheckedStep:
    """One check; `expected` and `found` are given where it failed."""

    name: str
    outcome: StepOutcome
    detail: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True)
class EntryCheck:
    """The steps in their order."""

    steps: tuple[CheckedStep, ...]

    @property
    def outcome(self) -> StepOutcome:
        """The worst outcome of a step."""
        outcomes = {step.outcome for step in self.steps}
        return next(
            each for each in (StepOutcome.FAILED, StepOutcome.OPEN, StepOutcome.PASSED) if each in outcomes
        )


def verify(*, tenant_id: UUID, entry_id: str, now: datetime) -> EntryCheck:
    """Verify an entry of the tenant, as its row is now, under the published checkpoint.

    Raises: EntryNotFound.
    """
    entry = AuditEntry.objects.for_tenant(tenant_id).find(entry_id)
    sealed = sealed_entry_of(entry.id, tenant_id=tenant_id)
    if sealed is None and not PendingEntry.objects.filter(entry_id=entry.id).exists():
        sealed = sealed_entry_of(entry.id, tenant_id=tenant_id)  # it may have been sealed in between
        if sealed is None:
            detail = (
                "The entry is neither in the tree nor queued for it: it did not come through the service."
            )
            return EntryCheck((CheckedStep("Place in the tree", StepOutcome.FAILED, detail),))
    if sealed is None:
        detail = "The entry waits to be sealed, which takes about a second. Look again shortly."
        return EntryCheck((CheckedStep("Place in the tree", StepOutcome.OPEN, detail),))
    under = forged_checkpoint() or published_checkpoint(now=now, covering=sealed.index)
    return EntryCheck(tuple(_steps(sealed, under, now)))


def _steps(sealed: SealedEntry, under: SignedHead | None, now: datetime) -> Iterator[CheckedStep]:
    stored = StoredTiles()
    yield CheckedStep(
        "Place in the tree", StepOutcome.PASSED, f"The entry was sealed at index {sealed.index}."
    )
    if sealed.erased:
        yield _erasure(sealed)
    leaf, contents = _contents(sealed, stored)
    yield contents
    if under is None:
        detail = "No published checkpoint covers the entry yet. Look again in some seconds."
        yield CheckedStep("Checkpoint", StepOutcome.OPEN, detail)
        return
    try:
        note = Note.parse(under.note)
        checkpoint = Checkpoint.parse(note.text)
    except TlogError as error:
        yield CheckedStep("Checkpoint", StepOutcome.FAILED, f"The stored checkpoint cannot be read: {error}.")
        return
    yield _inclusion(sealed.index, leaf, checkpoint, stored)
    yield _log_signature(note, checkpoint, now)
    yield from _cosignatures(note)


def _erasure(sealed: SealedEntry) -> CheckedStep:
    """Check that erased parts are gone and that their erasure was recorded: neither shows in the leaf."""
    recorded = erasures_of(tenant_id=UUID(sealed.row.tenant_id), entry_id=UUID(sealed.row.id))
    name = "Erased parts"
    if problem := erased_wrongly(sealed.row, sealed.salts, sealed.erased):
        return CheckedStep(name, StepOutcome.FAILED, f"The part {problem}.")
    for part in sealed.erased:
        if part not in recorded:
            return CheckedStep(name, StepOutcome.FAILED, f"No entry records that {part} was erased.")
    parts = ", ".join(sealed.erased)
    return CheckedStep(
        name, StepOutcome.PASSED, f"Erased and recorded: {parts}. The commitments to them stand in."
    )


def erasures_of(*, tenant_id: UUID, entry_id: UUID) -> dict[str, AuditEntry]:
    """Return the entries that record the erasure of an entry's parts, by part."""
    records = AuditEntry.objects.for_tenant(tenant_id).about(entry_id).of_type(AuditAction.AUDIT_ERASED)
    found: dict[str, AuditEntry] = {}
    for record in records.order_by("created_at", "id"):
        # A record whose own metadata was erased no longer says which parts.
        for part in (record.metadata or {}).get("parts", ERASABLE):
            found.setdefault(part, record)
    return found


def _contents(sealed: SealedEntry, stored: StoredTiles) -> tuple[bytes, CheckedStep]:
    """Return the leaf's hash computed from the row as it is now, and whether it is in the tree."""
    name = "Contents of the entry"
    start = sealed.index % WIDTH * HASH
    expected = stored.fetch(0, sealed.index // WIDTH)[start : start + HASH]
    try:
        found = sealed.hash()
    except (ValueError, TypeError) as error:
        return b"", CheckedStep(name, StepOutcome.FAILED, f"No leaf can be computed from the row: {error}.")
    if found == expected:
        return found, CheckedStep(
            name, StepOutcome.PASSED, "The leaf computed from the row as it is now is in the tree."
        )
    detail = "The row is not what was sealed: a field or its salt was changed afterwards, or the tree was."
    return found, _failed(name, detail, expected.hex(), found.hex())


def _inclusion(index: int, leaf: bytes, checkpoint: Checkpoint, stored: StoredTiles) -> CheckedStep:
    name = "Path to the checkpoint"
    try:
        path = stored.inclusion_path(index, checkpoint.size)
        found = root_from_inclusion(index, checkpoint.size, leaf, path)
    except TlogError as error:
        return CheckedStep(name, StepOutcome.FAILED, f"The tree does not give the path: {error}.")
    if found == checkpoint.root:
        detail = f"{len(path)} hashes lead from the leaf to the root of all {checkpoint.size} entries."
        return CheckedStep(name, StepOutcome.PASSED, detail)
    detail = f"The leaf is not in the tree of the checkpoint of {checkpoint.size} entries."
    return _failed(name, detail, checkpoint.root.hex(), found.hex())


def _log_signature(note: Note, checkpoint: Checkpoint, now: datetime) -> CheckedStep:
    name, origin = "Signature of the log", checkpoint.origin
    known = keys.verifier_keys(now=now)
    if origin not in {key.name for key in known}:
        return _failed(name, "The checkpoint is of another log.", keys.origin(), origin)
    try:
        signed = verified(note, known)
    except SignatureInvalid as error:
        signers = [signature for signature in note.signatures if signature.name == origin]
        return _failed(name, f"{error}.", _named(known), _named(signers))
    return CheckedStep(name, StepOutcome.PASSED, f"The checkpoint is signed by {_named(signed)}.")


def _cosignatures(note: Note) -> Iterator[CheckedStep]:
    name = "Witnesses"
    try:
        rules = gathering.policy()
    except WitnessPolicyInvalid:
        yield CheckedStep(name, StepOutcome.OPEN, "The witness policy of the service cannot be read.")
        return
    if rules is None or rules.quorum == NONE:
        detail = "No witness is required: nobody outside the service vouches that there is one tree only."
        yield CheckedStep(name, StepOutcome.OPEN, detail)
    if rules is None:
        return
    cosigners = {each.name for each in rules.witnesses if _is_cosigned(note, each)}
    is_met = rules.quorum != NONE and rules.is_met(cosigners)
    missing = StepOutcome.NOT_NEEDED if is_met or rules.quorum == NONE else StepOutcome.OPEN
    yield from (_cosignature(note, witness, missing) for witness in rules.witnesses)
    if rules.quorum != NONE:
        yield _quorum(rules, cosigners, is_met)


def _is_cosigned(note: Note, witness: TrustedWitness) -> bool:
    try:
        return bool(verified(note, [witness.key]))
    except SignatureInvalid:
        return False


def _cosignature(note: Note, witness: TrustedWitness, missing: StepOutcome) -> CheckedStep:
    name = f"Witness {witness.name}"
    if not any(map(witness.key.is_named_in, note.signatures)):
        return CheckedStep(name, missing, "It has not cosigned this checkpoint.")
    try:
        (signature, *_) = verified(note, [witness.key])
    except SignatureInvalid as error:
        return CheckedStep(name, StepOutcome.FAILED, f"{error}.")
    moment = _moment(timestamp_of(signature.value))
    return CheckedStep(name, StepOutcome.PASSED, f"{_named([signature])} cosigned the checkpoint {moment}.")


def _quorum(rules: Policy, cosigners: set[str], is_met: bool) -> CheckedStep:
    count = f"{len(cosigners)} of {len(rules.witnesses)} witnesses have cosigned"
    if is_met:
        return CheckedStep("Quorum", StepOutcome.PASSED, f"{count}, which meets the policy of the service.")
    return CheckedStep(
        "Quorum", StepOutcome.OPEN, f"{count}, which the policy of the service does not accept."
    )


def _moment(seconds: int) -> str:
    try:
        return f"at {_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{seconds} s after 1970"


def _named(signers: list[VerifierKey] | list[Signature]) -> str:
    return ", ".join(f"{each.name} (key {each.key_id.hex()})" for each in signers)


def _failed(name: str, detail: str, expected: str, found: str) -> CheckedStep:
    return CheckedStep(name, StepOutcome.FAILED, detail, expected or NOTHING, found or NOTHING)
