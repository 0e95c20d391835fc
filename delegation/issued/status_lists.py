"""Signed lists of statuses of tokens and credentials, a bit each (draft-ietf-oauth-status-list-17 §4 to §8).

A token's place is random, in a list of the process that issued it: nobody learns from it how many others were
issued. A bit is 1 while its token does not stand. It may become 0 again: a suspended agent may be reinstated.
"""

import hashlib
import os
import re
import secrets
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
from delegation import errors, standing
from delegation.jose import jws
from delegation.jose.tokens import StatusListEntry, TokenStatus
from delegation.models import IssuedCredential, IssuedToken
from delegation.token_keys import keys

LIST_SIZE: Final = 2**16
PATH: Final = "/v1/status-lists/"
TYPE: Final = "statuslist+jwt"
MEDIA_TYPE: Final = f"application/{TYPE}"
TTL_SECONDS: Final = 10
"""How long a reader may keep a list before it asks again."""
LIFETIME_SECONDS: Final = 600
"""How long a list counts for a reader who can't get a newer one."""
MADE_ANEW_AFTER_SECONDS: Final = 3.0
KEPT_LISTS: Final = 64
_MOST_TAKEN: Final = LIST_SIZE * 3 // 4
_ID: Final = re.compile(r"(live|test)-(0|[1-9][0-9]{0,8})", re.ASCII)
_LISTED: Final = f"""
SELECT status_index - $2, id, ancestor_ids, lineage_agent_ids, lineage_serials FROM {standing.TABLE}
WHERE status_index >= $2 AND status_index < $2 + {LIST_SIZE}
UNION ALL SELECT status_index - $2, id, '{{}}'::uuid[], ARRAY[agent_id], ARRAY[certificate_serial]
FROM {IssuedCredential._meta.db_table} WHERE status_index >= $2 AND status_index < $2 + {LIST_SIZE}
"""  # noqa: S608  (only names of tables and numbers are put into the text)


class _OpenList:
    """A list whose places only this process gives away, until most are taken."""

    def __init__(self) -> None:
        ((self.number,),) = sql.prepared("SELECT delegation_next_status_list()", [])
        self.taken: set[int] = set()


_open: dict[tuple[Environment, int], _OpenList] = {}  # a forked process opens its own
_lock = Lock()


def next_index() -> int:
    """A number of the current environment that no token has; one that is not used leaves a gap."""
    process = environments.current(), os.getpid()
    with _lock:
        if process not in _open or len(_open[process].taken) >= _MOST_TAKEN:
            _open[process] = _OpenList()
        found = _open[process]
        while (place := secrets.randbelow(LIST_SIZE)) in found.taken:
            pass
        found.taken.add(place)
        return int(found.number) * LIST_SIZE + place


class ListId(NamedTuple):
    environment: Environment
    number: int

    @property
    def uri(self) -> str:
        return f"{settings.BASE_URL}{PATH}{self.environment.value}-{self.number}"


def status_at(index: int) -> TokenStatus:
    """The `status` claim of the token with this number."""
    number, place = divmod(index, LIST_SIZE)
    return TokenStatus(StatusListEntry(place, ListId(environments.current(), number).uri))


@dataclass(frozen=True)
class SignedList:
    """A list as a JWT; `made_at` is in seconds of the monotonic clock."""

    token: str
    made_at: float

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.token.encode()).hexdigest()[:32]}"'


_kept: BoundedCache[ListId, SignedList] = BoundedCache(KEPT_LISTS)
_making = {environment: Lock() for environment in Environment}


def read(*, list_id: str, now: datetime) -> SignedList:
    """The list of this id, made anew once the one at hand is some seconds old.

    Raises: `StatusListNotFound` for one without tokens, the HSM's and the database's errors.
    """
    match = _ID.fullmatch(list_id)
    if match is None:
        raise errors.StatusListNotFound()
    found = ListId(Environment(match[1]), int(match[2]))
    if (kept := _fresh(found)) is None:
        with _making[found.environment]:
            if (kept := _fresh(found)) is None:
                kept = _made(found, now)
                _kept.put(found, kept)
    return kept


def _fresh(list_id: ListId) -> SignedList | None:
    kept = _kept.get(list_id)
    return kept if kept and time.monotonic() - kept.made_at < MADE_ANEW_AFTER_SECONDS else None


def forget() -> None:
    """Make every list anew when it is asked for."""
    _kept.clear()


def _made(list_id: ListId, now: datetime) -> SignedList:
    made_at, first = time.monotonic(), list_id.number * LIST_SIZE
    with environments.use(list_id.environment):
        places = {"status_index__range": (first, first + LIST_SIZE - 1)}
        if not any(model.objects.filter(**places).exists() for model in (IssuedToken, IssuedCredential)):
            raise errors.StatusListNotFound()
        claims = claims_of(list_id, standing.ended(_LISTED, first, now=now), now)
        key = keys.signing_key()
        return SignedList(jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=TYPE), made_at)


def claims_of(list_id: ListId, invalid: list[int], now: datetime) -> dict[str, Any]:
    """The claims of a list whose tokens at these places do not stand."""
    bits = bytearray(LIST_SIZE // 8)
    for place in invalid:
        bits[place // 8] |= 1 << place % 8
    issued_at = int(now.timestamp())
    return {
        "iss": settings.TOKEN_ISSUER,
        "sub": list_id.uri,
        "iat": issued_at,
        "exp": issued_at + LIFETIME_SECONDS,
        "ttl": TTL_SECONDS,
        "status_list": {"bits": 1, "lst": b64url_encode(zlib.compress(bytes(bits), 9))},
    }
