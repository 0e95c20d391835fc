#!/usr/bin/env python3
"""Verify proofs and exports of the audit log offline; the sections are those of docs/audit-log.md.

    verify_audit_log.py proof|export FILE --log VKEY [--witness VKEY --quorum N]
    verify_audit_log.py consistency OLD NEW PROOF --log VKEY [...]

OLD and NEW are checkpoints, PROOF the answer of `/consistency`; --log and --witness may be repeated. Needs
Python 3.10 and `cryptography`. Exit status: 0 verified, 1 not as sealed, 2 a file cannot be read.
"""

import argparse
import base64
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

HEAD = ("actor_kind", "actor_type", "created_at", "event_type", "id", "tenant_id")
PARTS = ("head", "actor_id", "affected_id", "description", "metadata")
JSON_COLUMNS = ("metadata", "salts", "erased")
COLUMNS = [
    *("record", "index", "id", "tenant_id", "event_type", "actor_type", "actor_kind", "created_at"),
    *("actor_id", "affected_id", "description", *JSON_COLUMNS, "proof"),
]
FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
b64decode = partial(base64.b64decode, validate=True)


def need(condition: object, text: str) -> None:
    if not condition:
        raise ValueError(text)


# Values: RFC 8785
def canonical(value: Any) -> str:
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: pair[0].encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(each)}" for name, each in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return number(value)
    need(not isinstance(value, int) or abs(value) < 2**53, "an integer that no double holds")
    return json.dumps(value, ensure_ascii=False)


def number(value: float) -> str:
    """Return the shortest digits of a double, laid out as ECMAScript does (RFC 8785 section 3.2.2.3)."""
    sign, whole, fraction, power = re.findall(r"^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$", repr(value))[0]
    point = len((whole + fraction).lstrip("0")) - len(fraction) + int(power or 0)
    digits = (whole + fraction).strip("0")
    if not digits or len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0") if digits else "0"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"


# Leaf
def leaf_hash(entry: dict[str, Any]) -> bytes:
    erased, salts, leaf = entry.get("erased", {}), entry["salts"], b"\1"
    need({*entry, "erased"} == {*HEAD, *PARTS[1:], "salts", "erased"}, "not the fields of an entry")
    need({*salts} == {*PARTS} - {*erased} and "head" not in erased, "not a salt for each part")
    for part in PARTS:
        value = {name: entry[name] for name in HEAD} if part == "head" else entry[part]
        salt = bytes.fromhex(salts.get(part, ""))
        commitment = sha256(salt + part.encode() + b"\0" + canonical(value).encode()).digest()
        if part in erased:
            need(value is None, f"{part} is erased and yet shown")
            commitment = bytes.fromhex(erased[part])
        need(len(salt) == 16 * (part not in erased) and len(commitment) == 32, f"{part}: a wrong length")
        leaf += commitment
    return sha256(b"\0" + leaf).digest()


# Tree: RFC 6962 section 2.1
def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def root_of(index: int, size: int, leaf: bytes, path: list[bytes]) -> bytes:
    """Return the root to which the proof leads from the leaf at `index` of `size` (2.1.1)."""
    need(0 <= index < size and bool(path) == (size > 1), "no such leaf, or a proof of another length")
    if size == 1:
        return leaf
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        return node(root_of(index, half, leaf, path[:-1]), path[-1])
    return node(path[-1], root_of(index - half, size - half, leaf, path[:-1]))


def roots_of(old: int, new: int, path: list[bytes], known: bytes | None) -> tuple[bytes, ...]:
    """Return the roots of both trees; `known` is the old one's while it is a subtree of the new (2.1.2)."""
    if old == new:
        need(len(path) == (known is None), "the proof has another length")
        return (known, known) if known is not None else (path[0], path[0])
    need(path and 0 < old < new, "the proof is too short, or the new tree is smaller")
    half = 1 << (new - 1).bit_length() - 1
    if old <= half:
        first, second = roots_of(old, half, path[:-1], known)
        return first, node(second, path[-1])
    return tuple(node(path[-1], root) for root in roots_of(old - half, new - half, path[:-1], None))


# Checkpoints: C2SP signed-note, tlog-checkpoint, tlog-cosignature
def signed_by(vkey: str, text: str, lines: list[str]) -> bool:
    """Return whether the key (name+id+key) signed; a signature that says so must verify."""
    name, key_id, encoded = vkey.split("+", 2)
    octets, found = b64decode(encoded), False
    need(sha256(f"{name}\n".encode() + octets).hexdigest()[:8] == key_id, f"not a key: {vkey}")
    for signer, value in (line[2:].split(" ") for line in lines):
        made = b64decode(value)
        if (signer, made[:4].hex()) == (name, key_id):
            # Witnesses (type 4) sign a time, too.
            time = f"cosignature/v1\ntime {int.from_bytes(made[4:12], 'big')}\n" if octets[0] == 4 else ""
            signature = made[12:] if time else made[4:]
            Ed25519PublicKey.from_public_bytes(octets[1:]).verify(signature, (time + text).encode())
            found = True
    return found


