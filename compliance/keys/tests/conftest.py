"""Backends on the real tokens that the test run provides."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compliance.keys.backend import KeyBackend
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.module import module_at
from compliance.keys.pkcs11.token import TokenConfig
from compliance.keys.tests.hosted import RunningHosts, running_hosts
from compliance.keys.tests.softhsm import PrivateSoftHsm


def make_pkcs11_backend() -> KeyBackend:
    """The sandbox's token, as the test run's environment names it."""
    return _make(shards=2)


def make_unsharded_backend() -> KeyBackend:
    """The same token as an installation without shards has it."""
    return _make(shards=0)


def _make(*, shards: int) -> KeyBackend:
    config = TokenConfig(os.environ["PKCS11_TEST_TOKEN"], os.environ["PKCS11_TEST_PIN"])
    return Pkcs11Backend(module_at(os.environ["PKCS11_MODULE"]), config, shards=shards)


@pytest.fixture(scope="session")
def key_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHosts]:
    """One key host over the tokens of the test run."""
    with running_hosts(tmp_path_factory.mktemp("keys") / "hosts") as hosts:
        yield hosts


@pytest.fixture(params=["pkcs11", "hosted"])
def make_backend(request: pytest.FixtureRequest) -> Callable[[], KeyBackend]:
    """Makes one of the backends that the service ships; all must pass the contract."""
    if request.param == "pkcs11":
        return make_pkcs11_backend
    hosts: RunningHosts = request.getfixturevalue("key_hosts")
    return lambda: hosts.backend(os.environ["PKCS11_TEST_TOKEN"])


@pytest.fixture
def backend(make_backend: Callable[[], KeyBackend]) -> KeyBackend:
    return make_backend()


@pytest.fixture
def another(make_backend: Callable[[], KeyBackend]) -> KeyBackend:
    """A second backend over the same keys, as another process or the next one has it."""
    return make_backend()


@pytest.fixture(scope="session")
def pristine_hsm(tmp_path_factory: pytest.TempPathFactory) -> PrivateSoftHsm:
    """Fresh tokens, to be copied: making them takes a process."""
    tokens = ("alpha", "beta", "alpha-00", "alpha-01")
    return PrivateSoftHsm.create(tmp_path_factory.mktemp("softhsm"), tokens=tokens)


@pytest.fixture
def private_hsm(pristine_hsm: PrivateSoftHsm, tmp_path: Path) -> PrivateSoftHsm:
    """A SoftHSM of this test alone, for child processes that break it."""
    return pristine_hsm.copy_to(tmp_path)
