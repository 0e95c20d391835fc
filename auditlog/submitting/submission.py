"""The log's side of a witness: submit a checkpoint, and accept only a cosignature that verifies."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings

from auditlog.tlog.checkpoints import SIZE_CONTENT_TYPE, AddCheckpoint
from auditlog.tlog.lines import SignatureInvalid, TlogError, read_decimal
from auditlog.tlog.notes import Note, Signature, VerifierKey, parse_signatures
from auditlog.tlog.policy import TrustedWitness
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import RequestOptions, post

DEADLINE_SECONDS: Final = 5.0
MAX_TEXT = 200
URLS = UrlPolicy(allow_http=True, allow_private=True)
"""A witness's address is the operator's own."""


@dataclass(frozen=True)
class WitnessAnswer:
    """A witness's answer: a cosignature, or a problem in words and perhaps the size to prove from."""

    witness: TrustedWitness
    cosignature: Signature | None = None
    size: int | None = None
    problem: str = ""


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
    answer = post(
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
