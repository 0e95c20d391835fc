"""A witness's folder, for one process at a time: its key, made on the first start, and each log's file."""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from auditlog.tlog.lines import Malformed
from auditlog.tlog.notes import COSIGNATURE, VerifierKey

KEY_FILE = "key"  # the public key as a vkey on the first line, the private one in PEM below


class WitnessUnusable(Exception):
    """The witness can't start; the text tells its operator why."""


class StateFolder:
    """The folder, which this process alone uses inside the block. Raises: WitnessUnusable."""

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise WitnessUnusable(f"Another process uses {path}") from error
        parent = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._descriptor)

    def names(self, suffix: str) -> Iterator[str]:
        return (path.name for path in sorted(self._path.iterdir()) if path.name.endswith(suffix))

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        path = self._path / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole. Once this returns, a crash of the machine does not undo it."""
        temporary = self._path / f"{name}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(self._path / name)
        os.fsync(self._descriptor)


@dataclass(frozen=True)
class WitnessKey:
    public: VerifierKey
    private: Ed25519PrivateKey


def stored_vkey(path: Path) -> str | None:
    """Return the public key of the witness in this folder; None if it has none yet."""
    file = path / KEY_FILE
    return file.read_text().partition("\n")[0] if file.exists() else None


def key_of(folder: StateFolder, name: str | None) -> WitnessKey:
    """Return the folder's key, made for `name` at first. Raises: WitnessUnusable, Malformed."""
    content = folder.read(KEY_FILE)
    key = _made(folder, name) if content is None else _loaded(content)
    if name and key.public.name != name:
        # A cosignature does not say its name: one key under two names could pass for two witnesses.
        raise WitnessUnusable(f"The key of this folder is named {key.public.name!r}: make another folder")
    return key


def _made(folder: StateFolder, name: str | None) -> WitnessKey:
    if not name:
        raise WitnessUnusable("The first start needs --name, the name of the key to make")
    private = Ed25519PrivateKey.generate()
    public = _public_of(private, name)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    folder.write(KEY_FILE, f"{public.encode()}\n".encode() + pem)
    return WitnessKey(public, private)


def _loaded(content: bytes) -> WitnessKey:
    vkey, _, pem = content.partition(b"\n")
    try:
        public = VerifierKey.parse(vkey.decode())
        private = load_pem_private_key(pem, None)
    except ValueError as error:
        raise WitnessUnusable(f"The file {KEY_FILE!r} is damaged") from error
    if not isinstance(private, Ed25519PrivateKey) or _public_of(private, public.name) != public:
        raise WitnessUnusable(f"The file {KEY_FILE!r} does not hold the key that its first line names")
    return WitnessKey(public, private)


def _public_of(private: Ed25519PrivateKey, name: str) -> VerifierKey:
    octets = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return VerifierKey.ed25519(name, octets, COSIGNATURE)


def log_key(vkey: str) -> VerifierKey:
    """Read the key of a log to witness; raises `Malformed`."""
    found = VerifierKey.parse(vkey)
    if found.algorithm == COSIGNATURE:
        raise Malformed(f"The key of a witness, not of a log: {vkey}")
    return found
