"""Gather witnesses' cosignatures; nothing waits for them: without a quorum, checkpoints say so."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.conf import settings

from auditlog.errors import PublicationStopped, WitnessPolicyInvalid
from auditlog.models import SignedHead, WitnessState
from auditlog.sealing.keys import origin
from auditlog.sealing.tree import StoredTiles, latest_checkpoint
from auditlog.tlog.checkpoints import SIZE_CONTENT_TYPE, AddCheckpoint, Checkpoint
from auditlog.tlog.lines import SignatureInvalid, TlogError, read_decimal
from auditlog.tlog.merkle import consistency_path
from auditlog.tlog.notes import Note, Signature, VerifierKey, parse_signatures
from auditlog.tlog.policy import NONE, Policy, TrustedWitness
from compliance.core import environments
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import RequestOptions, send

log = logging.getLogger(__name__)

DEADLINE_SECONDS: Final = 5.0
MAX_TEXT = 200
URLS = UrlPolicy(allow_http=True, allow_private=True)
"""A witness's address is the operator's own."""
REST: Final = timedelta(seconds=8)
"""A witness that failed is not asked again for so long."""
MAX_PROBLEM: Final = 255
ROLLED_BACK: Final = "it was rolled back"
REFUSED_PROOF: Final = (409, 422)  # C2SP tlog-witness: another root of this size; not consistent


@dataclass(frozen=True)
class WitnessAnswer:
    """A witness's answer: a cosignature, or a problem in words and perhaps the size to prove from."""

    witness: TrustedWitness
    cosignature: Signature | None = None
    size: int | None = None
    problem: str = ""


def policy() -> Policy | None:
    """Return the policy of AUDIT_WITNESS_POLICY; None if none is set, or if it names other logs only.

    Raises: WitnessPolicyInvalid.
    """
    if not settings.AUDIT_WITNESS_POLICY:
        return None
    try:
        found = Policy.parse(Path(settings.AUDIT_WITNESS_POLICY).read_bytes().decode())
    except (OSError, ValueError) as error:
        raise WitnessPolicyInvalid(f"AUDIT_WITNESS_POLICY: {error}") from error
    named = {key.name for key in found.logs}
    return found if not named or origin() in named else None


def is_witnessed(checkpoint: SignedHead, rules: Policy) -> bool:
    """Whether the note carries the cosignatures that the policy demands; one that demands none is not met."""
    return rules.quorum != NONE and rules.is_met(_cosigners(checkpoint, rules))


def contradiction() -> str:
    """Return which witness of the policy knows another tree of this log, and its words; "" if none does.

    Where the policy cannot be read, every witness that was ever asked counts.
    """
    states = WitnessState.objects.order_by("name")
    with suppress(WitnessPolicyInvalid):
        rules = policy()
        states = states.filter(name__in=[witness.name for witness in rules.witnesses] if rules else [])
    return next((f"{each.name}: {each.problem}" for each in states if contradicts(each.problem)), "")


def check_uncontradicted() -> None:
    """Raise PublicationStopped if a witness refused a head as inconsistent: it may be one of a fork."""
    if contradiction():
        raise PublicationStopped()


def contradicts(problem: str) -> bool:
    """Return whether a problem of `WitnessState` means that the witness knows another tree of this log."""
    refusals = tuple(f"The witness answered {status}:" for status in REFUSED_PROOF)
    return problem.endswith(ROLLED_BACK) or problem.startswith(refusals)


def gather(*, now: datetime) -> int:
    """Have witnesses cosign the newest checkpoint; return how many did. Raises: WitnessPolicyInvalid."""
    rules, newest = policy(), latest_checkpoint()
    if rules is None or newest is None:
        return 0
    have = _cosigners(newest, rules)
    states = {state.name: state for state in WitnessState.objects.all()}
    answers: dict[str, WitnessAnswer] = {}
    asked = []
    for witness in rules.witnesses:
        state = states.get(witness.name) or WitnessState(name=witness.name)
        rests = bool(state.problem) and now - (state.tried_at or now) < REST
        if witness.url and witness.name not in have and not rests:
            asked.append((witness, min(state.size, newest.size)))
    while asked:
        found = _submitted(newest, asked)
        # Once more from the size that a witness is at: it is new, or was restored.
        again = [each for each in found if each.size is not None and each.size <= newest.size]
        asked = [(each.witness, each.size or 0) for each in again if each.witness.name not in answers]
        answers |= {each.witness.name: each for each in found}
    for answer in answers.values():
        _note_state(answer, newest, now)
    cosignatures = [each.cosignature for each in answers.values() if each.cosignature is not None]
    if cosignatures:
        with environments.atomic():
            head = SignedHead.objects.select_for_update().get(size=newest.size)
            known = {(signature.name, signature.key_id) for signature in Note.parse(head.note).signatures}
            new = [each for each in cosignatures if (each.name, each.key_id) not in known]
            head.note += "".join(cosignature.line() for cosignature in new)
            head.has_quorum = is_witnessed(head, rules)
            head.save(update_fields=["note", "has_quorum"])
    return len(cosignatures)


