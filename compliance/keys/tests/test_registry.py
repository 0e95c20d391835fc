"""One backend for each environment, made from settings."""

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from compliance.core.environments import Environment
from compliance.keys import registry
from compliance.keys.base import KeyNotFound, KeyServiceNotConfigured, SignatureAlgorithm


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    registry.reset()
    yield
    registry.reset()


def test_keys_of_one_environment_are_unknown_to_the_other() -> None:
    live, test = registry.backend_for(Environment.LIVE), registry.backend_for(Environment.TEST)
    key = test.generate_ec(label="sandbox")

    with pytest.raises(KeyNotFound):
        live.sign(key.uri, b"payload", SignatureAlgorithm.ECDSA_SHA256)
    assert key.uri not in {entry.uri for entry in live.list_keys("sandbox")}


def test_key_that_is_gone_is_destroyed_without_an_error() -> None:
    live = registry.backend_for(Environment.LIVE)
    key = live.generate_ec(label="ended")

    registry.destroy_if_present(key.uri)
    registry.destroy_if_present(key.uri)

    with pytest.raises(KeyNotFound):
        live.public_key(key.uri)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PKCS11_MODULE", ""), ("PKCS11_TOKENS", {}), ("PKCS11_TOKENS", {"live": {"label": "", "pin": "1234"}})],
)
def test_missing_settings_are_reported_as_not_configured(
    settings: Settings, name: str, value: object
) -> None:
    setattr(settings, name, value)

    with pytest.raises(KeyServiceNotConfigured) as refused:
        registry.backend_for(Environment.LIVE)

    assert refused.value.status == 503
    assert refused.value.message == "KMS not configured"
