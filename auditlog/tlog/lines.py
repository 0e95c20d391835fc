"""The parts that lines of the C2SP formats consist of, and the errors in texts and proofs."""

import re

from compliance.core.encodings import b64_decode, b64_encode

HASH_BYTES = 32
MAX_SIZE = 2**63 - 1
MAX_PATH = 63  # hashes of a proof
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


class TlogError(ValueError):
    """Base of these errors; the text says what is wrong."""


class Malformed(TlogError):
    """The text is not in the format it should be in."""


class ProofInvalid(TlogError):
    """A Merkle proof does not lead to the root, or has the wrong length."""


class SignatureInvalid(TlogError):
    """A signature of a known key does not verify, or a signature that is needed is missing."""


def read_decimal(text: str) -> int:
    """Read a number from 0 to 2^63 - 1 in ASCII digits without leading zeroes; raises `Malformed`."""
    if not _DECIMAL.fullmatch(text) or int(text) > MAX_SIZE:
        raise Malformed(f"Not a size: {text[:32]!r}")
    return int(text)


def read_base64(text: str) -> bytes:
    """Return the octets that canonical base64 spells; raises `Malformed`."""
    try:
        return b64_decode(text)
    except ValueError as error:
        raise Malformed(f"Not base64: {text[:32]!r}") from error


def read_hash(text: str) -> bytes:
    """Return the 32 octets of a hash in base64; raises `Malformed`."""
    found = read_base64(text)
    if len(found) != HASH_BYTES:
        raise Malformed(f"Not a hash of {HASH_BYTES} octets: {text[:64]!r}")
    return found


def write_hashes(hashes: list[bytes]) -> str:
    """Return one line of base64 for each hash."""
    return "".join(f"{b64_encode(each)}\n" for each in hashes)


def read_text(text: str | bytes, *, at_most: int) -> str:
    """Return UTF-8 of so many octets, newlines its only control characters. Raises: Malformed."""
    try:
        octets = text.encode() if isinstance(text, str) else text
        if len(octets) > at_most:
            raise Malformed(f"More than {at_most} octets")
        found = octets.decode()
    except UnicodeError as error:
        raise Malformed("Not UTF-8") from error
    if _CONTROL.search(found):
        raise Malformed("A control character other than newline")
    return found
