"""Keys in PKCS#11 tokens: any module by setting, SoftHSM in development and tests."""

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, PKCS11Error

from compliance.keys.base import (
    RSA_SIZES,
    KeyBackend,
    KeyNotFound,
    KeyRef,
    KeyServiceNotConfigured,
    KeyServiceUnavailable,
    PublicKey,
    SignatureAlgorithm,
    StoredKey,
)
from compliance.keys.failures import PIN_REFUSED, REQUEST_REFUSED, KeyMissing
from compliance.keys.lanes import Lanes, LanesBusy
from compliance.keys.module import Module
from compliance.keys.templates import (
    CAPABILITIES,
    P256_PARAMETERS,
    PRIVATE,
    PUBLIC,
    PUBLIC_ATTRIBUTES,
    UnreadablePublicKey,
    decode_public_key,
)
from compliance.keys.token import Borrowed, Token, TokenConfig
from compliance.keys.uri import InvalidUri, Pkcs11Uri, build, parse

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

SIGN_LANES: Final = 4
GENERATE_LANES: Final = 2
CALL_TIMEOUT: Final = 10.0
GENERATE_TIMEOUT: Final = 30.0
CHECK_TIMEOUT: Final = 3.0
ID_SIZE: Final = 16

# RFC 8017 §9.2 note 1: DER of DigestInfo up to the digest.
DIGEST_INFO: Final = {
    SignatureAlgorithm.RSA_SHA256: bytes.fromhex("3031300d060960864801650304020105000420"),
    SignatureAlgorithm.RSA_SHA384: bytes.fromhex("3041300d060960864801650304020205000430"),
    SignatureAlgorithm.RSA_SHA512: bytes.fromhex("3051300d060960864801650304020305000440"),
}


class Pkcs11Backend(KeyBackend):
    """Keys spread over one or more tokens of one module; the token is part of the key's URI.

    New keys go to a token picked at random: look-ups slow down with the keys of a token, not of all.
    Nothing is loaded or logged in before the first call. Generation has lanes of its own, so signing never
    waits behind it.
    """

    def __init__(self, module: Module, tokens: Sequence[TokenConfig]) -> None:
        self._tokens = {config.label: Token(module, config) for config in tokens}
        self._module = module
        self.start_afresh()
        module.on_fork(self)

    def start_afresh(self) -> None:
        """New lanes: threads don't survive a fork."""
        self._lanes = Lanes(size=SIGN_LANES, name="keys-call")
        self._generators = Lanes(size=GENERATE_LANES, name="keys-generate")

    def generate_rsa(self, bits: int = 2048, *, label: str) -> KeyRef:
        if bits not in RSA_SIZES:
            raise ValueError(f"RSA keys have {RSA_SIZES} bits, not {bits}")

        def make(borrowed: Borrowed, options: dict[str, Any]) -> tuple[Any, Any]:
            return borrowed.session.generate_keypair(KeyType.RSA, bits, **options)

        return self._generate(make, label)

    def generate_ec(self, *, label: str) -> KeyRef:
        def make(borrowed: Borrowed, options: dict[str, Any]) -> tuple[Any, Any]:
            parameters = borrowed.session.create_domain_parameters(
                KeyType.EC, {Attribute.EC_PARAMS: P256_PARAMETERS}, local=True
            )
            return parameters.generate_keypair(**options)

        return self._generate(make, label)

    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        if len(digest) != algorithm.digest_size:
            raise ValueError(
                f"{algorithm} signs digests of {algorithm.digest_size} octets, not {len(digest)}"
            )
        if algorithm.is_rsa:
            return self._sign_raw(uri, DIGEST_INFO[algorithm] + digest, Mechanism.RSA_PKCS)
        signature = self._sign_raw(uri, digest, Mechanism.ECDSA)
        half = len(signature) // 2
        return encode_dss_signature(
            int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
        )

    def public_key(self, uri: str) -> PublicKey:
        token, parsed = self._locate(uri)
        return self._call(token, lambda borrowed: _read_public_key(borrowed, parsed.id))

    def destroy(self, uri: str) -> None:
        token, parsed = self._locate(uri)

        def remove(borrowed: Borrowed) -> None:
            private = borrowed.find(ObjectClass.PRIVATE_KEY, parsed.id)
            public = borrowed.find(ObjectClass.PUBLIC_KEY, parsed.id)
            if not private and not public:
                raise KeyMissing("neither half")
            borrowed.handles.pop(parsed.id, None)
            for half in (*private, *public):
                half.destroy()

        self._call(token, remove)

    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        found = [key for token in self._tokens.values() for key in self._list(token, label_prefix)]
        return sorted(found, key=lambda key: key.uri)

    def check(self) -> None:
        if not self._tokens:
            raise KeyServiceNotConfigured
        for token in self._tokens.values():
            self._call(token, Borrowed.touch, timeout=CHECK_TIMEOUT)

    def _sign_raw(self, uri: str, data: bytes, mechanism: Mechanism) -> bytes:
        token, parsed = self._locate(uri)

        def sign(borrowed: Borrowed) -> bytes:
            signature: bytes = borrowed.private_key(parsed.id).sign(data, mechanism=mechanism)
            return signature

        return self._call(token, sign)

    def _generate(self, make: Callable[[Borrowed, dict[str, Any]], tuple[Any, Any]], label: str) -> KeyRef:
        if not self._tokens:
            raise KeyServiceNotConfigured
        token = secrets.choice(list(self._tokens.values()))
        key_id = secrets.token_bytes(ID_SIZE)
        options = {
            "id": key_id,
            "label": label,
            "store": True,
            "capabilities": CAPABILITIES,
            "private_template": PRIVATE,
            "public_template": PUBLIC,
        }

        def generate(borrowed: Borrowed) -> PublicKey:
            public, private = make(borrowed, options)
            borrowed.remember(key_id, private.handle)
            return decode_public_key(_attributes(public))

        public_key = self._call(token, generate, lanes=self._generators, timeout=GENERATE_TIMEOUT)
        return KeyRef.of(build(Pkcs11Uri(token=token.label, id=key_id, object=label)), public_key)

    def _list(self, token: Token, label_prefix: str) -> list[StoredKey]:
        def read(borrowed: Borrowed) -> list[StoredKey]:
            halves: dict[bytes, dict[ObjectClass, str]] = {}
            for kind in (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY):
                objects: list[Any] = list(borrowed.session.get_objects({Attribute.CLASS: kind}))
                for found in objects:
                    if found.label.startswith(label_prefix):
                        halves.setdefault(found.id, {})[kind] = found.label
            return [_stored(token.label, key_id, kinds) for key_id, kinds in halves.items()]

        return self._call(token, read, lanes=self._generators, timeout=GENERATE_TIMEOUT)

    def _locate(self, uri: str) -> tuple[Token, Pkcs11Uri]:
        try:
            parsed = parse(uri)
            return self._tokens[parsed.token], parsed
        except (InvalidUri, KeyError) as error:
            logger.warning("Key URI names no token of this environment")
            raise KeyNotFound from error

    def _call(
        self,
        token: Token,
        operation: Callable[[Borrowed], Result],
        *,
        lanes: Lanes | None = None,
        timeout: float = CALL_TIMEOUT,
    ) -> Result:
        """Run an operation in a lane, under the token's circuit, with the errors of the contract."""
        circuit = token.circuit
        ticket = circuit.admit()
        try:
            result = (lanes or self._lanes).run(lambda: self._attempt(token, operation), timeout=timeout)
        except LanesBusy as error:
            logger.warning("Token %s: %s", token.label, error)
            circuit.failed(ticket)
            raise KeyServiceUnavailable from error
        except KeyServiceUnavailable:
            circuit.failed(ticket)
            raise
        except KeyNotFound:
            circuit.succeeded()  # the token answered
            raise
        circuit.succeeded()
        return result

    def _attempt(self, token: Token, operation: Callable[[Borrowed], Result]) -> Result:
        """Try, and once more after a restart of the module if the first failure may be a lost token."""
        epoch = self._module.epoch
        try:
            return token.use(operation)
        except PIN_REFUSED as error:
            raise _refuse(token, error) from error
        except REQUEST_REFUSED as error:
            raise _unavailable(token, error) from error
        except KeyMissing as error:
            if self._is_present(token):
                raise KeyNotFound from error
        except PKCS11Error as error:
            logger.warning("Token %s failed (%s); restarting the module", token.label, type(error).__name__)
        self._module.restart(seen_epoch=epoch)
        return self._last_attempt(token, operation)

    def _last_attempt(self, token: Token, operation: Callable[[Borrowed], Result]) -> Result:
        try:
            return token.use(operation)
        except PIN_REFUSED as error:
            raise _refuse(token, error) from error
        except KeyMissing as error:
            raise KeyNotFound from error
        except PKCS11Error as error:
            raise _unavailable(token, error) from error

    def _is_present(self, token: Token) -> bool:
        """Whether the token answers, so that a key that was not found is truly not there."""
        try:
            token.use(Borrowed.touch)
        except PKCS11Error:
            return False
        return True


