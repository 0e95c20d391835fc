"""Sign signals with the environment's token key; a token is signed once, and sent again as it is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from compliance.signals.models import Signal, Stream
from compliance.signals.vocabulary import SET_TYPE
from delegation.jose import jws
from delegation.token_keys import keys


def sign_waiting(stream: Stream, *, most: int, now: datetime) -> list[Signal]:
    """Return the oldest signals that wait in a stream, each with its token.

    A token of a key that no longer signs is made anew, under the same `jti`: verifiers forget old keys.
    Raises: TokenKeysMissing, Unavailable (HSM). Call it outside a transaction.
    """
    waiting = list(Signal.objects.of(stream).waiting()[:most])
    if waiting:
        _sign(stream, waiting, now)
    return waiting


def _sign(stream: Stream, waiting: Sequence[Signal], now: datetime) -> None:
    key = keys.signing_key()
    unsigned = [signal for signal in waiting if signal.kid != key.kid]
    for signal in unsigned:
        claims, half = claims_of(stream, signal, now), keys.private_half(key)
        signal.token, signal.kid = jws.sign(claims, kid=key.kid, key=half, typ=SET_TYPE), key.kid
    Signal.objects.bulk_update(unsigned, ["token", "kid"])


def claims_of(stream: Stream, signal: Signal, now: datetime) -> dict[str, Any]:
    """Return the claims of a Security Event Token (RFC 8417 §2.2), without `sub` and `exp` as SSF demands."""
    return {
        "iss": settings.TOKEN_ISSUER,
        "aud": stream.audience,
        "iat": int(now.timestamp()),
        "jti": str(signal.jti),
        **signal.claims,
    }
