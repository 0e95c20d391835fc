"""Verify an export by itself: every entry is in the tree of its checkpoint, and the file is whole."""

import csv
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from auditlog.exporting.formats import FORMAT, VERSION, ExportReader
from auditlog.leaves import PARTS, SALT_OCTETS, EntryRow, entry_hash
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.errors import Malformed, TlogError
from auditlog.tlog.lines import read_hash
from auditlog.tlog.merkle import verify_inclusion
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.verifying.contents import erased_wrongly
from auditlog.verifying.findings import Damage, Flaw, Verdict
from auditlog.verifying.service import Demands
from auditlog.verifying.trust import Trust

UNTRUSTED: Final = "the file itself names the keys: give --key or --policy with keys that you trust"
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_HEX: Final = re.compile(r"([0-9a-f]{2})*", re.ASCII)
_NULLABLE: Final = frozenset({"affected_id", "description", "metadata"})


def verify_export(lines: Iterable[bytes], *, name: str, demands: Demands) -> Verdict:
    """Verify the lines of an export, as a binary file yields them."""
    verdict = Verdict(name)
    reader = ExportReader(lines)
    try:
        _verify(reader, demands, verdict)
    except (
        csv.Error,
        TlogError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        verdict.add(Flaw(Damage.FILE, f"{type(error).__name__}: {error}"))
    return verdict


def _verify(reader: ExportReader, demands: Demands, verdict: Verdict) -> None:
    records = reader.records()
    header = next(records, {})
    if (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise Malformed(f"Not an export of version {VERSION}")
    checkpoint = _checkpoint(header, demands, verdict)
    count, footer = 0, None
    for record in records:
        if footer is not None:
            raise Malformed("More after the footer")
        if "entries" in record:
            footer = record
            continue
        _check_entry(record, header, checkpoint, verdict)
        count += 1
    verdict.counts |= {"entries": count, "tenant_id": header["tenant_id"], "filters": header["filters"]}
    if footer is None:
        verdict.add(Flaw(Damage.FILE, "it has no footer: the export was cut off"))
    elif not reader.ends_with_footer(count):
        verdict.add(Flaw(Damage.FILE, "its footer does not fit the octets before it"))


def _checkpoint(header: dict[str, Any], demands: Demands, verdict: Verdict) -> Checkpoint:
    own = [VerifierKey.parse(key) for key in header["keys"]]
    trust = Trust.of(demands.keys, demands.policy)
    if not trust.keys:
        verdict.doubts.append(UNTRUSTED)
        trust = Trust.of(own, demands.policy)
    note = Note.parse(header["checkpoint"])
    checkpoint = trust.checkpoint(note)
    if not trust.is_witnessed(note):
        verdict.doubts.append("the checkpoint does not have the cosignatures that the policy demands")
    if header["sealed"] != checkpoint.size:
        verdict.add(Flaw(Damage.FILE, "the header states another size than its checkpoint"))
    verdict.counts |= {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}
    return checkpoint


def _check_entry(
    record: dict[str, Any], header: dict[str, Any], checkpoint: Checkpoint, verdict: Verdict
) -> None:
    index, entry = record["index"], record["entry"]
    last = verdict.counts.get("last_index", -1)
    try:
        if type(index) is not int or index <= last:
            raise Malformed(f"not after index {last}")
        verdict.counts["last_index"] = index
        if entry["tenant_id"] != header["tenant_id"]:
            raise Malformed("another tenant's")
        path = [read_hash(each) for each in record["path"]]
        verify_inclusion(index, checkpoint.size, _leaf_hash(entry), path, checkpoint.root)
    except (TlogError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = entry.get("id") if isinstance(entry, dict) else None
        verdict.add(Flaw(Damage.CHANGED, f"{type(error).__name__}: {error}", index, found))


def _leaf_hash(entry: dict[str, Any]) -> bytes:
    """Return the leaf's hash that a disclosure opens. Raises: Malformed, KeyError, TypeError, ValueError."""
    erased = entry.get("erased", {})
    if set(entry) - {"erased"} != {*EntryRow._fields, "salts"} or not isinstance(erased, dict):
        raise Malformed("a field is missing, or one too many")
    if set(entry["salts"]) != set(PARTS) - set(erased):
        raise Malformed("a salt is missing, or one too many")
    salts = b"".join(_salt(entry["salts"].get(part)) for part in PARTS)
    row = EntryRow(**{name: _field(name, entry[name], name in erased) for name in EntryRow._fields})
    if problem := erased_wrongly(row, salts, erased):
        raise Malformed(problem)
    return entry_hash(row, salts, erased)


def _salt(text: str | None) -> bytes:
    octets = bytes(SALT_OCTETS) if text is None else bytes.fromhex(text)
    if len(octets) != SALT_OCTETS or (text is not None and not _HEX.fullmatch(text)):
        raise Malformed("not a salt")
    return octets


def _field(name: str, value: Any, is_erased: bool) -> Any:
    """Return a field as stored; an erased one is null here."""
    if is_erased:
        if value is not None:
            raise Malformed(f"{name} is erased and yet shown")
        return "erased" if name == "actor_id" else None
    if value is None and name in _NULLABLE:
        return None
    if name == "metadata":
        return json.dumps(value, ensure_ascii=False)
    pattern = {"id": _ID, "tenant_id": _ID, "created_at": _MOMENT}.get(name)
    if not isinstance(value, str) or (pattern and not pattern.fullmatch(value)):
        raise Malformed(f"{name} is not as written by the service")
    return value
