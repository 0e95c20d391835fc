"""The contract of wrapped keys, which every backend must fulfil."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NoReturn

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compliance.core.identifiers import new_id
from compliance.keys.base import (
    KeyBackend,
    KeyMismatch,
    KeyNotFound,
    KeyRef,
    SignatureAlgorithm,
    WrappedKey,
    WrappingKeyRef,
)
from compliance.keys.pkcs11.unwrapped import MOST_UNWRAPPED
from compliance.keys.tests.conftest import make_pkcs11_backend
from compliance.keys.uri import build, parse
from compliance.observing import metrics

RSA = SignatureAlgorithm.RSA_SHA256
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
    return _renamed(made[0])


@pytest.fixture
def theirs(made: tuple[WrappedKey, WrappedKey]) -> WrappedKey:
    return _renamed(made[1])


def _renamed(wrapped: WrappedKey) -> WrappedKey:
    """The same key under a URI that no backend has unwrapped it for."""
    uri = build(replace(parse(wrapped.key.uri), id=new_id().bytes))
    return replace(wrapped, key=KeyRef(uri, wrapped.key.spki))


def never_read() -> NoReturn:
    raise AssertionError("the key was unwrapped just before")


def calls(operation: str) -> float:
    """How often this process called the HSM so, and got an answer."""
    found = metrics.HSM_CALLS.labels(operation, "ok")._child_samples()
    return next(one.value for one in found if one.name == "_total")


def test_metrics_tell_unwrapping_from_signing(mine: WrappedKey) -> None:
    pkcs11 = make_pkcs11_backend()
    unwrapped, found = calls("unwrap_and_sign"), calls("sign_unwrapped")

    pkcs11.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine)
    pkcs11.sign_wrapped(mine.key, DIGEST, RSA, never_read)

    assert (calls("unwrap_and_sign"), calls("sign_unwrapped")) == (unwrapped + 1, found + 2)


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
    verify(wrapped, backend.sign_wrapped(wrapped.key, DIGEST, RSA, lambda: wrapped))
    assert {key.uri for key in backend.list_keys()} == before
    with pytest.raises(KeyNotFound):
        backend.sign(wrapped.key.uri, b"payload", RSA)


def test_key_used_lately_is_not_read_again(backend: KeyBackend, mine: WrappedKey) -> None:
    first = backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine)

    assert backend.sign_wrapped(mine.key, DIGEST, RSA, never_read) == first


def test_another_process_unwraps_the_same_key(
    backend: KeyBackend, another: KeyBackend, mine: WrappedKey
) -> None:
    backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine)

    verify(mine, another.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine))


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
    verify(mine, backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: under_new))
    renamed = _renamed(under_old)
    with pytest.raises(KeyNotFound):
        backend.sign_wrapped(renamed.key, DIGEST, RSA, lambda: renamed)


def test_blob_of_another_agent_is_refused(backend: KeyBackend, mine: WrappedKey, theirs: WrappedKey) -> None:
    swapped = replace(mine, blob=theirs.blob)

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: swapped)
    with pytest.raises(KeyMismatch):
        backend.wrap_anew(swapped, mine.wrapping)

    verify(theirs, backend.sign_wrapped(theirs.key, DIGEST, RSA, lambda: theirs))
    verify(mine, backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine))


def test_key_unwrapped_for_its_own_certificate_does_not_serve_another(
    backend: KeyBackend, mine: WrappedKey, theirs: WrappedKey
) -> None:
    backend.sign_wrapped(theirs.key, DIGEST, RSA, lambda: theirs)
    pretended = replace(theirs, key=KeyRef(theirs.key.uri, mine.key.spki))

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(pretended.key, DIGEST, RSA, lambda: pretended)


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
        backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: replace(mine, blob=damaged))

    verify(mine, backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine))


def test_blob_under_another_wrapping_key_is_refused(backend: KeyBackend, mine: WrappedKey) -> None:
    other = backend.make_wrapping_key(label="wrapping")

    with pytest.raises(KeyMismatch):
        backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: replace(mine, wrapping=other))


def test_wrapping_key_of_another_token_is_not_found(backend: KeyBackend, mine: WrappedKey) -> None:
    elsewhere = WrappingKeyRef("pkcs11:token=elsewhere;id=%01;type=secret-key", mine.wrapping.mechanism)

    with pytest.raises(KeyNotFound):
        backend.generate_wrapped(elsewhere, label="agent")
    with pytest.raises(KeyNotFound):
        backend.wrap_anew(mine, elsewhere)


def test_wrapping_key_is_adopted_and_no_other_key(backend: KeyBackend, mine: WrappedKey) -> None:
    signing_key = backend.generate_ec(label="token")

    assert backend.adopt_wrapping_key(mine.wrapping.uri) == mine.wrapping
    with pytest.raises(KeyNotFound):
        backend.adopt_wrapping_key(signing_key.uri)


def test_wrapped_keys_sign_only_digests_by_rsa(backend: KeyBackend, mine: WrappedKey) -> None:
    with pytest.raises(ValueError, match="RSA"):
        backend.sign_wrapped(mine.key, DIGEST, SignatureAlgorithm.ECDSA_SHA256, lambda: mine)
    with pytest.raises(ValueError, match="octets"):
        backend.sign_wrapped(mine.key, b"short", RSA, lambda: mine)


def test_more_keys_than_stay_unwrapped_sign_in_threads(
    backend: KeyBackend, mine: WrappedKey, theirs: WrappedKey
) -> None:
    keys = [_renamed(one) for one in (mine, theirs) for _ in range(MOST_UNWRAPPED)]

    def sign(wrapped: WrappedKey) -> None:
        verify(wrapped, backend.sign_wrapped(wrapped.key, DIGEST, RSA, lambda: wrapped))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sign, keys * 3))


def test_forked_child_unwraps_for_itself(backend: KeyBackend, mine: WrappedKey) -> None:
    expected = backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine)

    child = os.fork()
    if child == 0:
        is_same = backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine) == expected
        os._exit(0 if is_same else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend.sign_wrapped(mine.key, DIGEST, RSA, lambda: mine) == expected