def ask_all(*, newest: SignedHead) -> list[WitnessAnswer]:
    """Ask every witness whether it knows the log as of `newest`; nothing is stored.

    A witness that has seen a larger tree answers with its size. Raises: WitnessPolicyInvalid.
    """
    rules = policy()
    witnesses = rules.witnesses if rules else []
    return _submitted(newest, [(witness, newest.size) for witness in witnesses if witness.url])


def _cosigners(newest: SignedHead, rules: Policy) -> set[str]:
    """Return who has cosigned; nobody if a stored cosignature does not verify."""
    try:
        return rules.cosigners(Note.parse(newest.note))
    except TlogError as error:
        log.critical("checkpoint of %d entries: %s", newest.size, error)
        return set()


def _submitted(newest: SignedHead, asked: Sequence[tuple[TrustedWitness, int]]) -> list[WitnessAnswer]:
    """Submit to each witness with the proof from so many leaves; side by side, outside any transaction."""
    stored = StoredTiles()
    with ThreadPoolExecutor(max(1, len(asked)), "witness") as pool:
        pending = []
        for witness, old_size in asked:
            proof = consistency_path(old_size, newest.size, stored.subtree)
            pending.append(pool.submit(submit, witness, old_size=old_size, proof=proof, note=newest.note))
        return [one.result() for one in pending]


def submit(
    witness: TrustedWitness,
    *,
    old_size: int,
    proof: list[bytes],
    note: str,
    deadline: float = DEADLINE_SECONDS,
) -> WitnessAnswer:
    """Ask a witness, which has a `url`, to cosign the checkpoint in `note`; return what came of it.

    `proof` leads from `old_size` leaves to the checkpoint. `deadline` is in seconds and bounds everything,
    name resolution included. Redirects are not followed. Raises: Malformed if `note` is no note.
    """
    request = AddCheckpoint(old_size, proof, Note.parse(note))
    answer = send(
        f"{str(witness.url).rstrip('/')}/add-checkpoint",
        body=request.encode().encode(),
        headers={"Content-Type": "text/plain", "Connection": "close"},
        options=RequestOptions(URLS, deadline, settings.AUDIT_WITNESS_CA_FILE or None),
    )
    status, text = answer.response_status, answer.response_body or ""
    if answer.error is not None:
        return WitnessAnswer(witness, problem=answer.error)
    try:
        if status == 200:
            return WitnessAnswer(witness, _cosignature(text, request.note, witness.key))
        if status == 409 and answer.content_type == SIZE_CONTENT_TYPE:
            size = read_decimal(text.removesuffix("\n"))
            own = Checkpoint.parse(request.note.text).size
            if size > own:
                has_more = f"The witness has cosigned {size} entries, this log has {own}: {ROLLED_BACK}"
                return WitnessAnswer(witness, size=size, problem=has_more)
            if size != old_size:
                return WitnessAnswer(witness, size=size, problem=f"The witness has a tree of {size} leaves")
    except TlogError as error:
        return WitnessAnswer(witness, problem=f"The witness answered {status}: {error}")
    # One line of what may be stored, logged and shown.
    printable = "".join(each if each.isprintable() else " " for each in text[:MAX_TEXT])
    return WitnessAnswer(witness, problem=f"The witness answered {status}: {' '.join(printable.split())}")


def _cosignature(text: str, note: Note, key: VerifierKey) -> Signature:
    """Return the key's own among the signatures of an answer. Raises: TlogError."""
    for signature in parse_signatures(text):
        if key.is_named_in(signature):
            key.verify(note.text, signature)
            return signature
    raise SignatureInvalid(f"No cosignature by {key.name}")


def _note_state(answer: WitnessAnswer, newest: SignedHead, now: datetime) -> None:
    name = answer.witness.name
    fields: dict[str, object] = {"tried_at": now}
    before = WitnessState.objects.filter(name=name).first()
    # A witness that cannot be reached has not taken back what it said of another tree
    if before is None or contradicts(answer.problem) or not contradicts(before.problem):
        fields["problem"] = answer.problem[:MAX_PROBLEM]
    if answer.cosignature is not None:
        fields |= {"size": newest.size, "cosigned_at": now, "problem": ""}
    else:
        log.warning("witness %s did not cosign %d: %s", name, newest.size, answer.problem)
    WitnessState.objects.update_or_create(name=name, defaults=fields)
