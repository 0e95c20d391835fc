"""The two ceremonies of WebAuthn (Level 3, §7): options for the browser, and checks of its answer.

The library `webauthn` reads and verifies. Nothing here touches rows or settings.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    parse_attestation_object,
    parse_authentication_credential_json,
    parse_registration_credential_json,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AttestationFormat,
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from compliance.people.errors import KeyRefused
from compliance.people.passkeys.relying_party import RelyingParty

ALGORITHMS: Final = [
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.EDDSA,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,
]
Read = TypeVar("Read")

LIFE: Final = timedelta(minutes=5)
"""How long a browser may wait for a key, and for how long a challenge is accepted."""
LONGEST_ANSWER: Final = 16_384
"""In characters of JSON: an RSA key with its attestation takes about 2,000."""
LONGEST_ID: Final = 1023  # §4, "Credential ID"
SMALLEST_RSA: Final = 2048
# With the attestation "none" a browser answers either of these (§5.1.3); others would be read for nothing.
FORMATS: Final = (AttestationFormat.NONE, AttestationFormat.PACKED)

MALFORMED, INVALID = "malformed", "invalid"
# What the library lets through besides its own errors when an answer is broken.
_BROKEN: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
    UnsupportedAlgorithm,
)


@dataclass(frozen=True)
class KnownKey:
    """A registered key as options name it."""

    credential_id: bytes
    transports: tuple[str, ...] = ()


@dataclass(frozen=True)
class NewKey:
    """What a registration proved to be on the person's key."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]


@dataclass(frozen=True)
class Assertion:
    """What a browser says a key has signed; nothing is proved before `verify_assertion`."""

    credential_id: bytes
    user_handle: bytes
    parsed: AuthenticationCredential


def creation_options(
    party: RelyingParty,
    *,
    service: str,
    username: str,
    handle: bytes,
    challenge: bytes,
    known: Iterable[KnownKey],
) -> str:
    """Return the options of `navigator.credentials.create()` as JSON; `known` keys are not offered again."""
    options = generate_registration_options(
        rp_id=party.id,
        rp_name=service,
        user_id=handle,
        user_name=username,
        challenge=challenge,
        timeout=_milliseconds(LIFE),
        exclude_credentials=[_described(key) for key in known],
        supported_pub_key_algs=ALGORITHMS,
        # A second factor: the key need not keep the name, and the password was shown already.
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.DISCOURAGED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
    )
    return options_to_json(options)


def request_options(party: RelyingParty, *, challenge: bytes, known: Iterable[KnownKey]) -> str:
    """Return the options of `navigator.credentials.get()` as JSON, for the `known` keys alone."""
    options = generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_milliseconds(LIFE),
        allow_credentials=[_described(key) for key in known],
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return options_to_json(options)


def verify_registration(party: RelyingParty, answer: str, *, challenge: bytes) -> NewKey:
    """Verify the answer to `creation_options`. Raises: KeyRefused."""
    return _reading(lambda: _registered(party, answer, challenge))


def read_assertion(answer: str) -> Assertion:
    """Read which key answered `request_options`. Raises: KeyRefused."""
    return _reading(lambda: _asserted(answer))


def verify_assertion(
    party: RelyingParty, assertion: Assertion, *, challenge: bytes, public_key: bytes
) -> int:
    """Verify that the key signed the challenge here; return its signature counter. Raises: KeyRefused.

    The counter is compared by the caller, after the signature: an unsigned one says nothing.
    """
    verified = _reading(
        lambda: verify_authentication_response(
            credential=assertion.parsed,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=public_key,
            credential_current_sign_count=0,
        )
    )
    return verified.new_sign_count


def _registered(party: RelyingParty, answer: str, challenge: bytes) -> NewKey:
    parsed = parse_registration_credential_json(_object(answer))
    if parse_attestation_object(parsed.response.attestation_object).fmt not in FORMATS:
        raise KeyRefused(INVALID)
    verified = verify_registration_response(
        credential=parsed,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        supported_pub_key_algs=ALGORITHMS,
    )
    # The library compares neither with the attested id, which is what assertions will name.
    if verified.credential_id != parsed.raw_id or len(parsed.raw_id) > LONGEST_ID:
        raise KeyRefused(INVALID)
    if not _is_usable(verified.credential_public_key):
        raise KeyRefused(INVALID)
    transports = tuple(
        one.value for one in AuthenticatorTransport if one in (parsed.response.transports or ())
    )
    return NewKey(verified.credential_id, verified.credential_public_key, verified.sign_count, transports)


def _is_usable(public_key: bytes) -> bool:
    """Whether the key is what its algorithm says: without attestation nothing was verified by it."""
    decoded = decode_credential_public_key(public_key)
    key = decoded_public_key_to_cryptography(decoded)
    if decoded.alg == COSEAlgorithmIdentifier.ECDSA_SHA_256:
        return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    if decoded.alg == COSEAlgorithmIdentifier.EDDSA:
        return isinstance(key, Ed25519PublicKey)
    return isinstance(key, RSAPublicKey) and key.key_size >= SMALLEST_RSA


def _asserted(answer: str) -> Assertion:
    parsed = parse_authentication_credential_json(_object(answer))
    return Assertion(parsed.raw_id, parsed.response.user_handle or b"", parsed)


def _object(answer: str) -> dict[str, Any]:
    if len(answer) > LONGEST_ANSWER:
        raise KeyRefused(MALFORMED)
    found = json.loads(answer)
    if not isinstance(found, dict):
        raise KeyRefused(MALFORMED)
    return found


def _reading(read: Callable[[], Read]) -> Read:
    """Return what is read; raise KeyRefused for all that the library raises of a hostile answer."""
    try:
        return read()
    except (WebAuthnException, InvalidSignature) as error:
        raise KeyRefused(INVALID) from error
    except _BROKEN as error:
        raise KeyRefused(MALFORMED) from error


def _described(key: KnownKey) -> PublicKeyCredentialDescriptor:
    transports = [one for one in AuthenticatorTransport if one.value in key.transports]
    return PublicKeyCredentialDescriptor(id=key.credential_id, transports=transports or None)


def _milliseconds(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
