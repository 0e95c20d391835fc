"""Backends on the real tokens that the test run provides."""

import os
from pathlib import Path

import pytest

from compliance.keys.base import KeyBackend
from compliance.keys.module import module_at
from compliance.keys.pkcs11_backend import Pkcs11Backend
from compliance.keys.tests.softhsm import PrivateSoftHsm
from compliance.keys.token import TokenConfig


def make_pkcs11_backend() -> KeyBackend:
    """The sandbox's token, as the test run's environment names it."""
    config = TokenConfig(os.environ["PKCS11_TEST_TOKEN"], os.environ["PKCS11_TEST_PIN"])
    return Pkcs11Backend(module_at(os.environ["PKCS11_MODULE"]), [config])


BACKENDS = {"pkcs11": make_pkcs11_backend}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> KeyBackend:
    """Each backend that the service ships; all must pass the contract."""
    return BACKENDS[request.param]()


@pytest.fixture(scope="session")
def pristine_hsm(tmp_path_factory: pytest.TempPathFactory) -> PrivateSoftHsm:
    """Two fresh tokens, to be copied: making them takes a process."""
    return PrivateSoftHsm.create(tmp_path_factory.mktemp("softhsm"), tokens=("alpha", "beta"))


@pytest.fixture
def private_hsm(pristine_hsm: PrivateSoftHsm, tmp_path: Path) -> PrivateSoftHsm:
    """A SoftHSM of this test alone, for child processes that break it."""
    return pristine_hsm.copy_to(tmp_path)
