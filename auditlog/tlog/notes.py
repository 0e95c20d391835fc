"""Signed notes (C2SP signed-note): a text and the signatures under it, and the keys that verify them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from auditlog.tlog.lines import MAX_SIZE, Malformed, SignatureInvalid, read_base64, read_text
from compliance.core.encodings import b64_encode

ED25519, COSIGNATURE = 0x01, 0x04
TIMESTAMP_BYTES = 8
VALUE_BYTES = TIMESTAMP_BYTES + 64
MAX_NOTE_BYTES = 1024 * 1024
MAX_SIGNATURES = 64
KEY_ID_BYTES = 4
PUBLIC_BYTES = 32
_DASH = "\N{EM DASH} "


def message(checkpoint_text: str, timestamp: int) -> bytes:
    """Return what a witness signs: that at `timestamp` this was the largest consistent tree it had seen."""
    return f"cosignature/v1\ntime {timestamp}\n{checkpoint_text}".encode()


def cosign(sign: Callable[[bytes], bytes], checkpoint_text: str, timestamp: int) -> bytes:
    """Return the value of a cosignature; `sign` makes the Ed25519 signature of a message."""
    return timestamp.to_bytes(TIMESTAMP_BYTES, "big") + sign(message(checkpoint_text, timestamp))


def timestamp_of(value: bytes) -> int:
    """Return the time of a cosignature's value; raises `SignatureInvalid` if it has none."""
    timestamp = int.from_bytes(value[:TIMESTAMP_BYTES], "big")
    if len(value) != VALUE_BYTES or timestamp > MAX_SIZE:
        raise SignatureInvalid("Not a cosignature with a time")
    return timestamp


@dataclass(frozen=True)
class Signature:
    """One signature of a note: the key's name and id (4 octets), and what its algorithm made."""

    name: str
    key_id: bytes
    value: bytes

    def line(self) -> str:
        """Return the signature's line, its newline included."""
        return f"{_DASH}{self.name} {b64_encode(self.key_id + self.value)}\n"

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line without its newline; raises `Malformed`."""
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH):
            raise Malformed(f"Not a signature line: {line[:64]!r}")
        octets = read_base64(encoded)
        if len(octets) <= KEY_ID_BYTES:
            raise Malformed("A signature without a value")
        return cls(check_name(name), octets[:KEY_ID_BYTES], octets[KEY_ID_BYTES:])


@dataclass(frozen=True)
class Note:
    """A text that ends in a newline, and its signatures. Believe the text only after `verified`."""

    text: str
    signatures: tuple[Signature, ...]

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a note; what `encode` returns is then the same. Raises: Malformed."""
        body, blank, lines = read_text(text, at_most=MAX_NOTE_BYTES).rpartition("\n\n")
        if not blank or not lines.endswith("\n"):
            raise Malformed("A note without signature lines")
        return cls(f"{body}\n", parse_signatures(lines))

    def encode(self) -> str:
        return f"{self.text}\n{''.join(each.line() for each in self.signatures)}"


@dataclass(frozen=True)
class VerifierKey:
    """A public Ed25519 key with its name; `algorithm` is ED25519 (logs) or COSIGNATURE (witnesses)."""

    name: str
    key_id: bytes
    algorithm: int
    public: bytes

    @classmethod
    def ed25519(cls, name: str, public: bytes, algorithm: int = ED25519) -> Self:
        """Make the key of this name from its 32 octets; raises `Malformed`."""
        if algorithm not in {ED25519, COSIGNATURE} or len(public) != PUBLIC_BYTES:
            raise Malformed(f"Not an Ed25519 key of type 0x01 or 0x04: {name!r}")
        key_id = sha256(f"{check_name(name)}\n".encode() + bytes([algorithm]) + public).digest()
        return cls(name, key_id[:KEY_ID_BYTES], algorithm, public)

    @classmethod
    def parse(cls, vkey: str) -> Self:
        """Read `<name>+<key id in hex>+<base64 of type and key>`; raises `Malformed`."""
        name, _, rest = vkey.partition("+")
        _, _, encoded = rest.partition("+")
        octets = read_base64(encoded)
        found = cls.ed25519(name, octets[1:], octets[0] if octets else 0)
        if found.encode() != vkey:
            raise Malformed(f"The id of the key does not fit: {vkey[:128]!r}")
        return found

    def encode(self) -> str:
        """Return the key as a line of text, a "vkey"."""
        return f"{self.name}+{self.key_id.hex()}+{b64_encode(bytes([self.algorithm]) + self.public)}"

    def signature(self, value: bytes) -> Signature:
        return Signature(self.name, self.key_id, value)

    def is_named_in(self, signature: Signature) -> bool:
        return (self.name, self.key_id) == (signature.name, signature.key_id)

    def verify(self, text: str, signature: Signature) -> None:
        """Check that this key made the signature of a note's text; raises `SignatureInvalid`."""
        signed, value = text.encode(), signature.value
        if self.algorithm == COSIGNATURE:
            signed, value = message(text, timestamp_of(value)), value[TIMESTAMP_BYTES:]
        try:
            if not self.is_named_in(signature):
                raise SignatureInvalid(f"Not a signature by {self.name}")
            Ed25519PublicKey.from_public_bytes(self.public).verify(value, signed)
        except InvalidSignature as error:
            raise SignatureInvalid(f"The signature by {self.name} does not verify") from error


def parse_signatures(lines: str) -> tuple[Signature, ...]:
    """Read signature lines, each with its newline, 1 to 64; raises `Malformed`."""
    split = lines.split("\n")
    if split.pop() or not 1 <= len(split) <= MAX_SIGNATURES:
        raise Malformed(f"Not 1 to {MAX_SIGNATURES} signature lines")
    return tuple(map(Signature.parse, split))


def verified(note: Note, keys: Iterable[VerifierKey]) -> list[Signature]:
    """Return the note's signatures by these keys; signatures by other keys are ignored.

    Raises: SignatureInvalid if none is by one of the keys, or one that says so does not verify.
    """
    known = [(signature, key) for key in keys for signature in note.signatures if key.is_named_in(signature)]
    for signature, key in known:
        key.verify(note.text, signature)
    if not known:
        raise SignatureInvalid("No signature by a known key")
    return list(dict.fromkeys(signature for signature, _ in known))


def check_name(name: str) -> str:
    """Return the name if a key can have it; raises `Malformed`."""
    if not name or "+" in name or any(letter.isspace() for letter in name):
        raise Malformed(f"Not a key's name: {name[:64]!r}")
    return name
