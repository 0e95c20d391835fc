"""Names: whatever people write, the certificate stays valid and honest."""

from uuid import UUID

import pytest
from cryptography.x509.oid import NameOID

from certificates.pki.names import agent_name, attribute, certificate_base_url

AGENT_ID = UUID("0192e4a0-0000-7000-8000-000000000001")


def common_name(name: str) -> str:
    subject = agent_name(name=name, operator="Operator", agent_id=AGENT_ID)
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_subject_names_operator_agent_and_id() -> None:
    subject = agent_name(name="trade-bot", operator="Example GmbH", agent_id=AGENT_ID)

    assert subject.rfc4514_string() == f"2.5.4.5={AGENT_ID},CN=trade-bot,O=Example GmbH"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("  trade\t bot \r\n", "trade bot"),
        ("nul\x00bell\x07", "nul bell"),
        ("safe\u202etxt.exe", "safe txt.exe"),
        ("zero\u200bwidth", "zero width"),
        ("e\u0301", "é"),
        ("x" * 255, "x" * 64),
        ("é" * 255, "é" * 32),
        ("名" * 255, "名" * 21),
        ("😀" * 255, "😀" * 16),
        ("\x00\u200b ", str(AGENT_ID)),
        ('a=b,c+d<e>#\\"', 'a=b,c+d<e>#\\"'),
    ],
)
def test_any_name_becomes_a_valid_common_name(name: str, expected: str) -> None:
    assert common_name(name) == expected


def test_operator_without_a_visible_character_is_left_out() -> None:
    subject = agent_name(name="trade-bot", operator="\u200b", agent_id=AGENT_ID)

    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME) == []


def test_cut_leaves_no_space_at_the_end() -> None:
    assert attribute("x" * 63 + " y") == "x" * 63


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000/", "http://127.0.0.1:8000"),
        ("http://localhost", "http://127.0.0.1"),
        ("https://pki.example.com/base/", "https://pki.example.com/base"),
    ],
)
def test_base_url_has_a_host_that_may_stand_in_a_certificate(base_url: str, expected: str) -> None:
    assert certificate_base_url(base_url) == expected
