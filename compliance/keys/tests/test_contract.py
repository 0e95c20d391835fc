"""The contract that every key backend must pass, on the real thing."""

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from compliance.keys.backend import KeyBackend
from compliance.keys.base import MAX_MESSAGE, KeyNotFound, KeyRef, SignatureAlgorithm


def test_rsa_signature_verifies(backend: KeyBackend) -> None:
    key, algorithm = backend.generate_rsa(label="contract"), SignatureAlgorithm.RSA_SHA256

    signature = backend.sign(key.uri, b"payload", algorithm)

    assert isinstance(key.public_key, rsa.RSAPublicKey)
    assert (key.public_key.key_size, key.public_key.public_numbers().e) == (2048, 65537)
    key.public_key.verify(signature, b"payload", padding.PKCS1v15(), hashes.SHA256())
    assert backend.sign_digest(key.uri, hashlib.sha256(b"payload").digest(), algorithm) == signature


def test_ec_signature_verifies_as_der(backend: KeyBackend) -> None:
    key = backend.generate_ec(label="contract")

    signature = backend.sign(key.uri, b"payload", SignatureAlgorithm.ECDSA_SHA256)

    assert isinstance(key.public_key, ec.EllipticCurvePublicKey)
    assert isinstance(key.public_key.curve, ec.SECP256R1)
    key.public_key.verify(signature, b"payload", ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("message", [b"", b"payload", b"x" * MAX_MESSAGE], ids=len)
def test_ed25519_signature_of_the_message_itself_verifies(backend: KeyBackend, message: bytes) -> None:
    key = backend.generate_ed25519(label="contract")

    signature = backend.sign_ed25519(key.uri, message)

    assert len(signature) == 64
    public_key: object = key.public_key
    assert isinstance(public_key, ed25519.Ed25519PublicKey)
    public_key.verify(signature, message)
    assert backend.sign_ed25519(key.uri, message) == signature


def test_message_too_long_for_ed25519_is_an_error_of_the_caller(backend: KeyBackend) -> None:
    key = backend.generate_ed25519(label="contract")

    with pytest.raises(ValueError, match="octets"):
        backend.sign_ed25519(key.uri, b"x" * (MAX_MESSAGE + 1))


def test_digest_of_another_length_is_an_error_of_the_caller(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="contract")

    with pytest.raises(ValueError, match="32 octets"):
        backend.sign_digest(key.uri, b"short", SignatureAlgorithm.RSA_SHA256)


def test_data_of_any_size_is_signed(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="contract")
    data = b"x" * 5_000_000

    signature = backend.sign(key.uri, data, SignatureAlgorithm.RSA_SHA256)

    assert isinstance(key.public_key, rsa.RSAPublicKey)
    key.public_key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    assert backend.sign(key.uri, b"", SignatureAlgorithm.RSA_SHA256)


def test_public_key_is_read_back(backend: KeyBackend) -> None:
    for key in (
        backend.generate_rsa(label="contract"),
        backend.generate_ec(label="contract"),
        backend.generate_ed25519(label="contract"),
    ):
        assert backend.public_key(key.uri) == key.public_key


def test_keys_under_one_label_are_distinct(backend: KeyBackend) -> None:
    first, second = backend.generate_ec(label="same"), backend.generate_ec(label="same")

    assert first.uri != second.uri
    assert first.spki != second.spki
    assert backend.public_key(first.uri) == first.public_key


@pytest.mark.parametrize("label", ["agent;x=1&y", "Größe/名前 %00", "ü" * 200])
def test_odd_labels_are_kept(backend: KeyBackend, label: str) -> None:
    key = backend.generate_ec(label=label)

    listed = backend.list_keys(label)

    assert len(key.uri) <= 2_000
    assert [entry.uri for entry in listed if entry.label == label].count(key.uri) == 1
    assert backend.sign(key.uri, b"payload", SignatureAlgorithm.ECDSA_SHA256)


@pytest.mark.parametrize("kind", ["rsa", "spread", "ec", "ed25519"])
def test_destroyed_key_is_gone(backend: KeyBackend, kind: str) -> None:
    key: KeyRef
    if kind == "ed25519":
        key, sign = backend.generate_ed25519(label="doomed"), backend.sign_ed25519
    elif kind == "ec":
        key = backend.generate_ec(label="doomed")
        sign = partial(backend.sign, algorithm=SignatureAlgorithm.ECDSA_SHA256)
    else:
        key = backend.generate_rsa(label="doomed", spread=kind == "spread")
        sign = partial(backend.sign, algorithm=SignatureAlgorithm.RSA_SHA256)
    sign(key.uri, b"payload")

    backend.destroy(key.uri)

    with pytest.raises(KeyNotFound):
        sign(key.uri, b"payload")
    with pytest.raises(KeyNotFound):
        backend.public_key(key.uri)
    with pytest.raises(KeyNotFound):
        backend.destroy(key.uri)
    assert key.uri not in {entry.uri for entry in backend.list_keys("doomed")}


@pytest.mark.parametrize(
    "uri",
    ["", "arn:aws:kms:eu:1:key/2", "pkcs11:token=elsewhere;id=%00", "pkcs11:token=a;id=%01?pin-value=1234"],
)
def test_uri_of_another_place_is_not_found(backend: KeyBackend, uri: str) -> None:
    with pytest.raises(KeyNotFound):
        backend.sign(uri, b"payload", SignatureAlgorithm.RSA_SHA256)
    with pytest.raises(KeyNotFound):
        backend.sign_ed25519(uri, b"payload")


def test_listing_shows_complete_pairs_by_prefix(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="listed-one")
    backend.generate_rsa(label="other")

    listed = backend.list_keys("listed-")

    assert all(entry.label.startswith("listed-") for entry in listed)
    assert [entry.has_private for entry in listed if entry.uri == key.uri] == [True]
    assert listed == sorted(listed, key=lambda entry: entry.uri)


def test_uri_is_all_that_is_needed_to_find_a_key_again(backend: KeyBackend, another: KeyBackend) -> None:
    keys: list[KeyRef] = [
        backend.generate_rsa(label="again"),
        backend.generate_rsa(label="again", spread=True),
        backend.generate_ec(label="again"),
        backend.generate_ed25519(label="again"),
    ]

    for key in keys:
        assert another.public_key(key.uri) == key.public_key
    assert {key.uri for key in keys} <= {entry.uri for entry in another.list_keys("again")}


def test_key_destroyed_elsewhere_is_not_found_and_others_go_on(
    backend: KeyBackend, another: KeyBackend
) -> None:
    kept, doomed = (backend.generate_rsa(label="elsewhere", spread=True) for _ in range(2))
    for key in (kept, doomed):
        backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256)

    another.destroy(doomed.uri)

    with pytest.raises(KeyNotFound):
        backend.sign(doomed.uri, b"payload", SignatureAlgorithm.RSA_SHA256)
    assert backend.sign(kept.uri, b"payload", SignatureAlgorithm.RSA_SHA256)