def _read_public_key(borrowed: Borrowed, key_id: bytes) -> PublicKey:
    """From the public object, or from the private one on modules that keep no public objects."""
    halves = [*borrowed.find(ObjectClass.PUBLIC_KEY, key_id), *borrowed.find(ObjectClass.PRIVATE_KEY, key_id)]
    for half in halves:
        try:
            return decode_public_key(_attributes(half))
        except UnreadablePublicKey:
            continue
    raise KeyMissing(f"no public key among {len(halves)} objects")


def _attributes(found: Any) -> dict[Attribute, Any]:
    """Those of the wanted attributes that the object has; asked one by one, as some modules fail a mixed
    request.
    """
    values: dict[Attribute, Any] = {}
    for attribute in PUBLIC_ATTRIBUTES:
        try:
            values[attribute] = found[attribute]
        except PKCS11Error:
            continue
    return values


def _stored(token_label: str, key_id: bytes, kinds: dict[ObjectClass, str]) -> StoredKey:
    label = next(iter(kinds.values()))
    return StoredKey(
        uri=build(Pkcs11Uri(token=token_label, id=key_id, object=label)),
        label=label,
        has_private=ObjectClass.PRIVATE_KEY in kinds,
        has_public=ObjectClass.PUBLIC_KEY in kinds,
    )


def _refuse(token: Token, error: PKCS11Error) -> KeyServiceNotConfigured:
    logger.error(
        "Token %s refuses the PIN (%s); not trying it again in this process",
        token.label,
        type(error).__name__,
    )
    token.circuit.refuse(type(error).__name__)
    return KeyServiceNotConfigured()


def _unavailable(token: Token, error: PKCS11Error) -> KeyServiceUnavailable:
    logger.warning("Token %s can't serve: %s", token.label, type(error).__name__)
    return KeyServiceUnavailable()
