"""Keys wrapped by an AES key of the token (AES-KWP); PKCS11Error may be raised everywhere here."""

import logging
from typing import Any, Final

from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, PKCS11Error, _pkcs11
from pkcs11.constants import DEFAULT, MechanismFlag

from compliance.core.identifiers import new_id
from compliance.keys import base
from compliance.keys.pkcs11 import objects
from compliance.keys.pkcs11.objects import read_public_key
from compliance.keys.pkcs11.operations import DIGEST_INFO
from compliance.keys.pkcs11.token import LOST, STALE_HANDLE, Handle, KeyHandle, KeyMissing, TokenSession
from compliance.keys.uri import SECRET, Pkcs11Uri, build, parse

logger = logging.getLogger(__name__)

WRAPPING_BITS: Final = 256
AGENT_BITS: Final = 2048
WRAP_AND_UNWRAP: Final = MechanismFlag.WRAP | MechanismFlag.UNWRAP
WRAPPING: Final = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}

# Of several that a module offers, the first: the newer name has one meaning.
MECHANISMS: Final = {
    base.WrapMechanism.KWP: Mechanism.AES_KEY_WRAP_KWP,
    base.WrapMechanism.PAD: Mechanism.AES_KEY_WRAP_PAD,
}

EXTRACTABLE: Final = objects.PRIVATE | {Attribute.TOKEN: False, Attribute.EXTRACTABLE: True}
"""Of the session object that is wrapped, and destroyed at once."""
# Modules refuse these uses in the template of a private key.
_NO_PRIVATE_USE: Final = dict.fromkeys((Attribute.ENCRYPT, Attribute.VERIFY, Attribute.WRAP), DEFAULT)
SEALED: Final = _NO_PRIVATE_USE | objects.PRIVATE | {Attribute.TOKEN: False}
REWRAPPED: Final = _NO_PRIVATE_USE | EXTRACTABLE

ADVICE: Final = "a wrapping key is a sensitive AES-256 key, not extractable, that only wraps and unwraps"
REQUIRED_OF_WRAPPING: Final = {
    Attribute.KEY_TYPE: KeyType.AES,
    Attribute.VALUE_LEN: WRAPPING_BITS // 8,
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
    Attribute.WRAP: True,
    Attribute.UNWRAP: True,
    # A key that also decrypts would give wrapped keys in the clear.
    Attribute.ENCRYPT: False,
    Attribute.DECRYPT: False,
}


class WrappingHandle(Handle, _pkcs11.WrapMixin, _pkcs11.UnwrapMixin):  # type: ignore[name-defined]
    """A wrapping key; of one that is trusted, CKA_TRUSTED is set."""

    key_type = KeyType.AES
    is_trusted = False


def make_wrapping_key(session: TokenSession, label: str) -> base.WrappingKeyRef:
    """Generate an AES-256 key that only wraps and unwraps; raises `KeyServiceNotConfigured`."""
    key_id, offered = new_id().bytes, set(session.login.token.slot.get_mechanisms())
    mechanism = next((name for name, one in MECHANISMS.items() if one in offered), None)
    if mechanism is None:
        logger.error("KMS not configured: the module wraps by neither %s", " nor ".join(MECHANISMS))
        raise base.KeyServiceNotConfigured
    # Having made an object, SoftHSM would take what other processes made before for known: a search reads it.
    session.find(ObjectClass.SECRET_KEY, key_id)
    session.session.generate_key(
        KeyType.AES,
        WRAPPING_BITS,
        id=key_id,
        label=label,
        store=True,
        capabilities=WRAP_AND_UNWRAP,
        template=WRAPPING,
    )
    return base.WrappingKeyRef(build(Pkcs11Uri(session.label, key_id, label, SECRET)), mechanism)


def generate_wrapped(session: TokenSession, wrapping: base.WrappingKeyRef, label: str) -> base.WrappedKey:
    """Generate an RSA-2048 key as a session object, wrap it, and see that it can be unwrapped."""
    key_id = new_id().bytes
    handle = open_wrapping_key(session, wrapping)
    public, private = session.session.generate_keypair(
        KeyType.RSA,
        AGENT_BITS,
        id=key_id,
        label=label,
        store=False,
        capabilities=objects.SIGN_AND_VERIFY,
        private_template=_bound(EXTRACTABLE, handle),
        public_template=objects.SESSION_PUBLIC,
    )
    try:
        public_key = read_public_key(public)
        blob: bytes = handle.wrap_key(private, mechanism=MECHANISMS[wrapping.mechanism])
    finally:
        private.destroy()
        public.destroy()
    if public_key is None:
        raise base.KeyNotFound
    uri = build(Pkcs11Uri(session.label, key_id, label))
    key = base.KeyRef.of(uri, public_key, base.KeyStorage.WRAPPED)
    wrapped = base.WrappedKey(key, wrapping, blob)
    unwrap(session, wrapped).destroy()
    return wrapped


