"""Serial numbers: positive, of constant length, random, and telling their environment."""

import pytest

from certificates.pki.serials import environment_of, format_serial, new_serial, parse_serial
from compliance.core.environments import Environment

SERIAL = 0x4FEDCBA9876543210FEDCBA9876543210FEDCBA9
TEXT = "4fedcba9876543210fedcba9876543210fedcba9"


@pytest.mark.parametrize("environment", Environment)
def test_serial_has_twenty_octets_and_tells_its_environment(environment: Environment) -> None:
    serials = {new_serial(environment) for _ in range(2_000)}

    assert len(serials) == 2_000
    assert {serial.bit_length() for serial in serials} == {159}
    assert {environment_of(serial) for serial in serials} == {environment}
    assert {len(format_serial(serial)) for serial in serials} == {40}


def test_random_bits_are_all_used() -> None:
    union = 0
    for _ in range(200):
        union |= new_serial(Environment.LIVE)

    assert union == (1 << 158) | ((1 << 157) - 1)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.upper(),
        f"  {TEXT}\n",
        f"0x{TEXT}",
        f"0X{TEXT.upper()}",
        ":".join(TEXT[i : i + 2] for i in range(0, 40, 2)),
        ":".join(TEXT[i : i + 2] for i in range(0, 40, 2)).upper(),
        f"00{TEXT}",
        f"0x0000{TEXT}",
        "00:" + ":".join(TEXT[i : i + 2] for i in range(0, 40, 2)),
        str(SERIAL),
        f"000{SERIAL}",
    ],
)
def test_serial_is_read_in_every_usual_spelling(text: str) -> None:
    assert parse_serial(text) == SERIAL
    assert format_serial(SERIAL) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        TEXT[1:],
        TEXT + "0",
        "0" * 40,
        "8" + TEXT[1:],
        "3" + TEXT[1:],
        TEXT.replace("f", "g"),
        TEXT.replace("4", "\u0664"),
        f"{TEXT[:2]}:{TEXT[2:]}",
        f"{TEXT[:20]} {TEXT[20:]}",
        f"-{TEXT[1:]}",
        "\x00" * 40,
        "5" * 10_000,
        "0" * 30 + TEXT,
        "9" * 48,
        "1" * 48,
        f"0x{SERIAL}",
    ],
)
def test_anything_else_is_no_serial(text: str) -> None:
    assert parse_serial(text) is None


@pytest.mark.parametrize("serial", [1 << 158, (1 << 159) - 1, int("4" * 40, 16)])
def test_hex_and_decimal_are_told_apart(serial: int) -> None:
    assert len(str(serial)) == 48
    for text in (f"{serial:x}", str(serial), f"{serial:048x}"):
        assert parse_serial(text) == serial
