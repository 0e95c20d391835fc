"""The contract of wrapped keys, which every backend must fulfil."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compliance.keys.backend import KeyBackend
from compliance.keys.base import KeyMismatch, KeyNotFound, SignatureAlgorithm, WrappedKey, WrappingKeyRef
from compliance.keys.tests.conftest import make_pkcs11_backend

DIGEST = hashlib.sha256(b"payload").digest()


@pytest.fixture(scope="module")
def made() -> tuple[WrappedKey, WrappedKey]:
    """Two keys under one wrapping key, for all tests that do not ask how keys are made: that takes long."""
    backend = make_pkcs11_backend()
    wrapping = backend.make_wrapping_key(label="wrapping")
    return backend.generate_wrapped(wrapping, label="agent"), backend.generate_wrapped(
        wrapping, label="agent"
    )


@pytest.fixture
def mine(made: tuple[WrappedKey, WrappedKey]) -> WrappedKey:
    return made[0]


@pytest.fixture
def theirs(made: tuple[WrappedKey, WrappedKey]) -> WrappedKey:
    return made[1]


def verify(wrapped: WrappedKey, signature: bytes) -> None:
    assert isinstance(wrapped.key.public_key, rsa.RSAPublicKey)
    wrapped.key.public_key.verify(signature, b"payload", padding.PKCS1v15(), hashes.SHA256())


def test_generated_key_signs_and_leaves_no_object_in_the_token(backend: KeyBackend) -> None:
    wrapping = backend.make_wrapping_key(label="wrapping")
    before = {key.uri for key in backend.list_keys()}

    wrapped = backend.generate_wrapped(wrapping, label="agent")

    assert isinstance(wrapped.key.public_key, rsa.RSAPublicKey)
    assert wrapped.key.public_key.key_size == 2048
    assert wrapped.wrapping == wrapping
    verify(wrapped, backend.sign_wrapped(wrapped, DIGEST))
    assert {key.uri for key in backend.list_keys()} == before
    with pytest.raises(KeyNotFound):
        backend.sign(wrapped.key.uri, b"payload", SignatureAlgorithm.RSA_SHA256)


def test_key_wrapped_anew_signs_once_the_old_wrapping_key_is_destroyed(
    backend: KeyBackend, mine: WrappedKey
) -> None:
    old, new = (backend.make_wrapping_key(label="wrapping") for _ in range(2))
    under_old = backend.wrap_anew(mine, old)
    under_new = backend.wrap_anew(under_old, new)

    listed = [key for key in backend.list_keys("wrapping") if key.uri == old.uri]
    backend.destroy(old.uri)

    assert [(key.has_private, key.has_public) for key in listed] == [(True, False)]
    assert old.uri not in {key.uri for key in backend.list_keys()}
    assert (under_new.key, under_new.wrapping) == (mine.key, new)
    assert len({mine.blob, under_old.blob, under_new.blob}) == 3
    verify(mine, backend.sign_wrapped(under_new, DIGEST))
    with pytest.raises(KeyNotFound):
        backend.sign_wrapped(under_old, DIGEST)


def test_blob_of_another_agent_is_refused(backend: KeyBackend, mine: WrappedKey, theirs: WrappedKey) -> None:
    swapped = replace(mine, blob=theirs.blob)

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(swapped, DIGEST)
    with pytest.raises(KeyMismatch):
        backend.wrap_anew(swapped, mine.wrapping)

    verify(theirs, backend.sign_wrapped(theirs, DIGEST))
    verify(mine, backend.sign_wrapped(mine, DIGEST))


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "empty", "zeros", "huge"])
def test_damaged_blob_is_refused_and_others_sign_on(
    backend: KeyBackend, mine: WrappedKey, damage: str
) -> None:
    blob = mine.blob
    damaged = {
        "flipped": blob[:100] + bytes([blob[100] ^ 1]) + blob[101:],
        "cut": blob[:-8],
        "longer": blob + bytes(8),
        "empty": b"",
        "zeros": bytes(len(blob)),
        "huge": bytes(32_000),
    }[damage]

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(replace(mine, blob=damaged), DIGEST)

    verify(mine, backend.sign_wrapped(mine, DIGEST))


def test_blob_under_another_wrapping_key_is_refused(backend: KeyBackend, mine: WrappedKey) -> None:
    other = backend.make_wrapping_key(label="wrapping")

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(replace(mine, wrapping=other), DIGEST)


def test_wrapping_key_of_another_token_is_not_found(backend: KeyBackend, mine: WrappedKey) -> None:
    elsewhere = WrappingKeyRef("pkcs11:token=elsewhere;id=%01;type=secret-key", mine.wrapping.mechanism)

    with pytest.raises(KeyNotFound):
        backend.generate_wrapped(elsewhere, label="agent")
    with pytest.raises(KeyNotFound):
        backend.wrap_anew(mine, elsewhere)


def test_wrapped_keys_sign_only_digests(backend: KeyBackend, mine: WrappedKey) -> None:
    with pytest.raises(ValueError, match="octets"):
        backend.sign_wrapped(mine, b"short")


def test_keys_sign_in_threads_and_no_signature_is_anothers(
    backend: KeyBackend, mine: WrappedKey, theirs: WrappedKey
) -> None:
    def sign(wrapped: WrappedKey) -> None:
        verify(wrapped, backend.sign_wrapped(wrapped, DIGEST))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sign, [mine, theirs] * 40))


def test_forked_child_unwraps_for_itself(backend: KeyBackend, mine: WrappedKey) -> None:
    expected = backend.sign_wrapped(mine, DIGEST)

    child = os.fork()
    if child == 0:
        is_same = backend.sign_wrapped(mine, DIGEST) == expected
        os._exit(0 if is_same else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend.sign_wrapped(mine, DIGEST) == expected
