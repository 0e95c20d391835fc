"""The canonical encoding of an entry (docs/audit-log.md): salted commitments, and the leaf of them. Pure."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

import msgspec
import rfc8785

VERSION: Final = b"\x01"
PARTS: Final = ("head", "actor_id", "affected_id", "description", "metadata")
"""The parts of an entry in the order of their commitments; `head` holds the fields that are never erased."""
ERASABLE: Final = PARTS[1:]
SALT_OCTETS: Final = 16
SALTS_OCTETS: Final = SALT_OCTETS * len(PARTS)
NO_SALT: Final = bytes(SALT_OCTETS)
ERASED: Final = "erased"
"""What is shown of an erased actor, whose field may not be null."""
_SPANS: Final = tuple(slice(n * SALT_OCTETS, (n + 1) * SALT_OCTETS) for n in range(len(PARTS)))
_LARGEST_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 64
"""JSON nested deeper, which Python may not read, is committed to as the string of its text."""


class EntryRow(NamedTuple):
    """An entry as stored, every field as text; `created_at` in UTC with six digits of a second."""

    id: str
    tenant_id: str
    event_type: str
    actor_type: str
    actor_kind: str
    created_at: str
    actor_id: str
    affected_id: str | None
    description: str | None
    metadata: str | None


def leaf_data(row: EntryRow, salts: bytes, erased: Mapping[str, str] | None = None) -> bytes:
    """Return the 161 octets of the entry's leaf: the version, then the five commitments.

    `erased` gives the commitments (hexadecimal) of the parts whose contents and salts are gone.
    """
    # Written out: this runs for each entry of the log when it is verified.
    entry_id, tenant_id, event_type, actor_type, actor_kind, created_at, *parts = row
    actor_id, affected_id, description, metadata = parts
    quoted = encode_basestring
    head = (
        f'{{"actor_kind":{quoted(actor_kind)},"actor_type":{quoted(actor_type)},"created_at":"{created_at}",'
        f'"event_type":{quoted(event_type)},"id":"{entry_id}","tenant_id":"{tenant_id}"}}'
    )
    canonical = b"null" if metadata is None else canonical_json(metadata)
    commitments = [
        sha256(salts[0:16] + b"head\0" + head.encode()).digest(),
        sha256(salts[16:32] + b"actor_id\0" + _text(actor_id)).digest(),
        sha256(salts[32:48] + b"affected_id\0" + _text(affected_id)).digest(),
        sha256(salts[48:64] + b"description\0" + _text(description)).digest(),
        sha256(salts[64:80] + b"metadata\0" + canonical).digest(),
    ]
    if erased:
        for part, commitment in erased.items():
            commitments[PARTS.index(part)] = bytes.fromhex(commitment)
    return VERSION + b"".join(commitments)


def disclosure(row: EntryRow, salts: bytes, erased: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what opens a leaf: the fields, the salts in hexadecimal, the commitments to erased parts."""
    gone = erased or {}
    shown: dict[str, Any] = row._asdict()
    if row.metadata is not None and not _is_deep(row.metadata):
        shown["metadata"] = _decode(row.metadata)
    shown |= dict.fromkeys(gone)
    shown["salts"] = {
        part: salts[span].hex() for part, span in zip(PARTS, _SPANS, strict=True) if part not in gone
    }
    return shown | ({"erased": dict(gone)} if gone else {})


def canonical_json(text: str) -> bytes:
    """Rewrite PostgreSQL's text of a JSON value as RFC 8785 has it.

    A number that no double holds exactly becomes the string of its digits: a change of any digit shows.
    So does a value nested deeper than `MAX_DEPTH`.
    """
    if _is_deep(text):
        return _text(text)
    if _UNPLAIN.search(text) is None:
        # msgspec, many times faster, writes these as RFC 8785 demands.
        try:
            return _encode_plain(_decode_plain(text))
        except _NotPlain:
            pass
    return rfc8785.dumps(_decode(text))


def _text(text: str | None) -> bytes:
    return b"null" if text is None else encode_basestring(text).encode()


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    brackets = _BRACKETS.findall(_STRINGS.sub("", text))
    return max(accumulate(1 if each in "[{" else -1 for each in brackets), default=0) > MAX_DEPTH


def _fraction(digits: str) -> float | str:
    number = float(digits)
    return number if Decimal(repr(number)) == Decimal(digits) else digits


def _plain_fraction(digits: str) -> float:
    number = float(digits)
    if repr(number) != digits or "e" in digits or digits.endswith(".0"):
        raise _NotPlain
    return number


def _integer(digits: str) -> int | str:
    # Python reads no integer of more than 4,300 digits.
    return digits if len(digits) > 17 or abs(int(digits)) > _LARGEST_INTEGER else int(digits)


class _NotPlain(ValueError):
    """A number that Python writes in another way than RFC 8785."""


_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETS: Final = re.compile(r"[\[{}\]]")
# A letter by which names sort differently as UTF-16 and as code points, or what may be the escape of one.
_UNPLAIN: Final = re.compile("[^\\0-\ud7ff]|\\\\u[d-fD-F]")
_decode: Final = json.JSONDecoder(parse_float=_fraction, parse_int=_integer).decode
_decode_plain: Final = json.JSONDecoder(parse_float=_plain_fraction, parse_int=_integer).decode
_encode_plain: Final = msgspec.json.Encoder(order="deterministic").encode
