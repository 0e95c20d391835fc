"""Operations on the keys of one token, by a session of it; PKCS11Error may be raised everywhere here."""

from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass

from compliance.core.identifiers import new_id
from compliance.keys import base
from compliance.keys.base import KeyRef, SignatureAlgorithm, StoredKey
from compliance.keys.pkcs11 import objects
from compliance.keys.pkcs11.objects import read_public_key, stored_key
from compliance.keys.pkcs11.token import STALE_HANDLE, KeyMissing, KeyVanished, TokenSession
from compliance.keys.uri import Pkcs11Uri, build, parse

CURVES: Final = {
    base.P256: (KeyType.EC, objects.P256_PARAMETERS),
    base.ED25519: (KeyType.EC_EDWARDS, objects.ED25519_PARAMETERS),
}
HALVES: Final = (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY)
KINDS: Final = (*HALVES, ObjectClass.SECRET_KEY)

# RFC 8017 §9.2 note 1: DER of DigestInfo up to the digest.
DIGEST_INFO: Final = bytes.fromhex("3031300d060960864801650304020105000420")


def generate(session: TokenSession, bits: int, label: str, keep_public: bool) -> KeyRef:
    """Generate a key: RSA of `bits`, `P256` or `ED25519`; `keep_public` stores a public object too."""
    public: Any
    private: Any
    key_id = new_id().bytes
    options: dict[str, Any] = {
        "id": key_id,
        "label": label,
        "store": True,
        "capabilities": objects.SIGN_AND_VERIFY,
        "private_template": objects.PRIVATE,
        "public_template": objects.PUBLIC if keep_public else objects.SESSION_PUBLIC,
    }
    if bits in CURVES:
        kind, parameters = CURVES[bits]
        wanted = {Attribute.EC_PARAMS: parameters}
        curve = session.session.create_domain_parameters(kind, wanted, local=True)
        public, private = curve.generate_keypair(**options)
    else:
        public, private = session.session.generate_keypair(KeyType.RSA, bits, **options)
    session.login.handles[key_id] = private.handle
    public_key = read_public_key(public)
    if not keep_public:
        public.destroy()
    if public_key is None:
        raise base.KeyServiceUnavailable
    return KeyRef.of(build(Pkcs11Uri(session.label, key_id, label)), public_key)


def sign(session: TokenSession, uri: str, data: bytes, algorithm: SignatureAlgorithm | None) -> bytes:
    """Sign a digest, or, without an algorithm, a message by Ed25519; raises as `require_signable()`."""
    base.require_signable(data, algorithm)
    key_id, mechanism = parse(uri).id, Mechanism.ECDSA if algorithm else Mechanism.EDDSA
    if algorithm is SignatureAlgorithm.RSA_SHA256:
        data, mechanism = DIGEST_INFO + data, Mechanism.RSA_PKCS
    try:
        signature: bytes = session.private_key(key_id).sign(data, mechanism=mechanism)
    except STALE_HANDLE:
        session.login.handles.pop(key_id, None)
        try:
            signature = session.private_key(key_id).sign(data, mechanism=mechanism)
        except KeyMissing as error:
            raise KeyVanished(str(error)) from error
    if algorithm is not SignatureAlgorithm.ECDSA_SHA256:
        return signature
    half = len(signature) // 2
    return encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))


def read(session: TokenSession, uri: str) -> bytes:
    """Read the public key as SubjectPublicKeyInfo DER."""
    # Modules that keep no public object have the public key in the private one.
    for kind in reversed(HALVES):
        for found in session.find(kind, parse(uri).id):
            if (public_key := read_public_key(found)) is not None:
                return KeyRef.of(uri, public_key).spki
    raise KeyMissing("no public key")


def destroy(session: TokenSession, uri: str) -> None:
    """Delete the objects of a key."""
    key_id = parse(uri).id
    halves = [found for kind in KINDS for found in session.find(kind, key_id)]
    if not halves:
        raise KeyMissing("neither half")
    session.login.handles.pop(key_id, None)
    session.login.wrapping_keys.pop(uri, None)
    for half in halves:
        half.destroy()


def list_keys(session: TokenSession, label_prefix: str) -> list[StoredKey]:
    """List the keys whose label starts with the prefix.

    Objects without CKA_ID are foreign, half-written, or what a killed process left: no keys.
    """
    labels: dict[bytes, dict[ObjectClass, str]] = {}
    for kind in KINDS:
        wanted = {Attribute.CLASS: kind, Attribute.TOKEN: True}
        stored: list[Any] = list(session.session.get_objects(wanted))
        for found in stored:
            if found.id and found.label.startswith(label_prefix):
                labels.setdefault(found.id, {})[kind] = found.label
    return [stored_key(session.label, key_id, found) for key_id, found in labels.items()]
