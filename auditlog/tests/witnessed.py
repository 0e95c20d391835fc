"""A log that grows, and a policy of one witness that runs and one that is never there."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pytest_django.fixtures import Settings

from auditlog.models import SignedHead
from auditlog.sealing import keys
from auditlog.tests.factories import make_entries, seal_and_sign
from auditlog.tests.witness_process import WitnessProcess
from auditlog.tlog.policy import Policy
from compliance.core.clock import now
from compliance.stores import sql

NOBODY = "http://127.0.0.1:9"


def grow(count: int = 1, *, at: datetime | None = None) -> SignedHead:
    """Record entries, seal them and sign the head."""
    make_entries(count, at=at)
    return seal_and_sign(at=at)


def write_policy(witness: WitnessProcess, tmp_path: Path, settings: Settings, *, quorum: str) -> Policy:
    """Set the policy; its quorum is `running`, `gone` or `both`."""
    gone = witness.key.ed25519("gone.example", bytes(range(32)), witness.key.algorithm)
    path = tmp_path / f"policy-{quorum}"
    path.write_text(
        "\n".join(
            [
                *(f"log {key.encode()}" for key in keys.verifier_keys(now=now())),
                f"witness running {witness.key.encode()} {witness.url}",
                f"witness gone {gone.encode()} {NOBODY}",
                "group both all running gone",
                f"quorum {quorum}\n",
            ]
        )
    )
    settings.AUDIT_WITNESS_POLICY = str(path)
    return Policy.parse(path.read_bytes())


@contextmanager
def unguarded(table: str) -> Iterator[None]:
    """Change the table as its owner can, who may switch triggers off."""
    sql.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    sql.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
