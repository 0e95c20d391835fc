"""What only a PKCS#11 token can show: attributes, processes, loss of the token, wrong settings."""

import math
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pkcs11 import Attribute, ObjectClass, PKCS11Error

from compliance.core.clock import now
from compliance.keys.backend import KeyBackend
from compliance.keys.base import SignatureAlgorithm
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.module import module_at
from compliance.keys.pkcs11.token import TokenConfig, TokenSession
from compliance.keys.tests.conftest import make_pkcs11_backend, make_unsharded_backend
from compliance.keys.tests.softhsm import PIN, PrivateSoftHsm
from compliance.keys.uri import parse

RSA = SignatureAlgorithm.RSA_SHA256
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


@pytest.fixture
def backend() -> KeyBackend:
    """The contract's other backends have no tokens to look into."""
    return make_pkcs11_backend()


def read_attributes(
    backend: KeyBackend, uri: str, kind: ObjectClass, wanted: tuple[Attribute, ...]
) -> dict[str, Any]:
    """The named attributes that the object has, read from the token."""
    assert isinstance(backend, Pkcs11Backend)
    token = backend._sessions(parse(uri).token)

    def read(session: TokenSession) -> dict[str, Any]:
        found = session.find(kind, parse(uri).id)[0]
        values = {}
        for attribute in wanted:
            try:
                values[attribute.name] = found[attribute]
            except PKCS11Error:
                continue
        return values

    return token.use(read)


@pytest.mark.parametrize("kind", ["rsa", "ec", "ed25519"])
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
    token.use(lambda session: session.find(ObjectClass.PRIVATE_KEY, parse(key.uri).id)[0].destroy())

    torn = [entry for entry in backend.list_keys("torn") if entry.uri == key.uri]

    assert [(entry.has_private, entry.has_public) for entry in torn] == [(False, True)]
    backend.destroy(key.uri)
    assert key.uri not in {entry.uri for entry in backend.list_keys("torn")}


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
    assert (report["first"]["calls"], report["second"]["calls"]) == (1, 0)
    assert 1 <= report["second"]["retry_after"] <= math.ceil(report["longest_pause"])
    assert report["healed"]["result"] == "ok"


