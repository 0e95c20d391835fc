"""What only a PKCS#11 token can show of wrapped keys: attributes, and what foreign blobs become."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pkcs11 import Attribute, KeyType, ObjectClass, PKCS11Error
from pkcs11.constants import MechanismFlag

from compliance.core.identifiers import new_id
from compliance.keys.base import (
    KeyMismatch,
    KeyServiceNotConfigured,
    WrapMechanism,
    WrappedKey,
    WrappingKeyRef,
)
from compliance.keys.pkcs11 import objects, wrapping as under_test
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.module import module_at
from compliance.keys.pkcs11.token import TokenSession
from compliance.keys.tests.conftest import make_pkcs11_backend
from compliance.keys.uri import SECRET, Pkcs11Uri, build, parse

DIGEST = hashlib.sha256(b"payload").digest()
EXTRACTABLE_SESSION_KEY = {Attribute.EXTRACTABLE: True, Attribute.TOKEN: False}
PRIVATE_PARTS = (Attribute.PRIVATE_EXPONENT, Attribute.PRIME_1, Attribute.PRIME_2)


@pytest.fixture(scope="module")
def backend() -> Pkcs11Backend:
    backend = make_pkcs11_backend()
    assert isinstance(backend, Pkcs11Backend)
    return backend


@pytest.fixture(scope="module")
def wrapped(backend: Pkcs11Backend) -> WrappedKey:
    return backend.generate_wrapped(backend.make_wrapping_key(label="wrapping"), label="agent")


def on_token(backend: Pkcs11Backend, work: Callable[[TokenSession], Any]) -> Any:
    return backend._sessions(backend.main_label).use(work)


def read(found: Any, name: Attribute) -> object:
    try:
        return found[name]
    except PKCS11Error:
        return None


def secret_key(backend: Pkcs11Backend, uses: MechanismFlag, **attributes: bool) -> WrappingKeyRef:
    """An AES-256 key in the token, by default as a wrapping key is."""
    key_id = new_id().bytes
    template = under_test.WRAPPING | {Attribute[name]: value for name, value in attributes.items()}
    on_token(
        backend,
        lambda session: session.session.generate_key(
            KeyType.AES, 256, id=key_id, label="foreign", store=True, capabilities=uses, template=template
        ),
    )
    uri = build(Pkcs11Uri(backend.main_label, key_id, "foreign", SECRET))
    return WrappingKeyRef(uri, WrapMechanism.PAD)


def test_wrapping_key_is_sealed_and_only_wraps(backend: Pkcs11Backend, wrapped: WrappedKey) -> None:
    names = ["PRIVATE", "SENSITIVE", "ALWAYS_SENSITIVE", "EXTRACTABLE", "NEVER_EXTRACTABLE"]
    uses = ["WRAP", "UNWRAP", "ENCRYPT", "DECRYPT", "SIGN", "VERIFY", "DERIVE"]

    def look(session: TokenSession) -> dict[str, object]:
        found = session.find(ObjectClass.SECRET_KEY, parse(wrapped.wrapping.uri).id)[0]
        return {name: read(found, Attribute[name]) for name in [*names, *uses, "VALUE"]}

    seen = on_token(backend, look)

    assert [name for name in names if seen[name]] == [name for name in names if name != "EXTRACTABLE"]
    assert [name for name in uses if seen[name]] == ["WRAP", "UNWRAP"]
    assert seen["VALUE"] is None


def test_unwrapped_key_is_a_session_object_that_cannot_be_extracted(
    backend: Pkcs11Backend, wrapped: WrappedKey
) -> None:
    names = ["TOKEN", "PRIVATE", "SENSITIVE", "EXTRACTABLE", "SIGN", "DECRYPT", "UNWRAP", "DERIVE"]

    def look(session: TokenSession) -> dict[str, object]:
        found = under_test.unwrap(session, wrapped)
        seen: dict[str, object] = {name: read(found, Attribute[name]) for name in names}
        seen |= {part.name: read(found, part) for part in PRIVATE_PARTS}
        try:
            under_test.open_wrapping_key(session, wrapped.wrapping).wrap_key(
                found, mechanism=under_test.MECHANISMS[wrapped.wrapping.mechanism]
            )
            seen["wrapped again"] = True
        except PKCS11Error:
            seen["wrapped again"] = False
        found.destroy()
        return seen

    seen = on_token(backend, look)

    assert [name for name, value in seen.items() if value] == ["PRIVATE", "SENSITIVE", "SIGN"]


def test_nothing_is_left_after_making_wrapping_anew_refusing_and_signing(
    backend: Pkcs11Backend, wrapped: WrappedKey
) -> None:
    fresh = make_pkcs11_backend()
    assert isinstance(fresh, Pkcs11Backend)
    kinds = (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY)

    def held(session: TokenSession) -> int:
        return sum(
            len(list(session.session.get_objects({Attribute.CLASS: kind, Attribute.TOKEN: False})))
            for kind in kinds
        )

    before = on_token(fresh, held)
    made = fresh.generate_wrapped(wrapped.wrapping, label="agent")
    fresh.wrap_anew(made, wrapped.wrapping)
    with pytest.raises(KeyMismatch):
        fresh.sign_wrapped(replace(made, blob=wrapped.blob), DIGEST)

    fresh.sign_wrapped(made, DIGEST)

    assert on_token(fresh, held) == before


@pytest.mark.parametrize(
    ("uses", "attributes"),
    [
        (under_test.WRAP_AND_UNWRAP, {"EXTRACTABLE": True}),
        (under_test.WRAP_AND_UNWRAP, {"SENSITIVE": False}),
        (under_test.WRAP_AND_UNWRAP | MechanismFlag.DECRYPT, {}),
        (under_test.WRAP_AND_UNWRAP | MechanismFlag.ENCRYPT, {}),
        (MechanismFlag.WRAP, {}),
    ],
    ids=["extractable", "readable", "decrypts", "encrypts", "only wraps"],
)
def test_key_that_gives_more_than_wrapping_is_refused(
    backend: Pkcs11Backend, wrapped: WrappedKey, uses: MechanismFlag, attributes: dict[str, bool]
) -> None:
    weak = secret_key(backend, uses, **attributes)

    with pytest.raises(KeyServiceNotConfigured):
        backend.generate_wrapped(weak, label="agent")
    with pytest.raises(KeyServiceNotConfigured):
        backend.wrap_anew(wrapped, weak)
    backend.destroy(weak.uri)


@pytest.mark.parametrize("kind", ["aes", "ec"])
def test_wrapped_key_of_another_kind_does_not_become_an_agents_key(
    backend: Pkcs11Backend, wrapped: WrappedKey, kind: str
) -> None:
    def wrap(session: TokenSession) -> bytes:
        foreign: Any
        if kind == "aes":
            foreign = session.session.generate_key(
                KeyType.AES, 256, store=False, template=EXTRACTABLE_SESSION_KEY
            )
        else:
            curve = session.session.create_domain_parameters(
                KeyType.EC, {Attribute.EC_PARAMS: objects.P256_PARAMETERS}, local=True
            )
            _, foreign = curve.generate_keypair(store=False, private_template=EXTRACTABLE_SESSION_KEY)
        handle = under_test.open_wrapping_key(session, wrapped.wrapping)
        blob: bytes = handle.wrap_key(foreign, mechanism=under_test.MECHANISMS[wrapped.wrapping.mechanism])
        return blob

    blob, epoch = on_token(backend, wrap), module_at(backend._module.path).epoch

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(replace(wrapped, blob=blob), DIGEST)
    assert module_at(backend._module.path).epoch == epoch


def test_keys_under_a_trusted_key_can_be_wrapped_by_no_other(backend: Pkcs11Backend) -> None:
    """On SoftHSM only the security officer makes trusted keys: the officer's session comes first."""
    plain = secret_key(backend, under_test.WRAP_AND_UNWRAP)

    def both(session: TokenSession) -> tuple[bool, bool]:
        trusted = under_test.WrappingHandle(session.session, 1)
        trusted.is_trusted = True
        _, private = session.session.generate_keypair(
            KeyType.RSA,
            2048,
            store=False,
            capabilities=objects.SIGN_AND_VERIFY,
            private_template=under_test._bound(under_test.EXTRACTABLE, trusted),
            public_template=objects.SESSION_PUBLIC,
        )
        is_bound = read(private, Attribute.WRAP_WITH_TRUSTED)
        try:
            under_test.open_wrapping_key(session, plain).wrap_key(
                private, mechanism=under_test.MECHANISMS[plain.mechanism]
            )
            is_refused = False
        except PKCS11Error:
            is_refused = True
        private.destroy()
        return is_bound is True, is_refused

    assert on_token(backend, both) == (True, True)
