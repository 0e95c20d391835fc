"""Names of an environment's tokens: the main one, and numbered shards beside it for agents' keys."""

import re
from typing import Final

MAX_SHARDS: Final = 100
LABEL_OCTETS: Final = 32
"""CK_TOKEN_INFO gives a label no more (PKCS#11 v2.40 §3.2)."""

_NUMBER = re.compile(r"-[0-9]{2}\Z")


def shard_labels(label: str, count: int) -> list[str]:
    """The labels of `count` shards of the token `label`; ValueError when there are too many or no room."""
    if not 0 <= count <= MAX_SHARDS:
        raise ValueError(f"a token has up to {MAX_SHARDS} shards, not {count}")
    if count and len(label.encode()) > LABEL_OCTETS - len("-00"):
        raise ValueError(f"the label {label!r} leaves no room for a shard's number")
    return [f"{label}-{number:02}" for number in range(count)]


def is_shard(label: str, of: str) -> bool:
    """Whether `label` names a shard of the token `of`, however many are in use now."""
    return label.startswith(of) and _NUMBER.fullmatch(label, len(of)) is not None
