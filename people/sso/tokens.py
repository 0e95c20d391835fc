"""Verification of ID tokens (OpenID Connect Core 1.0 §3.1.3.7): PyJWT the signature, Authlib the claims."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import jwt
from authlib.oidc.core import CodeIDToken
from django.conf import settings
from joserfc.errors import JoseError
from jwt.types import Options

from compliance.core.errors import Forbidden
from people.sso.provider import Key

LEEWAY_SECONDS: Final = 60
LONGEST_TOKEN: Final = 64 * 1024
SMALLEST_RSA_KEY: Final = 2048
LONGEST_SUBJECT: Final = 255

CLAIMS: Final = frozenset({"iss", "aud", "azp", "sub", "exp", "nbf", "iat", "nonce"})
"""Those that a refusal names."""

# Of public keys alone: a key that the provider publishes never serves as the secret of an HMAC.
KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The signature algorithms that can be configured, and the type of their keys."""
# Authlib checks the claims: PyJWT knows no nonce and no authorized party.
SIGNATURE_ALONE: Final[Options] = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
}


class SignOnRefused(Forbidden):
    """A single sign-on that is refused; `reason` names the cause in the audit log."""

    message = "This sign-in was refused"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__()


@dataclass(frozen=True)
class Claims:
    """What a verified ID token says; `subject` names the account at the provider, for ever."""

    subject: str
    values: dict[str, Any]


def verify(
    token: object,
    *,
    nonce: str,
    access_token: object,
    keys: Callable[[bool], Iterable[Key]],
    now: datetime,
) -> Claims:
    """Return the claims of an ID token that the issuer made for us, for this sign-in, and not long ago.

    `keys(lacking)` gives the issuer's keys. Raises: SignOnRefused, whose `reason` names what is wrong.
    """
    if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
        raise SignOnRefused("no_id_token")
    algorithm, kid = _header(token)
    for lacking in (False, True):
        candidates = [key for key in keys(lacking) if _fits(key, algorithm, kid)]
        if candidates:
            break
    # Without a name there must be no choice.
    if len(candidates) != 1:
        raise SignOnRefused("unknown_key")
    values, header = _opened(token, candidates[0], algorithm)
    wanted = {"nonce": nonce, "client_id": settings.OIDC_CLIENT_ID, "access_token": access_token}
    options = {
        "iss": {"essential": True, "value": settings.OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        "sub": {"essential": True},
    }
    try:
        CodeIDToken(values, header, options, wanted).validate(now=int(now.timestamp()), leeway=LEEWAY_SECONDS)
    except JoseError as error:
        claim = getattr(error, "claim", None)
        if claim in CLAIMS:
            raise SignOnRefused(f"claim_{claim}") from error
        raise SignOnRefused("expired" if error.error == "expired_token" else "claims") from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SignOnRefused("malformed_token") from error
    subject = values["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not is_plain(subject):
        raise SignOnRefused("claim_sub")
    return Claims(subject, values)


def _header(token: str) -> tuple[str, str | None]:
    """Return algorithm and key id, which nobody has vouched for yet."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise SignOnRefused("malformed_token") from error
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in settings.OIDC_ALGORITHMS or algorithm not in KEY_TYPES:
        raise SignOnRefused("algorithm")
    if kid is not None and not isinstance(kid, str):
        raise SignOnRefused("malformed_token")
    return algorithm, kid


def _fits(key: Key, algorithm: str, kid: str | None) -> bool:
    return (
        key.get("kty") == KEY_TYPES[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (kid is None or key.get("kid") == kid)
    )


def _opened(token: str, key: Key, algorithm: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the signature; return claims and header."""
    try:
        public = jwt.PyJWK(key, algorithm=algorithm)
        if getattr(public.key, "key_size", SMALLEST_RSA_KEY) < SMALLEST_RSA_KEY and key["kty"] == "RSA":
            raise SignOnRefused("weak_key")
        opened = jwt.decode_complete(token, public, algorithms=[algorithm], options=SIGNATURE_ALONE)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise SignOnRefused("signature") from error
    return opened["payload"], opened["header"]


def is_plain(text: str) -> bool:
    """Whether the text is printable ASCII, as subjects are (Core §2)."""
    return text.isascii() and text.isprintable()
