"""The log's side of a witness: submit a checkpoint, and accept only a cosignature that verifies."""

from auditlog.tlog.checkpoints import SIZE_CONTENT_TYPE, AddCheckpoint
from auditlog.tlog.lines import SignatureInvalid, TlogError, read_decimal
from auditlog.tlog.notes import Note, Signature, VerifierKey, parse_signatures
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import RequestOptions, post

MAX_TEXT = 200
URLS = UrlPolicy(allow_http=True, allow_private=True)
"""A witness's address is the operator's own."""


class SubmissionFailed(Exception):
    """Base: there is no cosignature; the text says why."""


class WitnessUnreachable(SubmissionFailed):
    """No complete HTTP answer came in time."""


class WitnessRefused(SubmissionFailed):
    """The witness answered something else than a cosignature that verifies."""

    def __init__(self, status: int | None, text: str) -> None:
        super().__init__(f"The witness answered {status}: {text}")
        self.status, self.text = status, text


class WitnessIsAt(SubmissionFailed):
    """The latest checkpoint of this log that the witness cosigned has `size` leaves: prove from there."""

    def __init__(self, size: int) -> None:
        super().__init__(f"The witness has a tree of {size} leaves")
        self.size = size


def submit(
    url: str,
    *,
    old_size: int,
    proof: list[bytes],
    note: str,
    key: VerifierKey,
    deadline: float,
    ca_file: str | None = None,
) -> Signature:
    """Return the cosignature of a checkpoint by the witness whose submission prefix is `url`.

    `proof` leads from `old_size` leaves to the checkpoint in `note`. `deadline` is in seconds and bounds
    everything, name resolution included. `ca_file`: root certificates in PEM instead of the public ones.
    Redirects are not followed. Raises: WitnessIsAt if the witness has another size than `old_size`;
    WitnessRefused; WitnessUnreachable; Malformed if `note` is no note.
    """
    request = AddCheckpoint(old_size, proof, Note.parse(note))
    answer = post(
        f"{url.rstrip('/')}/add-checkpoint",
        body=request.encode().encode(),
        headers={"Content-Type": "text/plain", "Connection": "close"},
        options=RequestOptions(URLS, deadline, ca_file),
    )
    status, text = answer.response_status, answer.response_body or ""
    if answer.error is not None:
        raise WitnessUnreachable(answer.error)
    try:
        if status == 200:
            return _cosignature(text, request.note, key)
        if status == 409 and answer.content_type == SIZE_CONTENT_TYPE:
            size = read_decimal(text.removesuffix("\n"))
            if size != old_size:
                raise WitnessIsAt(size)
    except TlogError as error:
        raise WitnessRefused(status, str(error)) from error
    # One line of what may be stored, logged and shown.
    printable = "".join(each if each.isprintable() else " " for each in text[:MAX_TEXT])
    raise WitnessRefused(status, " ".join(printable.split()))


def _cosignature(text: str, note: Note, key: VerifierKey) -> Signature:
    """Return the key's own among the signatures of an answer. Raises: TlogError."""
    for signature in parse_signatures(text):
        if key.is_named_in(signature):
            key.verify(note.text, signature)
            return signature
    raise SignatureInvalid(f"No cosignature by {key.name}")
