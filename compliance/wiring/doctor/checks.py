"""The checks: each looks at one thing and says what is wrong with it, or nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from auditlog import guards
from auditlog.vocabulary import Actor
from certificates import key_pool, unfinished
from certificates import services as certificates
from certificates.crl import FULL
from certificates.errors import AuthorityMissing
from certificates.models import CertificateAuthority, Issuance, IssuanceState, PooledKey, RevocationList
from compliance import environments, redis
from compliance.keys import absent_hosts, backend_for
from compliance.wiring import heartbeat, key_inventory, role_audit
from events import partitions

ACTOR: Final = Actor.system("doctor")
CA_WARNING: Final = timedelta(days=30)
PARTITIONS_AHEAD: Final = timedelta(days=1)


@dataclass(frozen=True)
class Check:
    """`look` says what is wrong, or nothing; `repair` does what is safe beside a live service, and tells."""

    name: str
    look: Callable[[datetime], str]
    remedy: str
    repair: Callable[[datetime], str] | None = None


def redis_answers(now: datetime) -> str:
    redis.client().ping()
    return ""


def workers_alive(now: datetime) -> str:
    age = heartbeat.age(now=now)
    if age is None:
        return "no heartbeat: beat or all workers are down, or have just started"
    return f"the last heartbeat is {age.seconds} s old" if age > heartbeat.LATE else ""


def key_hosts_answer(now: datetime) -> str:
    absent = absent_hosts()
    return f"key hosts that don't answer: {', '.join(map(str, absent))}" if absent else ""


def database_answers(now: datetime) -> str:
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def migrations_applied(now: datetime) -> str:
    executor = MigrationExecutor(connections[environments.current().alias])
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(waiting)} migrations are not applied" if waiting else ""


def role_is_limited(now: datetime) -> str:
    told = role_audit.excesses(environments.current().alias)
    return f"the service's role {', '.join(told)}" if told else ""


def privileges_as_listed(now: datetime) -> str:
    alias = environments.current().alias
    return "" if role_audit.excesses(alias) else role_audit.privileges_that_differ(alias)


def audit_log_guarded(now: datetime) -> str:
    return "" if guards.are_in_force() else "triggers of the audit log are missing or disabled"


def hsm_serves(now: datetime) -> str:
    backend_for(environments.current()).check()
    return ""


def shards_there(now: datetime) -> str:
    shards = backend_for(environments.current()).shards()
    present = sum(shards.values())
    if present in (0, len(shards)):
        return ""
    absent = [label for label, is_there in shards.items() if not is_there]
    return f"{len(absent)} of {len(shards)} shards are not there: {', '.join(absent[:5])}"


def authorities_valid(now: datetime) -> str:
    try:
        CertificateAuthority.objects.issuing()
    except AuthorityMissing as error:
        return error.message
    ending = [
        f"{authority.common_name} ends on {authority.not_after:%Y-%m-%d}"
        for authority in CertificateAuthority.objects.in_service()
        if authority.not_after < now + CA_WARNING
    ]
    return "; ".join(ending)


def lists_fresh(now: datetime) -> str:
    stale = []
    for authority in CertificateAuthority.objects.publishing(now):
        newest = RevocationList.objects.filter(authority=authority, scope=FULL).order_by("-number").first()
        if newest is None:
            stale.append(f"{authority.common_name} has no list")
        elif newest.next_update <= now:
            stale.append(f"the list of {authority.common_name} ended at {newest.next_update:%Y-%m-%d %H:%M}")
    return "; ".join(stale)


def publish_lists(now: datetime) -> str:
    return f"{certificates.publish_due(actor=ACTOR, now=now)} lists published"


def pool_filled(now: datetime) -> str:
    waiting, wanted = PooledKey.objects.count(), key_pool.wanted()
    return f"{waiting} of {wanted} keys wait" if waiting < wanted / 2 else ""


def fill_pool(now: datetime) -> str:
    return f"{key_pool.fill(now=now, seconds=key_pool.TURN_SECONDS)} keys made"


def partitions_ahead(now: datetime) -> str:
    ends = [partition.end for partition in partitions.listed() if partition.start <= now + PARTITIONS_AHEAD]
    if not ends or max(ends) <= now + PARTITIONS_AHEAD:
        return "no partition of events for tomorrow"
    waiting = partitions.default_rows()
    return f"{waiting} rows in the default partition" if waiting else ""


def make_partitions(now: datetime) -> str:
    made = partitions.maintain(actor=ACTOR, now=now)
    return f"{len(made.made)} partitions made, {made.moved_rows} rows moved"


def issuances_settled(now: datetime) -> str:
    open_ones = Issuance.objects.filter(
        state=IssuanceState.STARTED, created_at__lt=now - 2 * unfinished.UNFINISHED_AFTER
    )
    count = open_ones.count()
    return f"{count} issuances were never finished" if count else ""


def settle_issuances(now: datetime) -> str:
    return f"{unfinished.settle(now=now)} issuances settled"


def keys_agree(now: datetime) -> str:
    shelves = key_inventory.reconcile(now=now)
    orphans = sum(len(shelf.orphans) for shelf in shelves)
    missing = [uri for shelf in shelves for uri in shelf.missing]
    told = [f"{orphans} keys that nothing names"] if orphans else []
    if missing:
        told.append(f"{len(missing)} keys in force are gone, {missing[0]} for one")
    return "; ".join(told)


def destroy_orphans(now: datetime) -> str:
    orphans = [key for shelf in key_inventory.reconcile(now=now) for key in shelf.orphans]
    return f"{key_inventory.destroy_orphans(orphans=orphans, actor=ACTOR, now=now)} keys destroyed"


SHARED: Final = (
    Check("redis", redis_answers, "start Redis, or correct REDIS_URL"),
    Check("key hosts", key_hosts_answer, "start manage.py key_host; read its log"),
    Check("workers and beat", workers_alive, "start a worker and beat; read their logs"),
)
CHECKS: Final = (
    Check("database", database_answers, "start PostgreSQL, or correct DATABASE_URL and TEST_DATABASE_URL"),
    Check("migrations", migrations_applied, "manage.py migrate, and migrate --database test"),
    Check("database role", role_is_limited, role_audit.REMEDY),
    Check("privileges", privileges_as_listed, "manage.py migrate, and migrate --database test, as the owner"),
    Check("audit log", audit_log_guarded, guards.REMEDY),
    Check("hsm", hsm_serves, "read the log for the reason; see docs/hsm.md"),
    Check(
        "shards",
        shards_there,
        "restore the tokens, or make what never was: PKCS11_SO_PIN=… manage.py ca_init; then restart",
    ),
    Check("certificate authorities", authorities_valid, "manage.py ca_init, or a new authority in time"),
    Check("revocation lists", lists_fresh, "manage.py crl_generate", publish_lists),
    Check("key pool", pool_filled, "manage.py key_pool_fill", fill_pool),
    Check("partitions", partitions_ahead, "manage.py partition_maintain", make_partitions),
    Check("issuances", issuances_settled, "doctor --fix", settle_issuances),
    Check(
        "keys",
        keys_agree,
        "see key_reconcile; doctor --fix destroys agents' keys that nothing names, key_reconcile --destroy "
        "others; for a missing key restore its token, or revoke and certify anew",
        destroy_orphans,
    ),
)
