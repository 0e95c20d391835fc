"""What only the owner of the log's tables can bring about is exported and proved, too."""

import json
from pathlib import Path

from auditlog.models import SignedHead
from auditlog.proving.proofs import consistency
from auditlog.sealing.stored_rows import sealed_entry_of
from auditlog.tests.exports import VERIFIED, exported, outsider, verified
from auditlog.tests.logs import erase, make_log
from compliance.core.encodings import b64_encode
from compliance.stores import sql


def test_export_with_erased_parts_verifies(owned: None, tmp_path: Path) -> None:
    make_log(20)
    entries = make_log(300)
    make_log(10)
    sql.execute("ALTER TABLE auditlog_auditentry DISABLE TRIGGER USER")
    sql.execute("ALTER TABLE auditlog_leaf DISABLE TRIGGER USER")
    sealed = sealed_entry_of(entries[4].id)
    assert sealed is not None
    erase(sealed.index, "actor_id", "'erased'")
    erase(sealed.index + 1, "metadata", "NULL")
    export = exported(entries[0].tenant_id)

    assert export.count(b'"erased":{') == 2
    assert verified(export, tmp_path) == VERIFIED
    assert verified(exported(entries[0].tenant_id, "csv"), tmp_path) == VERIFIED


def test_outsider_verifies_consistency(owned: None, tmp_path: Path) -> None:
    for count in (3, 2, 300):
        make_log(count)
    rows = list(SignedHead.objects.order_by("-size")[:3])[::-1]
    for old, new in ((rows[0], rows[2]), (rows[1], rows[2]), (rows[2], rows[2])):
        found = consistency(old=old.size, new=new.size)
        answer = {"data": {"hashes": list(map(b64_encode, found.path))}}
        files = [tmp_path / name for name in ("old", "new", "proof")]
        for file, text in zip(files, (old.note, new.note, json.dumps(answer)), strict=True):
            file.write_text(text)

        status, said = outsider("consistency", *files)

        assert status == 0, said
        if found.path:
            answer["data"]["hashes"][0] = b64_encode(bytes(32))
            files[2].write_text(json.dumps(answer))
            assert outsider("consistency", *files)[0] == 1
