"""Serial numbers of certificates: random, of constant length, and marked with their environment.

20 octets (RFC 5280 §4.1.2.2): bit 159 is 0, so the number is positive; bit 158 is 1, so its length is
constant; bit 157 is the environment (0 live, 1 test), so that a public look-up needs one database. The other
157 bits are random.
"""

import re
import secrets
from typing import Final

from compliance.core.environments import Environment

RANDOM_BITS: Final = 157
LENGTH_BIT: Final = 1 << 158
TEST_BIT: Final = 1 << 157
HEX_DIGITS: Final = 40

# In decimal a serial has 48 digits, so that no text is one in both ways.
_HEX = re.compile(r"(?:0[xX])?0{0,24}([0-9a-fA-F]{40})")
_DECIMAL = re.compile(r"0{0,24}([0-9]{48})")
_WITH_COLONS = re.compile(r"(?:00:){0,12}[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){19}")


def new_serial(environment: Environment) -> int:
    marker = LENGTH_BIT | (TEST_BIT if environment is Environment.TEST else 0)
    return marker | secrets.randbits(RANDOM_BITS)


def format_serial(serial: int) -> str:
    """A serial number as shown and stored: 40 lowercase hex digits."""
    return f"{serial:0{HEX_DIGITS}x}"


def parse_serial(text: str) -> int | None:
    """Read a serial in hex (colons, `0x`) or decimal, zeros before it; None if it can't be ours."""
    stripped = text.strip()
    if in_hex := _HEX.fullmatch(stripped):
        value = int(in_hex[1], 16)
    elif in_decimal := _DECIMAL.fullmatch(stripped):
        value = int(in_decimal[1])
    elif _WITH_COLONS.fullmatch(stripped):
        value = int(stripped.replace(":", ""), 16)
    else:
        return None
    return value if value >> 158 == 1 else None


def shard_of(serial: int, shards: int) -> int | None:
    """The shard, of a CA's `shards`, whose revocation list covers a certificate; None without shards."""
    return serial % shards if shards else None


def environment_of(serial: int) -> Environment:
    return Environment.TEST if serial & TEST_BIT else Environment.LIVE
