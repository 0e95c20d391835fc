"""The rule by which a witness cosigns: for each log, only trees that begin with the last one it cosigned."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from auditlog.tlog.checkpoints import SIZE_CONTENT_TYPE, AddCheckpoint, Checkpoint
from auditlog.tlog.lines import Malformed, ProofInvalid, SignatureInvalid, TlogError
from auditlog.tlog.merkle import EMPTY_ROOT, verify_consistency
from auditlog.tlog.notes import Note, VerifierKey, cosign, verified
from auditlog.witness.state import StateFolder, WitnessKey, WitnessUnusable

SUFFIX = ".checkpoint"
PLAIN = "text/plain; charset=utf-8"

logger = logging.getLogger(__name__)


class CheckpointRefused(Exception):
    """The witness does not cosign; with the status and body of the answer."""

    def __init__(self, status: int, text: str, content_type: str = PLAIN) -> None:
        super().__init__(text)
        self.status, self.text, self.content_type = status, text, content_type


@dataclass(frozen=True)
class Cosigned:
    """A log's latest checkpoint: with the log's signatures and the cosignature as `note`."""

    checkpoint: Checkpoint
    note: str


class Witness:
    """The latest checkpoints of the logs with the names of these keys. Raises: WitnessUnusable."""

    def __init__(self, folder: StateFolder, key: WitnessKey, log_keys: Iterable[VerifierKey]) -> None:
        self._folder, self._key = folder, key
        self._log_keys: dict[str, list[VerifierKey]] = {}
        for log_key in log_keys:
            self._log_keys.setdefault(log_key.name, []).append(log_key)
        self._locks = {origin: Lock() for origin in self._log_keys}
        self._latest = {name: self._loaded(name) for name in folder.names(SUFFIX)}

    def add_checkpoint(self, body: bytes, *, now: int) -> str:
        """Return the line of the cosignature, made at `now` (seconds since 1970).

        The log's file holds the checkpoint before this returns.
        Raises: CheckpointRefused; OSError if the file can't be written.
        """
        request, checkpoint = _read(body)
        keys = self._log_keys.get(checkpoint.origin)
        if keys is None:
            raise CheckpointRefused(404, "This witness does not follow a log of this origin\n")
        try:
            # One of each key: a key can sign a text in many ways, and the note is stored with one more.
            by_key = {each.key_id: each for each in verified(request.note, keys)}
        except SignatureInvalid as error:
            raise CheckpointRefused(403, f"{error}\n") from error
        signed = Note(request.note.text, tuple(by_key.values()))
        with self._locks[checkpoint.origin]:
            self._check_follows(request, checkpoint, signed)
            cosignature = self._key.public.signature(cosign(self._key.private.sign, signed.text, now))
            note = Note(signed.text, (*signed.signatures, cosignature)).encode()
            self._folder.write(_file_of(checkpoint.origin), note.encode())
            self._latest[_file_of(checkpoint.origin)] = Cosigned(checkpoint, note)
        return cosignature.line()

    def latest(self) -> list[Cosigned]:
        """Return the latest checkpoint of each log, in order of origin."""
        return sorted(self._latest.copy().values(), key=lambda found: found.checkpoint.origin)

    def latest_of(self, origin_hash: str) -> Cosigned | None:
        """Return the latest checkpoint of the log whose origin has this SHA-256 in hex, if there is one."""
        return self._latest.get(f"{origin_hash}{SUFFIX}")

    def _check_follows(self, request: AddCheckpoint, new: Checkpoint, signed: Note) -> None:
        """Check that a log's new checkpoint continues its latest one; the caller holds the log's lock.

        What does not follow is logged with its signatures: it can be proof of two histories.
        """
        if request.old_size > new.size:
            raise CheckpointRefused(400, "The old size is larger than the checkpoint's\n")
        known = self._latest.get(_file_of(new.origin))
        old_size, old_root = (
            (known.checkpoint.size, known.checkpoint.root) if known is not None else (0, EMPTY_ROOT)
        )
        if request.old_size != old_size:
            raise CheckpointRefused(409, f"{old_size}\n", SIZE_CONTENT_TYPE)
        try:
            verify_consistency(old_size, old_root, new.size, new.root, request.proof)
        except ProofInvalid as error:
            logger.warning("Does not follow %d leaves: %r", old_size, signed.encode())
            raise CheckpointRefused(422, f"{error}\n") from error

    def _loaded(self, name: str) -> Cosigned:
        content = self._folder.read(name)
        try:
            note = Note.parse(content or b"")
            verified(note, [self._key.public])
            found = Cosigned(Checkpoint.parse(note.text), note.encode())
        except TlogError as error:
            raise WitnessUnusable(f"The file {name!r} is damaged: {error}") from error
        if _file_of(found.checkpoint.origin) != name:
            raise WitnessUnusable(f"The file {name!r} is of another log")
        return found


def _read(body: bytes) -> tuple[AddCheckpoint, Checkpoint]:
    try:
        request = AddCheckpoint.parse(body)
        return request, Checkpoint.parse(request.note.text)
    except Malformed as error:
        raise CheckpointRefused(400, f"{error}\n") from error


def _file_of(origin: str) -> str:
    return f"{sha256(origin.encode()).hexdigest()}{SUFFIX}"
