"""Keys in PKCS#11 tokens: any module by setting, SoftHSM in development and tests."""

import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, PKCS11Error
from pkcs11.exceptions import KeyHandleInvalid, ObjectHandleInvalid

from compliance.identifiers import new_id
from compliance.keys.base import (
    KeyBackend,
    KeyNotFound,
    KeyRef,
    KeyServiceNotConfigured,
    KeyServiceUnavailable,
    PublicKey,
    SignatureAlgorithm,
    StoredKey,
    require_rsa_size,
)
from compliance.keys.failures import PIN_REFUSED, REQUEST_REFUSED, KeyMissing
from compliance.keys.indexer import Indexer
from compliance.keys.lanes import Lanes, LanesBusy, Runner
from compliance.keys.module import Module
from compliance.keys.objects import attributes_of, read_public_key, stored_key
from compliance.keys.shards import is_shard, shard_labels
from compliance.keys.templates import (
    CAPABILITIES,
    P256_PARAMETERS,
    PASSING_PUBLIC,
    PRIVATE,
    PUBLIC,
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
START_TIMEOUT: Final = 30.0
"""For the call that starts the module: SoftHSM reads every object of every token then."""

LOST_HANDLE: Final = (KeyHandleInvalid, ObjectHandleInvalid)
"""Another process may have destroyed the key; before the module is restarted, the key is looked up."""

# RFC 8017 §9.2 note 1: DER of DigestInfo up to the digest.
DIGEST_INFO: Final = {
    SignatureAlgorithm.RSA_SHA256: bytes.fromhex("3031300d060960864801650304020105000420"),
    SignatureAlgorithm.RSA_SHA384: bytes.fromhex("3041300d060960864801650304020205000430"),
    SignatureAlgorithm.RSA_SHA512: bytes.fromhex("3051300d060960864801650304020305000440"),
}


def make_lanes() -> Runner:
    """What calls go through in a process that does other things, too."""
    return Lanes(size=SIGN_LANES, name="keys-call")


class Pkcs11Backend(KeyBackend):
    """Keys of one environment: in its main token, and spread over its shards; the URI names the token.

    Only shards that are there are used, so an installation without them keeps all keys in the main token.
    Nothing is loaded or logged in before the first call, and no shard before one of its keys is used.
    Generation has lanes of its own, of low priority, so signing never waits behind it. `runner` makes
    what all other calls go through.
    """

    def __init__(
        self,
        module: Module,
        main: TokenConfig,
        *,
        shards: int = 0,
        runner: Callable[[], Runner] = make_lanes,
    ) -> None:
        self._module = module
        self._make_runner = runner
        self._config = main
        self._wanted = shard_labels(main.label, shards)
        self._main = Token(module, main)
        self._tokens = {main.label: self._main}
        self.start_afresh()
        module.on_fork(self)

    def start_afresh(self) -> None:
        """New lanes: threads don't survive a fork."""
        self._lock = threading.Lock()
        self._lanes = self._make_runner()
        self._generators = Lanes(size=GENERATE_LANES, name="keys-generate", in_background=True)
        self._indexer = Indexer()

    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        require_rsa_size(bits)
        if not spread:
            return self._generate_rsa(self._main, bits, label, PUBLIC)
        token = self._shard()
        try:
            return self._generate_rsa(token, bits, label, PASSING_PUBLIC)
        except KeyServiceUnavailable:
            other = self._shard(besides=token)
            if other is token:
                raise
        return self._generate_rsa(other, bits, label, PASSING_PUBLIC)

    def generate_rsa_in(self, token: str, bits: int, *, label: str, spread: bool) -> KeyRef:
        """As `generate_rsa()`, in the token that the caller chose; `KeyNotFound` for another's."""
        require_rsa_size(bits)
        return self._generate_rsa(self._named(token), bits, label, PASSING_PUBLIC if spread else PUBLIC)

    def generate_ec(self, *, label: str) -> KeyRef:
        def make(borrowed: Borrowed, options: dict[str, Any]) -> tuple[Any, Any]:
            parameters = borrowed.session.create_domain_parameters(
                KeyType.EC, {Attribute.EC_PARAMS: P256_PARAMETERS}, local=True
            )
            return parameters.generate_keypair(**options)

        return self._generate(self._main, make, label, PUBLIC)

    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        algorithm.require_digest(digest)
        if algorithm.is_rsa:
            return self._sign_raw(uri, DIGEST_INFO[algorithm] + digest, Mechanism.RSA_PKCS)
        signature = self._sign_raw(uri, digest, Mechanism.ECDSA)
        half = len(signature) // 2
        return encode_dss_signature(
            int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
        )

    def public_key(self, uri: str) -> PublicKey:
        token, parsed = self._locate(uri)
        return self._call(token, lambda borrowed: read_public_key(borrowed, parsed.id))

    def spki(self, uri: str) -> bytes:
        """The public half as SubjectPublicKeyInfo DER; raises as `public_key()`."""
        return KeyRef.of(uri, self.public_key(uri)).spki

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
        shards = sorted(label for label in self._present() if is_shard(label, of=self._main.label))
        tokens = [self._main, *map(self._token, shards)]
        found = [key for token in tokens for key in self._list(token, label_prefix)]
        return sorted(found, key=lambda key: key.uri)

    def list_keys_of(self, token: str, label_prefix: str = "") -> list[StoredKey]:
        """As `list_keys()`, of one token; `KeyNotFound` for another environment's."""
        return self._list(self._named(token), label_prefix)

    def read_ahead(self, token: str) -> None:
        """Open a token and read its keys' handles, which otherwise happens when they are used."""
        self._call(self._named(token), Borrowed.remember_all, timeout=START_TIMEOUT)

    def check(self) -> None:
        self._call(self._main, Borrowed.touch, timeout=CHECK_TIMEOUT)
        self.check_open()

    def check_open(self) -> None:
        """As `check()`, of those tokens alone that were used."""
        for token in list(self._tokens.values()):
            if token.is_open:
                self._call(token, Borrowed.touch, timeout=CHECK_TIMEOUT)

    def shards(self) -> dict[str, bool]:
        present = self._present()
        return {label: label in present for label in self._wanted}

    def _sign_raw(self, uri: str, data: bytes, mechanism: Mechanism) -> bytes:
        token, parsed = self._locate(uri)

        def sign(borrowed: Borrowed) -> bytes:
            try:
                signature: bytes = borrowed.private_key(parsed.id).sign(data, mechanism=mechanism)
            except LOST_HANDLE:
                borrowed.handles.pop(parsed.id, None)
                signature = borrowed.private_key(parsed.id).sign(data, mechanism=mechanism)
            return signature

        signature = self._call(token, sign)
        self._indexer.consider(token)
        return signature

    def _generate_rsa(
        self, token: Token, bits: int, label: str, public_template: dict[Attribute, Any]
    ) -> KeyRef:
        def make(borrowed: Borrowed, options: dict[str, Any]) -> tuple[Any, Any]:
            return borrowed.session.generate_keypair(KeyType.RSA, bits, **options)

        return self._generate(token, make, label, public_template)

    def _generate(
        self,
        token: Token,
        make: Callable[[Borrowed, dict[str, Any]], tuple[Any, Any]],
        label: str,
        public_template: dict[Attribute, Any],
    ) -> KeyRef:
        key_id = new_id().bytes
        options = {
            "id": key_id,
            "label": label,
            "store": True,
            "capabilities": CAPABILITIES,
            "private_template": PRIVATE,
            "public_template": public_template,
        }

        def generate(borrowed: Borrowed) -> PublicKey:
            public, private = make(borrowed, options)
            borrowed.remember(key_id, private.handle)
            public_key = decode_public_key(attributes_of(public))
            if public_template is PASSING_PUBLIC:
                public.destroy()
            return public_key

        public_key = self._call(token, generate, lanes=self._generators, timeout=GENERATE_TIMEOUT)
        return KeyRef.of(build(Pkcs11Uri(token=token.label, id=key_id, object=label)), public_key)

    def _shard(self, *, besides: Token | None = None) -> Token:
        """A shard picked at random among those that serve; the main token where there is none."""
        shards = [token for token in self._shards() if token is not besides]
        serving = [token for token in shards if not token.circuit.is_open]
        return secrets.choice(serving or shards or [besides or self._main])

    def _shards(self) -> list[Token]:
        """The wanted shards that are there."""
        present = self._present() if self._wanted else set()
        return [self._token(label) for label in self._wanted if label in present]

    def _present(self) -> set[str]:
        """The labels of the module's tokens, the main one's circuit permitting."""
        return self._call(self._main, lambda _: set(self._module.tokens()))

    def _token(self, label: str) -> Token:
        """The main token or a shard; KeyError for any other."""
        token = self._tokens.get(label)
        if token is None:
            if not is_shard(label, of=self._main.label):
                raise KeyError(label)
            with self._lock:
                fresh = Token(self._module, TokenConfig(label, self._config.pin))
                token = self._tokens.setdefault(label, fresh)
        return token

    def _named(self, label: str) -> Token:
        try:
            return self._token(label)
        except KeyError as error:
            raise KeyNotFound from error

    def _list(self, token: Token, label_prefix: str) -> list[StoredKey]:
        def read(borrowed: Borrowed) -> list[StoredKey]:
            halves: dict[bytes, dict[ObjectClass, str]] = {}
            for kind in (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY):
                objects: list[Any] = list(borrowed.session.get_objects({Attribute.CLASS: kind}))
                for found in objects:
                    if found.label.startswith(label_prefix):
                        halves.setdefault(found.id, {})[kind] = found.label
            return [stored_key(token.label, key_id, kinds) for key_id, kinds in halves.items()]

        return self._call(token, read, lanes=self._generators, timeout=GENERATE_TIMEOUT)

    def _locate(self, uri: str) -> tuple[Token, Pkcs11Uri]:
        try:
            parsed = parse(uri)
            return self._token(parsed.token), parsed
        except (InvalidUri, KeyError) as error:
            logger.warning("Key URI names no token of this environment")
            raise KeyNotFound from error

    def _call(
        self,
        token: Token,
        operation: Callable[[Borrowed], Result],
        *,
        lanes: Runner | None = None,
        timeout: float = CALL_TIMEOUT,
    ) -> Result:
        """Run an operation in a lane, under the token's circuit, with the errors of the contract."""
        circuit = token.circuit
        ticket = circuit.admit()
        if not self._module.is_started:
            timeout = max(timeout, START_TIMEOUT)
        try:
            result = (lanes or self._lanes).run(lambda: self._attempt(token, operation), timeout=timeout)
        except LanesBusy as error:
            logger.warning("Token %s: %s", token.label, error)
            circuit.failed(ticket)
            raise KeyServiceUnavailable from error
        except KeyServiceUnavailable:
            circuit.failed(ticket, cost=self._module.restart_seconds)
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
