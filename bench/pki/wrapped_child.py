"""`python -m bench.pki.wrapped_child WHAT …`: signing with wrapped and resident keys, as JSON.

One process of the service signs at the level of `sign_octets()`, what every message signature goes through.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import hashes  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding  # noqa: E402
from cryptography.x509.oid import NameOID  # noqa: E402
from django.conf import settings  # noqa: E402

from auditlog.vocabulary import Actor  # noqa: E402
from bench.harness import machine  # noqa: E402
from bench.harness.stats import percentile  # noqa: E402
from certificates.issuing import key_pool, wrapped_keys  # noqa: E402
from certificates.key_records import WrappedAgentKey, WrappingKey  # noqa: E402
from certificates.models import Certificate  # noqa: E402
from certificates.public import messages  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.core.identifiers import new_id  # noqa: E402
from compliance.keys import KeyRef, KeyStorage, backend_for  # noqa: E402
from compliance.keys.base import WrappedKey  # noqa: E402
from compliance.keys.pkcs11.module import module_at  # noqa: E402
from compliance.keys.pkcs11.token import TokenConfig, TokenSessions  # noqa: E402
from compliance.keys.pkcs11.unwrapped import MOST_UNWRAPPED  # noqa: E402
from compliance.keys.pkcs11.wrapping import unwrap  # noqa: E402
from compliance.keys.sharding import main_token  # noqa: E402
from compliance.keys.uri import build, parse  # noqa: E402

ACTOR = Actor.system("bench")
OCTETS = b"payload"
BATCH = 5_000
HOT = MOST_UNWRAPPED // 2
"""Keys that stay unwrapped while others come and go."""
Figures = dict[str, float]


def fill(count: str) -> Figures:
    """Store `count` records: those of one key for each certificate there is, under names of their own."""
    settings.AGENT_KEYS = KeyStorage.WRAPPED.value
    wrapped_keys.ensure(actor=ACTOR, now=now())
    made = [wrapped_keys.read(key_pool.generate(now=now())) for _ in range(4)]
    wrapping = WrappingKey.objects.get(retired_at=None)
    present = WrappedAgentKey.objects.count()
    for start in range(present, int(count), BATCH):
        WrappedAgentKey.objects.bulk_create(
            WrappedAgentKey(
                key_uri=build(replace(parse(one.key.uri), id=new_id().bytes)),
                spki=one.key.spki,
                wrapping_key=wrapping,
                blob=one.blob,
                created_at=now(),
            )
            for one in (made[number % len(made)] for number in range(min(BATCH, int(count) - start)))
        )
    return {"records": WrappedAgentKey.objects.count()}


def sign(samples: str) -> Figures:
    """A process from its start: its first call, signatures with keys of each kind, unwrapping alone.

    Times are in ms, those named `_s` in s.
    """
    began = time.perf_counter()
    backend_for(environments.current()).check()
    checked = time.perf_counter() - began
    wrapped, resident = _wrapped(int(samples)), _resident()
    began = time.perf_counter()
    messages.sign_octets(wrapped[0], OCTETS)
    first = time.perf_counter() - began
    signers: dict[str, list[Certificate]] = {
        "resident": resident[:HOT],
        "hit": wrapped[:HOT],
        "miss": wrapped[HOT:],
    }
    for certificate in (*signers["resident"] * 2, *signers["hit"]):
        messages.sign_octets(certificate, OCTETS)
    found: dict[str, list[float]] = {name: [] for name in signers}
    # By turns, so that a slow moment of the machine hits all of it.
    for number in range(int(samples)):
        for name, certificates in signers.items():
            certificate = certificates[number % len(certificates)]
            found[name].append(_timed(lambda one=certificate: messages.sign_octets(one, OCTETS)))  # type: ignore[misc]
    figures = {"check_s": checked, "first_s": first, "memory_mb": machine.resident_mb(os.getpid())}
    found["unwrapping"] = _unwrapping(signers["miss"])
    for name, seconds in found.items():
        ordered = sorted(seconds)
        figures |= {f"{name}_{share}": percentile(ordered, share / 100) * 1e3 for share in (50, 99)}
    return figures


def _unwrapping(certificates: Sequence[Certificate]) -> list[float]:
    """Seconds in which the module unwraps each key and destroys the object: no miss takes less."""
    label, pin = main_token(environments.current())
    token = TokenSessions(module_at(settings.PKCS11_MODULE), TokenConfig(label, pin))
    named = (KeyRef(one.kms_key_arn, wrapped_keys.certified_spki(one)) for one in certificates)
    keys = [wrapped_keys.read(key) for key in named]

    def unwrap_one(key: WrappedKey) -> None:
        token.use(lambda session: unwrap(session, key).destroy())

    return [_timed(partial(unwrap_one, key)) for key in keys]


def _resident() -> list[Certificate]:
    return list(Certificate.objects.filter(key_storage="resident", kms_key_arn__startswith="pkcs11:")[:HOT])


def _wrapped(samples: int) -> list[Certificate]:
    """Return certificates, not stored, of records picked at random."""
    rows = list(WrappedAgentKey.objects.values_list("key_uri", "spki")[: 50 * samples])
    random.Random(1).shuffle(rows)
    pems: dict[bytes, str] = {}
    found = []
    for uri, spki in rows[: samples + HOT]:
        pem = pems.get(bytes(spki)) or pems.setdefault(bytes(spki), _pem(KeyRef(uri, bytes(spki))))
        found.append(Certificate(kms_key_arn=uri, certificate_pem=pem, key_storage="wrapped"))
    return found


def _pem(key: KeyRef) -> str:
    """A certificate of this public key; who signed it does not matter here."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key, x509.random_serial_number())
        .not_valid_before(now())
        .not_valid_after(now() + timedelta(days=1))
    )
    signed = builder.sign(rsa.generate_private_key(65537, 2048), hashes.SHA256())
    return signed.public_bytes(Encoding.PEM).decode()


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    with environments.use(Environment.LIVE):
        sys.stdout.write(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
