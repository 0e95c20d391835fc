"""`python -m bench.audit.child TENANT`: processes of the service that write, seal and prove.

Each line of the input is a JSON list, a command and its arguments; the answer is a line of JSON.
"""

import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from multiprocessing.pool import Pool
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from django.db import models  # noqa: E402

from auditlog import services  # noqa: E402
from auditlog.models import AuditEntry  # noqa: E402
from auditlog.proving import proofs  # noqa: E402
from auditlog.sealing import sealer  # noqa: E402
from auditlog.vocabulary import Actor, AuditAction  # noqa: E402
from bench.audit import PLAIN, WRITERS  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.core.identifiers import new_id  # noqa: E402
from compliance.stores import sql  # noqa: E402

TENANT = UUID(sys.argv[1])
ACTOR = Actor.api_key(UUID(int=7))
DESCRIPTION = "Agent payments-reconciliation updated"
METADATA = {"changed": ["version", "metadata"], "version": "2.1.0", "request_id": "0199f2a4-7c1e"}
Committed = tuple[str, float]
"""An entry's id, and the Unix time at which its commit was acknowledged."""


class PlainEntry(models.Model):
    """The columns of an audit entry, in a table without triggers."""

    id = models.UUIDField(primary_key=True, default=new_id)
    tenant_id = models.UUIDField()
    event_type = models.CharField(max_length=64)
    actor_type = models.CharField(max_length=16)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=255)
    description = models.TextField(null=True)  # noqa: DJ001
    affected_id = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        app_label = "auditlog"
        managed = False
        db_table = PLAIN

    def __str__(self) -> str:
        return str(self.id)


def record() -> AuditEntry:
    """One entry in a transaction of its own."""
    with environments.atomic():
        return _recorded()


def _recorded() -> AuditEntry:
    return services.record(
        tenant_id=TENANT,
        action=AuditAction.AGENT_UPDATED,
        affected_id=TENANT,
        description=DESCRIPTION,
        metadata=METADATA,
        actor=ACTOR,
        now=now(),
    )


def insert_plainly() -> None:
    """The same row into a table without triggers, by the same prepared statement."""
    row = PlainEntry(
        tenant_id=TENANT,
        event_type=AuditAction.AGENT_UPDATED,
        actor_type=ACTOR.type,
        actor_kind=ACTOR.kind,
        actor_id=ACTOR.id,
        description=DESCRIPTION,
        affected_id=str(TENANT),
        metadata=METADATA,
        created_at=now(),
    )
    with environments.atomic():
        sql.insert(row)


APPENDS: dict[str, Callable[[], object]] = {"record": record, "plain": insert_plainly}


def append(kinds: list[str], start: float, seconds: float) -> list[float]:
    """Append as fast as one writer can, `seconds` in each way from Unix time `start` on; rows a second."""
    rates = []
    with environments.use(Environment.LIVE):
        sql.connected()
        time.sleep(max(0.0, start - time.time()))
        for number, kind in enumerate(kinds, 1):
            began, count = time.time(), 0
            while time.time() < start + number * seconds:
                APPENDS[kind]()
                count += 1
            rates.append(count / (time.time() - began))
    return rates


def offer(start: float, rate: float, seconds: float) -> list[Committed]:
    """Record `rate` entries a second, each when it is due or as soon as the one before is committed."""
    committed = []
    with environments.use(Environment.LIVE):
        for number in range(round(rate * seconds)):
            time.sleep(max(0.0, start + number / rate - time.time()))
            committed.append((str(record().id), time.time()))
    return committed


class Child:
    """The commands, with a pool of writers behind them."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._held = pool, ExitStack()

    def append(self, kinds: list[str], writers: int, seconds: float) -> list[float]:
        """Rows a second of so many writers at once, in each way in turn."""
        start = time.time() + 0.2
        rates = self._pool.starmap(append, [(kinds, start, seconds)] * writers, chunksize=1)
        return [sum(together) for together in zip(*rates, strict=True)]

    def offer(self, rate: float, seconds: float) -> list[Committed]:
        """The writers' entries, `rate` a second in all."""
        gap, start = 1 / rate, time.time() + 0.2
        shares = [(start + number * gap, rate / WRITERS, seconds) for number in range(WRITERS)]
        return list(chain.from_iterable(self._pool.starmap(offer, shares, chunksize=1)))

    def hold(self) -> str:
        """Record an entry and leave its transaction open; its id."""
        self._held.enter_context(environments.atomic())
        return str(_recorded().id)

    def release(self) -> float:
        """Commit that transaction; when that was."""
        self._held.close()
        return time.time()

    def seal(self) -> tuple[int, float]:
        """Seal all that waits, and sign; how many entries, in how many seconds."""
        began = time.perf_counter()
        sealed = sealer.seal_all()
        sealer.sign_head(now=now())
        return sealed, time.perf_counter() - began

    def prove(self, ids: list[str]) -> list[float]:
        """Seconds that each entry's proof took."""
        taken = []
        for entry_id in ids:
            began = time.perf_counter()
            proofs.proof(tenant_id=TENANT, entry_id=entry_id, now=now()).encode()
            taken.append(time.perf_counter() - began)
        return taken


def main() -> None:
    with multiprocessing.get_context("fork").Pool(WRITERS, random.seed) as pool:
        child = Child(pool)
        with environments.use(Environment.LIVE):
            for line in sys.stdin:
                command, *arguments = json.loads(line)
                answer: Any = getattr(child, command)(*arguments)
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
