"""PKCS#11 URIs: what is written is read back, and nothing else is accepted."""

import pytest

from compliance.keys.uri import InvalidUri, Pkcs11Uri, build, parse


def test_uri_reads_as_in_the_standard() -> None:
    uri = Pkcs11Uri(token="live", object="agent-7", id=b"\x9a\x00\xff")

    assert build(uri) == "pkcs11:token=live;object=agent-7;id=%9A%00%FF;type=private"


@pytest.mark.parametrize(
    "uri",
    [
        Pkcs11Uri(token="live", id=b"\x00"),
        Pkcs11Uri(token="My token; 100%?/#", object="a=b;c&d", id=bytes(range(256))),
        Pkcs11Uri(token="名前", object="Größe\n\x00", id=b";=?%"),
    ],
)
def test_any_name_survives_the_round_trip(uri: Pkcs11Uri) -> None:
    assert parse(build(uri)) == uri


def test_type_defaults_to_private_and_order_is_free() -> None:
    assert parse("pkcs11:id=%01;token=t") == Pkcs11Uri(token="t", id=b"\x01")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pkcs11:",
        "PKCS11:token=t;id=%01",
        "arn:aws:kms:1",
        "pkcs11:token=t",
        "pkcs11:id=%01",
        "pkcs11:token=;id=%01",
        "pkcs11:token=t;id=",
        "pkcs11:token=t;id=%01;id=%02",
        "pkcs11:token=t;id=%01;slot-id=3",
        "pkcs11:token=t;id=%01;type=cert",
        "pkcs11:token=t;id=%01;type=public",
        "pkcs11:token=t;id=%01;type=%FF",
        "pkcs11:token=%FF;id=%01",
        "pkcs11:token=t;id=%01;",
        "pkcs11:token=t;id=%01?pin-value=1234",
        "pkcs11:token=t;id=%01;object=" + "a" * 3000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidUri):
        parse(text)


def test_refusal_does_not_repeat_a_pin() -> None:
    with pytest.raises(InvalidUri) as caught:
        parse("pkcs11:token=t;id=%01?pin-value=hunter2")

    assert "hunter2" not in str(caught.value)
