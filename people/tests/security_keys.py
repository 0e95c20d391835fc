"""A security key made of software, and the browser's part of it; for tests alone."""

import json
import struct
from dataclasses import dataclass, field, replace
from hashlib import sha256
from secrets import token_bytes
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.webauthn.internal.auth import WebAuthn
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from fido2.cbor import encode as encode_cbor
from fido2.utils import websafe_decode, websafe_encode

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.tests.console import console_of
from people import relying_party
from people.tests.authenticators import show_again
from people.tests.test_second_factor import CODE, show_password

RP_ID, ORIGIN = "localhost", "http://localhost:8000"
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
ES256, EDDSA, RS256 = -7, -8, -257


def make_private(algorithm: int) -> Any:
    if algorithm == EDDSA:
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm == RS256:
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class SoftwareKey:
    """A key, and the page that it believes to be on; `replace()` one to make it lie."""

    algorithm: int = ES256
    origin: str = ORIGIN
    rp_id: str = RP_ID
    flags: int = PRESENT
    counter: int = 0
    handle: bytes | None = None
    credential_id: bytes = field(default_factory=lambda: token_bytes(32))
    private: Any = None

    def __post_init__(self) -> None:
        self.private = self.private or make_private(self.algorithm)

    def create(self, options: dict[str, Any]) -> str:
        """What a browser answers to the options of a registration."""
        self.handle = websafe_decode(options["user"]["id"])
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id
        data = self._data(self.flags | ATTESTED) + attested + encode_cbor(self._public())
        attestation = encode_cbor({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options["challenge"])
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def get(self, options: dict[str, Any]) -> str:
        """What a browser answers to the options of a sign-in."""
        self.counter += 1 if self.counter else 0
        client, data = self._client("webauthn.get", options["challenge"]), self._data(self.flags)
        signature = self._sign(data + sha256(client).digest())
        handle = {} if self.handle is None else {"userHandle": self.handle}
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature, **handle)

    def lying(self, **changes: Any) -> "SoftwareKey":
        return replace(self, **changes)

    def _client(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, flags: int) -> bytes:
        return sha256(self.rp_id.encode()).digest() + struct.pack(">BI", flags, self.counter)

    def _public(self) -> dict[int, Any]:
        public = self.private.public_key()
        if self.algorithm == EDDSA:
            return {1: 1, 3: EDDSA, -1: 6, -2: public.public_bytes_raw()}
        numbers = public.public_numbers()
        if self.algorithm == RS256:
            return {1: 3, 3: RS256, -1: numbers.n.to_bytes(256), -2: numbers.e.to_bytes(3)}
        return {1: 2, 3: ES256, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}

    def _sign(self, octets: bytes) -> bytes:
        signature: bytes
        if self.algorithm == EDDSA:
            signature = self.private.sign(octets)
        elif self.algorithm == RS256:
            signature = self.private.sign(octets, padding.PKCS1v15(), SHA256())
        else:
            signature = self.private.sign(octets, ec.ECDSA(SHA256()))
        return signature

    def _answer(self, **response: bytes) -> str:
        name = websafe_encode(self.credential_id)
        told = {key: websafe_encode(value) for key, value in response.items()}
        return json.dumps(
            {"id": name, "rawId": name, "type": "public-key", "response": told, "clientExtensionResults": {}}
        )


def make_security_key(user: User, *, name: str = "blue key", **fields: Any) -> SoftwareKey:
    """Register a key of the user; its counter counts if `counter` is given."""
    party = relying_party.current()
    made = SoftwareKey(**{"origin": party.origin, "rp_id": party.id, **fields})
    answer = made.create({"user": {"id": "YQ"}, "challenge": websafe_encode(token_bytes(32))})
    WebAuthn.add(user, name, json.loads(answer))
    RecoveryCodes.activate(user)
    return made


def keys_of(user: User) -> Any:
    return Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)


def row_of(made: SoftwareKey) -> Authenticator:
    name = websafe_encode(made.credential_id)
    return Authenticator.objects.get(type=Authenticator.Type.WEBAUTHN, data__credential__id=name)


def options(client: Client, page: str) -> dict[str, Any]:
    """What the page tells the browser's script to ask a key for."""
    (found,) = client.get(reverse(page)).context["js_data"].values()
    told: dict[str, Any] = found["publicKey"]
    return told


def registered(client: Client) -> str:
    """What a new key answers to the person whose browser this is."""
    party = relying_party.current()
    return SoftwareKey(origin=party.origin, rp_id=party.id).create(options(client, "mfa_add_webauthn"))


def sign_in_with(client: Client, user: User, key: SoftwareKey) -> Any:
    show_password(client, user)
    return client.post(CODE, {"credential": key.get(options(client, "mfa_authenticate"))})


def confirmed(user: User) -> Client:
    """A browser in which the user has just shown the second factor."""
    client = console_of(user)
    show_again(client, user)
    return client


def last_of(user: User, action: str) -> dict[str, Any]:
    entry = AuditEntry.objects.of_type(action).filter(affected_id=str(user.person.id)).order_by("id").last()
    assert entry is not None
    return facts_of(entry)