def unwrap(
    session: TokenSession,
    wrapped: base.WrappedKey,
    uses: MechanismFlag = MechanismFlag.SIGN,
    template: dict[Attribute, Any] = SEALED,
) -> Any:
    """Unwrap a key as a session object for these uses, for the caller to destroy; raises `KeyMismatch`."""
    try:
        found = _import(session, wrapped, uses, template)
    except STALE_HANDLE:
        session.login.wrapping_keys.pop(wrapped.wrapping.uri, None)
        found = _import(session, wrapped, uses, template)
    try:
        public_key = read_public_key(found)
        is_same = public_key is not None and base.KeyRef.of("", public_key).spki == wrapped.key.spki
    except BaseException:
        found.destroy()
        raise
    if not is_same:
        found.destroy()
        logger.error("Wrapped key %s holds another key than its certificate's", wrapped.key.uri)
        raise base.KeyMismatch
    return found


def sign_wrapped(session: TokenSession, wrapped: base.WrappedKey, digest: bytes) -> bytes:
    """Unwrap a key, sign a digest by PKCS#1 v1.5, destroy the unwrapped object; raises as `unwrap()`."""
    base.require_signable(digest, base.SignatureAlgorithm.RSA_SHA256)
    found = unwrap(session, wrapped)
    try:
        key, data = KeyHandle(session.session, found.handle), DIGEST_INFO + digest
        signature: bytes = key.sign(data, mechanism=Mechanism.RSA_PKCS)
    finally:
        found.destroy()
    return signature


def wrap_anew(session: TokenSession, wrapped: base.WrappedKey, to: base.WrappingKeyRef) -> base.WrappedKey:
    """Wrap a key anew, for a moment an extractable session object that cannot sign; raises as `unwrap()`."""
    target = open_wrapping_key(session, to)
    private = unwrap(session, wrapped, MechanismFlag(0), _bound(REWRAPPED, target))
    try:
        blob: bytes = target.wrap_key(private, mechanism=MECHANISMS[to.mechanism])
    finally:
        private.destroy()
    fresh = base.WrappedKey(wrapped.key, to, blob)
    unwrap(session, fresh).destroy()
    return fresh


def open_wrapping_key(session: TokenSession, wrapping: base.WrappingKeyRef) -> WrappingHandle:
    """Return the wrapping key, checked at first use; raises `KeyMissing`, `KeyServiceNotConfigured`."""
    known, uri = session.login.wrapping_keys, wrapping.uri
    if uri not in known:
        found = session.find(ObjectClass.SECRET_KEY, parse(uri).id)
        if len(found) != 1:
            raise KeyMissing(f"{len(found)} wrapping keys")
        key, required = found[0], REQUIRED_OF_WRAPPING.items()
        if wrong := [name.name for name, wanted in required if _read(key, name) != wanted]:
            logger.error("KMS not configured: %s is no wrapping key (%s): %s", uri, ", ".join(wrong), ADVICE)
            raise base.KeyServiceNotConfigured
        known[uri] = key.handle, _read(key, Attribute.TRUSTED) is True
    handle, is_trusted = known[uri]
    found_key = WrappingHandle(session.session, handle)
    found_key.is_trusted = is_trusted
    return found_key


def _read(found: Any, name: Attribute) -> object:
    try:
        return found[name]
    except LOST:
        raise
    except PKCS11Error:
        return None


def _bound(template: dict[Attribute, Any], wrapping: WrappingHandle) -> dict[Attribute, Any]:
    """The template, and, where the wrapping key is trusted, that only such keys may wrap the object."""
    return template | {Attribute.WRAP_WITH_TRUSTED: True} if wrapping.is_trusted else template


def _import(
    session: TokenSession, wrapped: base.WrappedKey, uses: MechanismFlag, template: dict[Attribute, Any]
) -> Any:
    wrapping = open_wrapping_key(session, wrapped.wrapping)
    try:
        return wrapping.unwrap_key(
            ObjectClass.PRIVATE_KEY,
            KeyType.RSA,
            wrapped.blob,
            id=parse(wrapped.key.uri).id,
            mechanism=MECHANISMS[wrapped.wrapping.mechanism],
            store=False,
            capabilities=uses,
            template=template,
        )
    except (*LOST, *STALE_HANDLE):
        raise
    except PKCS11Error as error:
        # Modules have many errors for a blob that is no key: none of them is a reason to restart the module.
        session.touch()
        logger.error("Wrapped key %s cannot be unwrapped: %s", wrapped.key.uri, type(error).__name__)
        raise base.KeyMismatch from error