def test_whole_key_service_has_no_problems(backend: KeyBackend) -> None:
    backend.check()

    assert backend.problems() == []


def test_forked_child_signs(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="fork", spread=True)
    expected = backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256)

    child = os.fork()
    if child == 0:
        is_same = backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256) == expected
        os._exit(0 if is_same else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256) == expected


@pytest.mark.parametrize("bits", [512, 1024, 2047, 8192])
def test_weak_or_odd_sizes_are_refused(backend: KeyBackend, bits: int) -> None:
    with pytest.raises(ValueError, match="bits"):
        backend.generate_rsa(bits, label="contract")


def test_threads_sign_while_keys_are_generated(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="threads")
    expected = backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256)
    stop = threading.Event()

    def generate() -> int:
        made = 0
        while not stop.is_set():
            backend.destroy(backend.generate_rsa(label="beside").uri)
            made += 1
        return made

    def sign() -> bool:
        return all(
            backend.sign(key.uri, b"payload", SignatureAlgorithm.RSA_SHA256) == expected for _ in range(150)
        )

    with ThreadPoolExecutor(5) as pool:
        generated = pool.submit(generate)
        signers = [pool.submit(sign) for _ in range(4)]
        results = [signer.result() for signer in signers]
        stop.set()

    assert results == [True] * 4
    assert generated.result() > 0
