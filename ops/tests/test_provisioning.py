"""Shards made by `ca_init` with the security officer's PIN, on a real SoftHSM of the test's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from compliance.keys.tests.softhsm import PIN, SO_PIN, PrivateSoftHsm

LABEL = "provisioned"
SHARDS = 3

_SCRIPT = """
import json
import django
django.setup()
from compliance.core.environments import Environment
from compliance.keys.base import SignatureAlgorithm
from compliance.keys.registry import backend_for

backend = backend_for(Environment.LIVE)
counts = [backend.provision(), backend.provision()]
keys, present = [], max(1, counts[0])
# Shards are picked at random: forty picks miss one of three once in three million times.
while len({uri.partition(";")[0] for uri in keys}) < present and len(keys) < 40:
    keys.append(backend.generate_rsa(label="agent", spread=True).uri)
signed = [len(backend.sign(uri, b"x", SignatureAlgorithm.RSA_SHA256)) for uri in keys]
print(json.dumps({"counts": counts, "problems": backend.problems(), "keys": keys, "signed": signed}))
"""


def provisioned(hsm: PrivateSoftHsm, **environ: str) -> dict[str, object]:
    """What a fresh process made and can use."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "compliance.settings",
            "SOFTHSM2_CONF": str(hsm.configuration),
            "PKCS11_LIVE_TOKEN": LABEL,
            "PKCS11_LIVE_PIN": PIN,
            "PKCS11_SHARDS": str(SHARDS),
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_missing_shards_are_made_once_and_used(tmp_path: Path) -> None:
    hsm = PrivateSoftHsm.create(tmp_path, tokens=(LABEL, f"{LABEL}-01"))

    found = provisioned(hsm, PKCS11_SO_PIN=SO_PIN)

    labels = [f"{LABEL}-{number:02}" for number in range(SHARDS)]
    assert found["counts"] == [3, 3]
    assert found["problems"] == []
    keys = found["keys"]
    assert isinstance(keys, list)
    assert {uri.partition("token=")[2].partition(";")[0] for uri in keys} == set(labels)
    assert found["signed"] == [256] * len(keys)
    again = provisioned(hsm, PKCS11_SO_PIN=SO_PIN)
    assert again["counts"] == [3, 3]


def test_without_the_officers_pin_nothing_is_made(tmp_path: Path) -> None:
    hsm = PrivateSoftHsm.create(tmp_path, tokens=(LABEL,))

    found = provisioned(hsm, PKCS11_SO_PIN="")

    assert found["counts"] == [0, 0]
    assert found["problems"] == []