def test_loss_of_a_shard_leaves_the_others_serving(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("shard_lost", str(private_hsm.tokens))

    other = {"alpha-00": "alpha-01", "alpha-01": "alpha-00"}[report["lost"]]
    assert report["refused"]["result"].startswith("KeyServiceUnavailable")
    assert report["again"]["calls"] == 0
    assert report["others"] == [other]
    assert report["signs"] == ["ok"] * 20
    assert report["problems"] == [f"1 of 2 shards are missing: {report['lost']}"]
    assert report["healed"]["result"] == "ok"


def test_key_that_softhsm_overlooks_is_found(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("overlooked")

    assert report["signed"] == ["ok", "ok"]
    assert report["restarts"] == 1


def test_key_read_while_it_was_written_is_read_again(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("half_read", str(private_hsm.tokens))

    assert (report["files"], report["listed"]) == (2, 0)
    assert report["signed"]["result"] == "ok"
    assert report["restarts"] == 1
    assert report["unknown"] == ["KeyNotFound: The key is not in the key service"]
    assert report["restarts_at_end"] < 10  # of twenty look-ups


def test_object_without_an_id_is_not_listed(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("nameless")

    assert report["listed"] == [report["named"]]


def test_killed_generation_leaves_whole_keys_or_nothing(private_hsm: PrivateSoftHsm, tmp_path: Path) -> None:
    for turn in range(3):
        process = private_hsm.start("generate_until_killed", str(tmp_path / f"mark-{turn}"))
        while not (tmp_path / f"mark-{turn}").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.communicate()

    report = private_hsm.run("leftovers")

    assert report["count"] >= 3
    assert report["usable"] == report["dated"] == report["count"]


def test_token_survives_a_process_killed_while_logging_in(private_hsm: PrivateSoftHsm) -> None:
    running = private_hsm.run("record_cut_off", str(private_hsm.tokens))

    assert running["after"]["result"] == running["restarted"]["result"] == "ok"
    assert running["same"]

    for record in private_hsm.tokens.glob("*/token.object"):
        os.truncate(record, 0)

    assert private_hsm.run("sign_with", running["uri"])["result"] == "ok"


def test_copy_of_a_record_follows_the_record(private_hsm: PrivateSoftHsm) -> None:
    record = next(private_hsm.tokens.glob("*/token.object"))
    private_hsm.run("leftovers")
    changed = record.read_bytes() + b"longer"
    record.write_bytes(changed)

    private_hsm.run("leftovers")

    copy = record.with_name("token.object.kept")
    assert copy.read_bytes() == changed
    assert copy.stat().st_mode & 0o077 == 0


def test_spread_key_lies_in_a_shard_without_its_public_half(backend: KeyBackend) -> None:
    key, other = backend.generate_rsa(label="halves", spread=True), backend.generate_ec(label="main")

    stored = [entry for entry in backend.list_keys("halves") if entry.uri == key.uri]

    main = parse(other.uri).token
    assert parse(key.uri).token in {f"{main}-00", f"{main}-01"}
    assert [(entry.has_private, entry.has_public) for entry in stored] == [(True, False)]
    assert backend.public_key(key.uri) == key.public_key


def test_installation_without_shards_keeps_all_in_the_main_token(backend: KeyBackend) -> None:
    unsharded, sharded = make_unsharded_backend(), backend

    key = unsharded.generate_rsa(label="single", spread=True)

    assert parse(key.uri).token == os.environ["PKCS11_TEST_TOKEN"]
    assert sharded.sign(key.uri, b"data", RSA) == unsharded.sign(key.uri, b"data", RSA)


def test_shards_that_were_never_made_are_not_used() -> None:
    config = TokenConfig(os.environ["PKCS11_TEST_TOKEN"], os.environ["PKCS11_TEST_PIN"])
    backend = Pkcs11Backend(module_at(os.environ["PKCS11_MODULE"]), config, shards=4)

    key = backend.generate_rsa(label="some", spread=True)

    main = os.environ["PKCS11_TEST_TOKEN"]
    assert backend.problems() == [f"2 of 4 shards are missing: {main}-02, {main}-03"]
    assert parse(key.uri).token.endswith(("-00", "-01"))


def test_keys_of_a_shard_beyond_the_setting_still_sign(backend: KeyBackend) -> None:
    key = backend.generate_rsa(label="beyond", spread=True)

    assert make_unsharded_backend().sign(key.uri, b"data", RSA)


def test_listing_tells_when_a_key_was_made(backend: KeyBackend) -> None:
    before = now()
    key = backend.generate_ec(label="dated")

    made = [entry.made_at for entry in backend.list_keys("dated") if entry.uri == key.uri]

    assert made[0] is not None
    assert before - timedelta(seconds=1) < made[0] < now() + timedelta(seconds=1)


def test_wrong_pin_is_tried_once_and_logged_without_it(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("wrong_pin", "sesame-sesame")

    assert (
        report["first"]["result"]
        == report["second"]["result"]
        == "KeyServiceNotConfigured: KMS not configured"
    )
    assert (report["first"]["calls"], report["second"]["calls"]) == (1, 0)
    assert report["log"].count("refuses the PIN (PinIncorrect)") == 1
    assert "sesame" not in report["log"]
    assert PIN not in report["log"]


def test_missing_token_is_unavailable(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("missing_token")

    assert report["result"] == "KeyServiceUnavailable: KMS signing service unavailable"
    assert "never-made cannot serve: NoSuchToken" in report["log"]


def test_missing_module_is_not_configured(private_hsm: PrivateSoftHsm) -> None:
    report = private_hsm.run("missing_modules", "", "/nonexistent/module.so", os.path.realpath(__file__))

    assert report["results"] == ["KeyServiceNotConfigured: KMS not configured"] * 3
    assert report["log"].count("PKCS11_MODULE") >= 3