def read_checkpoint(note: str, trusted: argparse.Namespace) -> tuple[int, bytes]:
    body, _, signatures = note.rpartition("\n\n")
    text, lines = f"{body}\n", signatures.split("\n")[:-1]
    origin, size, root, *_ = text.split("\n")
    need(all(line.startswith("\u2014 ") for line in lines), "not a signed note")
    logs = [key for key in trusted.log if key.split("+")[0] == origin]
    need(any(signed_by(key, text, lines) for key in logs), f"{origin}: not signed by a trusted key")
    cosigned = sum(signed_by(key, text, lines) for key in {*trusted.witness})
    need(cosigned >= trusted.quorum, f"{cosigned} witnesses cosigned, not {trusted.quorum}")
    trusted.seen = f"{origin}, {size} entries, signed, cosigned by {cosigned}"
    return int(size), b64decode(root)


# Proofs and exports
def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "a name twice in one object")
    return dict(pairs)


parsed = partial(json.loads, object_pairs_hook=unique)


def check_proof(file: Path, trusted: argparse.Namespace) -> str:
    head, _, note = file.read_text("utf-8").partition("\n\n")
    version, extra, index, *path = head.split("\n")
    need(version == "c2sp.org/tlog-proof@v1" and extra[:6] + index[:6] == "extra index ", "not a tlog-proof")
    entry = parsed(b64decode(extra[6:]))
    size, root = read_checkpoint(note, trusted)
    found = root_of(int(index[6:]), size, leaf_hash(entry), [*map(b64decode, path)])
    need(found == root, "the entry is not what was sealed")
    return f"entry {entry['id']} is at index {index[6:]}"


def hashed(lines: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    """Yield the lines; `digest` has taken all before the last one."""
    before = b""
    for line in lines:
        need(line.endswith(b"\n"), "cut off")
        digest.update(before)
        before = line
        yield line


def records(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield header, entries and footer of an export in JSON Lines or CSV, as in JSON Lines."""
    first = next(lines, b"")
    if first.startswith(b"{"):
        yield from map(parsed, chain([first], lines))
        return
    csv.field_size_limit(1 << 24)
    rows = csv.reader((line.decode() for line in chain([first], lines)), strict=True)
    need(next(rows, []) == COLUMNS, "not an export: neither JSON nor its columns")
    for row in rows:
        need(len(row) == len(COLUMNS) and row[0] in ("export", "entry", "end"), f"not a row: {row[:2]}")
        texts = (cell.removeprefix("'") if cell else None for cell in row)
        cells = dict(zip(COLUMNS, texts, strict=True))
        record, index, proof = (cells.pop(name) for name in ("record", "index", "proof"))
        if record != "entry":
            yield parsed(proof or "")
            continue
        entry = {**cells, **{name: parsed(cells[name] or "null") for name in JSON_COLUMNS}}
        if entry["erased"] is None:
            del entry["erased"]
        yield {"index": int(index or ""), "entry": entry, "path": (proof or "").split()}


def check_export(file: Path, trusted: argparse.Namespace) -> str:
    last, record, count, digest = -1, None, 0, sha256()
    with file.open("rb") as lines:
        found = records(hashed(lines, digest))
        header = next(found, {})
        need((header.get("format"), header.get("version")) == ("audit-log-export", 1), "not an export")
        size, root = read_checkpoint(header["checkpoint"], trusted)
        for record in found:
            if "sha256" in record:
                break
            index, entry, path = record["index"], record["entry"], [*map(b64decode, record["path"])]
            is_next = type(index) is int and last < index and entry["tenant_id"] == header["tenant_id"]
            need(is_next, f"index {index}: out of order, or another tenant's")
            need(root_of(index, size, leaf_hash(entry), path) == root, f"index {index} is not as sealed")
            last, count = index, count + 1
        is_whole = record == {"entries": count, "sha256": digest.hexdigest()} and not lines.read(1)
    need(is_whole, "cut off or changed: the footer does not fit")
    return f"{count} entries of tenant {header['tenant_id']}, filters {header['filters']}"


def check_consistency(file: Path, trusted: argparse.Namespace) -> str:
    (old, old_root), (new, root) = (read_checkpoint(each.read_text(), trusted) for each in trusted.files[:2])
    path = [*map(b64decode, json.loads(trusted.files[2].read_bytes())["data"]["hashes"])]
    need(roots_of(old, new, path, old_root) == (old_root, root), "the new tree does not begin with the old")
    return f"the tree of {new} entries begins with that of {old}"


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["proof", "export", "consistency"])
    parser.add_argument("files", nargs="+", type=Path)
    for name in ("--log", "--witness"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("--quorum", type=int, default=0)
    given = parser.parse_args()
    check = {"proof": check_proof, "export": check_export}.get(given.what, check_consistency)
    try:
        sys.stdout.write(f"VERIFIED: {check(given.files[0], given)} ({given.seen})\n")
    except OSError as error:
        sys.stderr.write(f"CANNOT TELL: {error}\n")
        return 2
    except (*FAULTS, InvalidSignature, csv.Error) as error:
        sys.stderr.write(f"NOT AS SEALED: {type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
