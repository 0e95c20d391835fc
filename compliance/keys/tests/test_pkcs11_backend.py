"""What only a PKCS#11 token can show: attributes, processes, loss of the token, wrong settings."""

import os
from pathlib import Path
from typing import Any

import pytest
from pkcs11 import Attribute, ObjectClass, PKCS11Error

from compliance.keys.base import KeyBackend
from compliance.keys.pkcs11_backend import Pkcs11Backend
from compliance.keys.tests.conftest import make_pkcs11_backend
from compliance.keys.tests.softhsm import PIN, PrivateSoftHsm
from compliance.keys.token import Borrowed, TokenConfig
from compliance.keys.uri import parse

USES = (
    Attribute.SIGN,
    Attribute.DECRYPT,
    Attribute.UNWRAP,
    Attribute.DERIVE,
    Attribute.VERIFY,
    Attribute.ENCRYPT,
    Attribute.WRAP,
)
PROTECTION = (
    Attribute.TOKEN,
    Attribute.PRIVATE,
    Attribute.SENSITIVE,
    Attribute.ALWAYS_SENSITIVE,
    Attribute.EXTRACTABLE,
    Attribute.NEVER_EXTRACTABLE,
)


def read_attributes(
    backend: KeyBackend, uri: str, kind: ObjectClass, wanted: tuple[Attribute, ...]
) -> dict[str, Any]:
    """The named attributes that the object has, read from the token."""
    assert isinstance(backend, Pkcs11Backend)
    token = next(iter(backend._tokens.values()))

    def read(borrowed: Borrowed) -> dict[str, Any]:
        found = borrowed.find(kind, parse(uri).id)[0]
        values = {}
        for attribute in wanted:
            try:
                values[attribute.name] = found[attribute]
            except PKCS11Error:
                continue
        return values

    return token.use(read)


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_private_half_is_sealed_and_only_signs(backend: KeyBackend, kind: str) -> None:
    key = getattr(backend, f"generate_{kind}")(label="attributes")

    protection = read_attributes(backend, key.uri, ObjectClass.PRIVATE_KEY, PROTECTION)
    uses = read_attributes(backend, key.uri, ObjectClass.PRIVATE_KEY, USES)

    assert protection == {
        "TOKEN": True,
        "PRIVATE": True,
        "SENSITIVE": True,
        "ALWAYS_SENSITIVE": True,
        "EXTRACTABLE": False,
        "NEVER_EXTRACTABLE": True,
    }
    assert [name for name, allowed in uses.items() if allowed] == ["SIGN"]


def test_public_half_only_verifies(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="attributes")

    uses = read_attributes(backend, key.uri, ObjectClass.PUBLIC_KEY, USES)

    assert [name for name, allowed in uses.items() if allowed] == ["VERIFY"]


def test_private_value_can_not_be_read(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="attributes")

    secret = (Attribute.PRIVATE_EXPONENT, Attribute.PRIME_1, Attribute.PRIME_2)

    assert read_attributes(backend, key.uri, ObjectClass.PRIVATE_KEY, secret) == {}


def test_torn_pair_is_listed_as_incomplete(backend: KeyBackend) -> None:
    key = backend.generate_ec(label="torn")
    assert isinstance(backend, Pkcs11Backend)
    token = next(iter(backend._tokens.values()))
    token.use(lambda borrowed: borrowed.find(ObjectClass.PRIVATE_KEY, parse(key.uri).id)[0].destroy())

    torn = [entry for entry in backend.list_keys("torn") if entry.uri == key.uri]

    assert [(entry.has_private, entry.has_public) for entry in torn] == [(False, True)]
    backend.destroy(key.uri)
    assert key.uri not in {entry.uri for entry in backend.list_keys("torn")}


def test_two_backends_share_the_module_and_the_login() -> None:
    first, second = make_pkcs11_backend(), make_pkcs11_backend()
    key = first.generate_ec(label="shared")

    assert second.public_key(key.uri) == key.public_key


def test_pin_is_not_shown() -> None:
    assert "1234" not in repr(TokenConfig("live", "1234"))


def test_children_of_a_signing_parent_sign(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("fork_while_signing", "10")

    assert report["exits"] == [0] * 10
    assert report["errors"] == []


def test_eight_processes_start_at_once(private_hsm: PrivateSoftHsm, tmp_path: Path) -> None:
    processes = [private_hsm.start("start", str(tmp_path / "go")) for _ in range(8)]

    (tmp_path / "go").touch()
    reports = [private_hsm.finish(process) for process in processes]

    assert [report["result"] for report in reports] == ["ok"] * 8


def test_module_restarts_unnoticed_under_load(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("restart_under_load")

    assert report["errors"] == []
    assert report["epoch"] >= 20


def test_lost_token_is_refused_at_once_and_heals(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("move_token", str(private_hsm.tokens))

    assert report["before"]["result"] == "ok"
    assert report["first"]["result"] == "KeyServiceUnavailable: KMS signing service unavailable"
    assert report["second"]["result"] == report["check"]["result"] == report["first"]["result"]
    assert report["first"]["seconds"] < 2
    assert report["second"]["seconds"] < 0.05
    assert report["healed"]["result"] == "ok"
    assert report["healed"]["seconds"] < 6


def test_loss_of_one_token_leaves_the_other_serving(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("other_token_lost", str(private_hsm.tokens))

    assert report["lost"]["result"].startswith("KeyServiceUnavailable")
    assert report["alpha"] == ["ok"] * 20
    assert report["healed"]["result"] == "ok"


def test_wrong_pin_is_tried_once_and_logged_without_it(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("wrong_pin", "sesame-sesame")

    assert (
        report["first"]["result"]
        == report["second"]["result"]
        == "KeyServiceNotConfigured: KMS not configured"
    )
    assert report["second"]["seconds"] < 0.05
    assert report["log"].count("refuses the PIN (PinIncorrect)") == 1
    assert "sesame" not in report["log"]
    assert PIN not in report["log"]


def test_missing_token_is_unavailable(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("missing_token")

    assert report["result"] == "KeyServiceUnavailable: KMS signing service unavailable"
    assert "never-made can't serve: NoSuchToken" in report["log"]


@pytest.mark.parametrize("path", ["", "/nonexistent/module.so", os.path.realpath(__file__)])
def test_missing_module_is_not_configured(private_hsm: PrivateSoftHsm, path: str) -> None:
    report = private_hsm.run("missing_module", path)

    assert report["result"] == "KeyServiceNotConfigured: KMS not configured"
    assert "PKCS11_MODULE" in report["log"]
