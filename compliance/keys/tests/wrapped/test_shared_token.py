"""One token that several key hosts, and processes without hosts, share, as the nodes of a network HSM do."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from compliance.core.identifiers import new_id
from compliance.keys.base import KeyRef, SignatureAlgorithm, WrappedKey
from compliance.keys.hosts.messages import SignUnwrapped
from compliance.keys.tests.conftest import make_pkcs11_backend
from compliance.keys.tests.hosted import running_hosts
from compliance.keys.uri import build, parse

RSA = SignatureAlgorithm.RSA_SHA256
DIGEST = hashlib.sha256(b"payload").digest()
KEYS = 12


def renamed(wrapped: WrappedKey) -> WrappedKey:
    uri = build(replace(parse(wrapped.key.uri), id=new_id().bytes))
    return replace(wrapped, key=KeyRef(uri, wrapped.key.spki))


@pytest.mark.drill
def test_two_hosts_divide_wrapped_keys_and_one_takes_over(tmp_path: Path) -> None:
    here = make_pkcs11_backend()
    wrapped = here.generate_wrapped(here.make_wrapping_key(label="wrapping"), label="agent")
    expected = here.sign_wrapped(wrapped.key, DIGEST, RSA, lambda: wrapped)
    keys = [renamed(wrapped) for _ in range(KEYS)]
    token = os.environ["PKCS11_TEST_TOKEN"]

    def signatures(process: int) -> set[bytes]:
        backend = hosts.backend(token, is_fresh=bool(process))
        return {backend.sign_wrapped(key.key, DIGEST, RSA, lambda key=key: key) for key in keys}  # type: ignore[misc]

    with running_hosts(tmp_path / "hosts", count=2) as hosts:
        assert signatures(0) == signatures(1) == {expected}
        held = [
            sum(
                bool(
                    client.call(SignUnwrapped(hosts.backend(token)._environment, key.key, DIGEST, RSA), bytes)
                )
                for key in keys
            )
            for client in hosts.clients()
        ]
        assert sum(held) == KEYS  # no key in two hosts
        assert min(held) > 0

        hosts.kill(1)

        assert signatures(2) == {expected}


@pytest.mark.drill
def test_key_made_through_one_host_signs_in_another_process(tmp_path: Path) -> None:
    here = make_pkcs11_backend()

    with running_hosts(tmp_path / "hosts", count=2) as hosts:
        behind = hosts.backend(os.environ["PKCS11_TEST_TOKEN"])
        wrapped = behind.generate_wrapped(behind.make_wrapping_key(label="wrapping"), label="agent")
        there = behind.sign_wrapped(wrapped.key, DIGEST, RSA, lambda: wrapped)

    assert here.sign_wrapped(wrapped.key, DIGEST, RSA, lambda: wrapped) == there
