"""Ed25519 cosignatures of witnesses (C2SP tlog-cosignature, type 0x04): a signed time and checkpoint.

The value of such a signature is eight octets of time (seconds since 1970) and the Ed25519 signature.
"""

from collections.abc import Callable

from auditlog.tlog.errors import SignatureInvalid
from auditlog.tlog.lines import MAX_SIZE

ALGORITHM = 0x04
TIMESTAMP_BYTES = 8
VALUE_BYTES = TIMESTAMP_BYTES + 64


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


def signed_part(checkpoint_text: str, value: bytes) -> tuple[bytes, bytes]:
    """Return the message that `value` signs, and the Ed25519 signature; raises `SignatureInvalid`."""
    return message(checkpoint_text, timestamp_of(value)), value[TIMESTAMP_BYTES:]
