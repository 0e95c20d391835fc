"""Sign signals with the environment's token key; a token is signed once, and sent again as it is."""

from datetime import datetime

from django.conf import settings

from delegation.jose import jws
from delegation.token_keys import keys
from signals.models import Signal, Stream
from signals.vocabulary import SET_TYPE


def sign_waiting(stream: Stream, *, most: int, now: datetime) -> list[Signal]:
    """Return the oldest signals that wait in a stream, each with its token.

    The claims are those of RFC 8417 §2.2, without `sub` and `exp` as SSF demands. A token of a key that no
    longer signs is made anew, under the same `jti`: verifiers forget old keys.
    Raises: TokenKeysMissing, Unavailable (HSM). Call it outside a transaction.
    """
    waiting = list(Signal.objects.of(stream).waiting()[:most])
    if not waiting:
        return []
    key = keys.signing_key()
    unsigned = [signal for signal in waiting if signal.kid != key.kid]
    for signal in unsigned:
        claims = {
            "iss": settings.TOKEN_ISSUER,
            "aud": stream.audience,
            "iat": int(now.timestamp()),
            "jti": str(signal.jti),
            **signal.claims,
        }
        signal.token = jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=SET_TYPE)
        signal.kid = key.kid
    Signal.objects.bulk_update(unsigned, ["token", "kid"])
    return waiting
