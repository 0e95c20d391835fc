"""`python -m bench.pki.list_child WHAT …`: one process of the service, measured alone; prints JSON."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from cryptography.hazmat.primitives import hashes  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: E402

from agents import services as agents  # noqa: E402
from agents.services import AgentRegistration  # noqa: E402
from auditlog.vocabulary import Actor  # noqa: E402
from bench.harness.stats import percentile  # noqa: E402
from certificates import services  # noqa: E402
from certificates.models import CertificateAuthority  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.stores import sql  # noqa: E402

ACTOR = Actor.system("bench")
SIGN_SECONDS = 2.0
_READ = (
    "COPY (SELECT crl_entry FROM certificates_certificate WHERE status = 'revoked') TO STDOUT (FORMAT BINARY)"
)
Figures = dict[str, float]


def publish() -> Figures:
    """The list of all that is revoked: read, put together, signed and stored."""
    authority = CertificateAuthority.objects.issuing()
    began = time.perf_counter()
    made = services.publish(authority_id=authority.id, actor=ACTOR, now=now())
    seconds = time.perf_counter() - began
    if made is None:
        raise SystemExit("no list was due")
    return {
        "seconds": seconds,
        "peak_mb": _peak_mb(),
        "size_mb": made.size / 1e6,
        "entries": made.entry_count,
    }


def read() -> Figures:
    """What no list can do without: its entries read from the database, and hashed."""
    began, digest = time.perf_counter(), hashlib.sha256()
    with environments.atomic():
        sql.execute("SET LOCAL statement_timeout = 0")
        with sql.driver_cursor() as cursor, cursor.copy(_READ) as copy:
            for piece in copy:
                digest.update(piece)
    return {"seconds": time.perf_counter() - began}


def issue(tenant_id: str, count: str) -> Figures:
    """Certificates issued one after the other, with keys of the pool, to agents that are there already."""
    tenant = UUID(tenant_id)
    made = [
        agents.register(
            tenant_id=tenant,
            registration=AgentRegistration(name=f"bench-{number}", model_hash="sha256:9f86d0"),
            actor=ACTOR,
            now=now(),
        )
        for number in range(int(count) + 1)
    ]
    times = []
    for agent in made:
        began = time.perf_counter()
        services.issue(tenant_id=tenant, agent_id=agent.id, actor=ACTOR, now=now())
        times.append(time.perf_counter() - began)
    return {"seconds": sum(times[1:]), "p50_ms": percentile(sorted(times[1:]), 0.5) * 1e3}


def sign() -> Figures:
    """Signatures a second with a key in memory, of the size that CAs have here."""
    key = rsa.generate_private_key(65537, 3072)
    count, end = 0, time.perf_counter() + SIGN_SECONDS
    while time.perf_counter() < end:
        key.sign(b"x", padding.PKCS1v15(), hashes.SHA256())
        count += 1
    return {"rate": count / SIGN_SECONDS}


def _peak_mb() -> float:
    """Not `ru_maxrss`, which begins with what the parent had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


WHAT: dict[str, Callable[..., Figures]] = {"publish": publish, "read": read, "issue": issue, "sign": sign}

if __name__ == "__main__":
    with environments.use(Environment.LIVE):
        json.dump(WHAT[sys.argv[1]](*sys.argv[2:]), sys.stdout)
