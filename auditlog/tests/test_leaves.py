"""The canonical encoding: every field counts, erased parts keep their commitment, JSON as RFC 8785 has it."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from django.conf import settings
from hypothesis import given, strategies as st

from auditlog.leaves import (
    ERASABLE,
    PARTS,
    SALTS_OCTETS,
    EntryRow,
    canonical_json,
    disclosure,
    leaf_data,
)
from auditlog.tests.logs import commitments

ROW = EntryRow(
    id="01890a5d-ac96-774b-bcce-b302099a8057",
    tenant_id="7d444840-9dc0-11d1-b245-5ffdce74fad2",
    event_type="delegation.issued",
    actor_type="user",
    actor_kind="api_key",
    created_at="2026-11-23T08:00:00.123456Z",
    actor_id="api_key:1",
    affected_id="agent-1",
    description='Ünï "quoted"\n',
    metadata='{"b": 1.0, "a": [true, null]}',
)
SALTS = bytes(range(SALTS_OCTETS))


def replaced(field: str, value: str | None) -> EntryRow:
    return EntryRow._make(value if name == field else kept for name, kept in ROW._asdict().items())


def test_leaf_is_the_version_and_five_salted_hashes() -> None:
    head = (
        b'{"actor_kind":"api_key","actor_type":"user","created_at":"2026-11-23T08:00:00.123456Z",'
        b'"event_type":"delegation.issued","id":"01890a5d-ac96-774b-bcce-b302099a8057",'
        b'"tenant_id":"7d444840-9dc0-11d1-b245-5ffdce74fad2"}'
    )
    values = {
        b"head": head,
        b"actor_id": b'"api_key:1"',
        b"affected_id": b'"agent-1"',
        b"description": '"Ünï \\"quoted\\"\\n"'.encode(),
        b"metadata": b'{"a":[true,null],"b":1}',
    }

    leaf = leaf_data(ROW, SALTS)

    expected = b"\x01" + b"".join(
        hashlib.sha256(SALTS[16 * n : 16 * n + 16] + name + b"\0" + value).digest()
        for n, (name, value) in enumerate(values.items())
    )
    assert leaf == expected
    assert len(leaf) == 161


@pytest.mark.parametrize("field", EntryRow._fields)
def test_every_field_changes_the_leaf(field: str) -> None:
    changed = "{}" if field == "metadata" else "x"

    assert leaf_data(replaced(field, changed), SALTS) != leaf_data(ROW, SALTS)


@pytest.mark.parametrize("field", ["affected_id", "description", "metadata"])
def test_nothing_is_not_the_text_null(field: str) -> None:
    absent = leaf_data(replaced(field, None), SALTS)

    assert absent != leaf_data(replaced(field, '"null"' if field == "metadata" else "null"), SALTS)


@pytest.mark.parametrize("part", ERASABLE)
def test_leaf_stays_when_a_part_is_erased(part: str) -> None:
    kept = {part: commitments(ROW, SALTS)[part]}
    place = PARTS.index(part) * 16
    salts = SALTS[:place] + bytes(16) + SALTS[place + 16 :]

    erased = leaf_data(replaced(part, None), salts, kept)

    assert erased == leaf_data(ROW, SALTS)
    assert part not in disclosure(ROW, salts, kept)["salts"]


def test_disclosure_holds_the_entry_and_its_salts() -> None:
    shown = disclosure(ROW, SALTS)

    assert shown["metadata"] == {"a": [True, None], "b": 1.0}
    assert shown["description"] == ROW.description
    assert "".join(shown["salts"][part] for part in PARTS) == SALTS.hex()
    assert "erased" not in shown


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
        | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_json_is_canonical(value: Any) -> None:
    assert canonical_json(json.dumps(value, indent=1)) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("9007199254740991", b"9007199254740991"),
        ("9007199254740992", b'"9007199254740992"'),
        ("1" * 5000, b'"' + b"1" * 5000 + b'"'),
        ("0.91", b"0.91"),
        ("0.910", b"0.91"),
        ("0.91000000000000000000001", b'"0.91000000000000000000001"'),
        ("0.0000001", b"1e-7"),
        ("1.0", b"1"),
    ],
)
def test_number_that_no_double_holds_is_the_string_of_its_digits(text: str, canonical: bytes) -> None:
    assert canonical_json(text) == canonical


def test_examples_of_the_documentation_hold() -> None:
    text = (Path(settings.BASE_DIR) / "docs/audit-log.md").read_text()
    examples = re.findall(r"```json\n(.+)\n```\n\n```\nleaf ([0-9a-f]{322})\nhash ([0-9a-f]{64})\n```", text)
    plain, unicode, erased = [(json.loads(shown), leaf, found) for shown, leaf, found in examples]

    for shown, leaf, found in (plain, unicode, erased):
        gone = shown.get("erased", {})
        salts = b"".join(bytes.fromhex(shown["salts"].get(part, "00" * 16)) for part in PARTS)
        fields = {name: shown[name] for name in EntryRow._fields}
        fields["metadata"] = shown["metadata"] and json.dumps(shown["metadata"])
        assert leaf_data(EntryRow(**fields), salts, gone).hex() == leaf
        assert hashlib.sha256(b"\0" + bytes.fromhex(leaf)).hexdigest() == found
        assert disclosure(EntryRow(**fields), salts, gone) == shown
    assert "description" in erased[0]["erased"]
    assert unicode[1:] == erased[1:]
    head = {name: plain[0][name] for name in ("id", "tenant_id", "event_type", "actor_type", "actor_kind")}
    for value in (head | {"created_at": plain[0]["created_at"]}, unicode[0]["metadata"]):
        assert f"`{rfc8785.dumps(value).decode()}`" in text
