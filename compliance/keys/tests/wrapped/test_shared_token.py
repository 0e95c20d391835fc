"""One token that several key hosts, and processes without hosts, share, as the nodes of a network HSM do."""

import hashlib
import os
from pathlib import Path

import pytest

from compliance.keys.tests.conftest import make_pkcs11_backend
from compliance.keys.tests.hosted import running_hosts

DIGEST = hashlib.sha256(b"payload").digest()


@pytest.mark.drill
def test_key_made_through_one_host_signs_through_another_and_without_hosts(tmp_path: Path) -> None:
    with running_hosts(tmp_path / "hosts", count=2) as hosts:
        backend = hosts.backend(os.environ["PKCS11_TEST_TOKEN"])
        wrapped = backend.generate_wrapped(backend.make_wrapping_key(label="wrapping"), label="agent")
        expected = backend.sign_wrapped(wrapped, DIGEST)

        hosts.kill(0)

        assert backend.sign_wrapped(wrapped, DIGEST) == expected

    assert make_pkcs11_backend().sign_wrapped(wrapped, DIGEST) == expected
