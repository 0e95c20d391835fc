"""Lists of the statuses of issued tokens, a bit each, signed (draft-ietf-oauth-status-list-17 §4 to §8).

A bit is 1 while its token does not stand. It may become 0 again: a suspended agent may be reinstated.
"""

import hashlib
import re
import time
import zlib
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple

from django.conf import settings

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.encodings import b64url_encode
from compliance.core.environments import Environment
from compliance.stores import sql
from delegation import errors
from delegation.issued.status_entries import LIST_SIZE, uri_of
from delegation.jose import jws
from delegation.standing_rule import LISTED, TABLE, ended_among
from delegation.token_keys import keys

TYPE: Final = "statuslist+jwt"
MEDIA_TYPE: Final = f"application/{TYPE}"
TTL_SECONDS: Final = 10
"""How long a reader may keep a list before it asks again."""
LIFETIME_SECONDS: Final = 600
"""How long a list counts for a reader who can't get a newer one."""
MADE_ANEW_AFTER_SECONDS: Final = 3.0
KEPT_LISTS: Final = 64
_ID: Final = re.compile(r"(live|test)-(0|[1-9][0-9]{0,8})", re.ASCII)

_LISTED: Final = f"""
    SELECT status_index - $1, {", ".join(LISTED[1:])} FROM {TABLE}
    WHERE status_index >= $1 AND status_index < $1 + {LIST_SIZE}
"""  # noqa: S608  (only names of tables and numbers are put into the text)
_INVALID: Final = f"""
{ended_among(_LISTED, now="$2")} UNION ALL SELECT -1 FROM (SELECT token FROM listed LIMIT 1) AS any_token
"""  # noqa: S608  (as above)
"""The places of the tokens that do not stand, and -1 if the list has any token."""


class ListId(NamedTuple):
    environment: Environment
    number: int

    @classmethod
    def parse(cls, text: str) -> "ListId":
        """The id in a list's address; raises `StatusListNotFound`."""
        match = _ID.fullmatch(text)
        if match is None:
            raise errors.StatusListNotFound()
        return cls(Environment(match[1]), int(match[2]))


@dataclass(frozen=True)
class SignedList:
    """A list as a JWT; `made_at` is in seconds of the monotonic clock."""

    token: str
    made_at: float

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.token.encode()).hexdigest()[:32]}"'

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.made_at < MADE_ANEW_AFTER_SECONDS


_kept: BoundedCache[ListId, SignedList] = BoundedCache(KEPT_LISTS)
_making = {environment: Lock() for environment in Environment}


def read(*, list_id: str, now: datetime) -> SignedList:
    """The list of this id, made anew once the one at hand is some seconds old.

    Raises: `StatusListNotFound` for one without tokens, the HSM's and the database's errors.
    """
    found = ListId.parse(list_id)
    kept = _kept.get(found)
    if kept is not None and kept.is_fresh:
        return kept
    with _making[found.environment]:
        kept = _kept.get(found)
        if kept is None or not kept.is_fresh:
            kept = _made(found, now)
            _kept.put(found, kept)
    return kept


def forget() -> None:
    """Make every list anew when it is asked for."""
    _kept.clear()


def _made(list_id: ListId, now: datetime) -> SignedList:
    made_at = time.monotonic()
    with environments.use(list_id.environment):
        places = [place for (place,) in sql.asked(_INVALID, [list_id.number * LIST_SIZE, now])]
        if not places:
            raise errors.StatusListNotFound()
        key = keys.signing_key()
        claims = claims_of(list_id, [place for place in places if place >= 0], now)
        return SignedList(jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=TYPE), made_at)


def claims_of(list_id: ListId, invalid: list[int], now: datetime) -> dict[str, Any]:
    """The claims of a list whose tokens at these places do not stand."""
    bits = bytearray(LIST_SIZE // 8)
    for place in invalid:
        bits[place // 8] |= 1 << place % 8
    issued_at = int(now.timestamp())
    return {
        "iss": settings.TOKEN_ISSUER,
        "sub": uri_of(*list_id),
        "iat": issued_at,
        "exp": issued_at + LIFETIME_SECONDS,
        "ttl": TTL_SECONDS,
        "status_list": {"bits": 1, "lst": b64url_encode(zlib.compress(bytes(bits), 9))},
    }
