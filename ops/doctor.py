"""The doctor: checks of the service and its dependencies, and the repairs that need no decision."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import Error, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Min
from django.template.defaultfilters import filesizeformat
from redis.exceptions import RedisError

from auditlog import guards
from auditlog.errors import LogKeysMissing
from auditlog.proving.proofs import log_state
from auditlog.sealing import keys as log_keys, sealer, tree
from auditlog.verifying import last_verified
from auditlog.vocabulary import Actor
from certificates.errors import AuthorityMissing
from certificates.issuing import issuance, key_pool, wrapped_keys
from certificates.lists import publication
from certificates.models import CertificateAuthority, Issuance, IssuanceState, RevocationList, WrappingKey
from compliance.core import environments, tasks
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.core.wording import counted
from compliance.keys.base import KeyStorage
from compliance.keys.registry import backend_for
from compliance.keys.uri import InvalidUri
from compliance.stores import redis, sql, wakeups
from events import checks as event_checks, partitions
from events.archiving import archives, changes
from events.errors import ArchivesUnavailable
from events.streaming import sending
from ops import heartbeat, key_inventory
from ops.privileges import role_audit
from signals.models import Stream
from webhooks.models import Delivery

_DATABASE: Final = """
SELECT current_setting('server_version'), pg_size_pretty(pg_database_size(current_database())),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')
"""
ACTOR: Final = Actor.system("doctor")
CA_WARNING: Final = timedelta(days=30)
DELIVERY_LATE: Final = timedelta(seconds=30)
MOST_COUNTED: Final = 10_000
"""Of deliveries that are due, so many are looked at."""
PARTITIONS_AHEAD: Final = timedelta(days=1)
QUORUM_LATE: Final = timedelta(minutes=5)
SEALING_LATE: Final = timedelta(seconds=60)
STREAM_LATE: Final = timedelta(minutes=15)


@dataclass(frozen=True)
class Seen:
    """What a check saw: a `problem`, or `detail` if there is none; its `remedy` replaces the check's."""

    problem: str = ""
    detail: str = "ok"
    remedy: str = ""


@dataclass(frozen=True)
class Check:
    """A check; `repair` does what is safe beside a running service, and describes what it did."""

    name: str
    look: Callable[[datetime], Seen]
    remedy: str = ""
    repair: Callable[[datetime], str] | None = None


@dataclass(frozen=True)
class Finding:
    """The result of one check. `is_down`: a dependency did not answer; `fixed`: what the repair did.

    A check that could not look without Redis is no problem of its own: `ok` and `is_down`.
    """

    environment: str
    check: str
    ok: bool
    detail: str
    remedy: str = ""
    fixed: str = ""
    is_down: bool = False

    def line(self) -> str:
        """Return the finding for a terminal, with its remedy below it."""
        mark = ("·" if self.is_down else "✓") if self.ok else "✗"
        repaired = f" ({self.fixed})" if self.fixed else ""
        line = f"{mark} {self.environment:<4}  {self.check:<24}{self.detail}{repaired}"
        return line if self.ok else f"{line}\n        → {self.remedy}"


def examine(
    *, chosen: list[Environment], fix: bool, now: datetime, only: Collection[str] | None = None
) -> list[Finding]:
    """Run all checks, those of an environment for each one chosen; `fix`: repair, then check again.

    `only`: the names of the checks to run; None for all.
    """
    shared, own = (
        [each for each in checks if only is None or each.name in only]
        for checks in (SHARED_CHECKS, ENVIRONMENT_CHECKS)
    )
    with environments.use(chosen[0]):
        found = [run(check, "all", fix=fix, now=now) for check in shared]
    for environment in chosen:
        with environments.use(environment):
            found += [run(check, environment.value, fix=fix, now=now) for check in own]
    return found


def run(check: Check, environment: str, *, fix: bool, now: datetime) -> Finding:
    """Run one check; a check that fails is a finding, so that the others still run."""
    fixed = ""
    try:
        seen = check.look(now)
        if seen.problem and fix and check.repair is not None:
            fixed = check.repair(now)
            seen = check.look(now)
    except (Error, RedisError, ServiceError, OSError) as error:
        if isinstance(error, RedisError) and check.look is not redis_answers:
            return Finding(environment, check.name, True, "unknown without Redis", is_down=True)
        detail = error.message if isinstance(error, ServiceError) else type(error).__name__
        return Finding(environment, check.name, False, detail, check.remedy, is_down=True)
    remedy = (seen.remedy or check.remedy) if seen.problem else ""
    return Finding(environment, check.name, not seen.problem, seen.problem or seen.detail, remedy, fixed)


def redis_answers(now: datetime) -> Seen:
    found = redis.client().info()
    name, version = found.get("server_name", "redis"), found.get("valkey_version", found["redis_version"])
    used = f"{filesizeformat(found['used_memory'])}, {counted(found['connected_clients'], 'client')}"
    return Seen(detail=f"{name} {version}, {used}")


def workers_alive(now: datetime) -> Seen:
    age = heartbeat.age(now=now)
    if age is None:
        return Seen("no heartbeat: beat or all workers are down, or have just started")
    told = f"the last heartbeat is {age.seconds} s old"
    if age > heartbeat.LATE:
        return Seen(told)
    sent_at = tasks.oldest_waiting()
    if sent_at is not None and now - sent_at > heartbeat.LATE:
        since = f"a task waits for a worker since {sent_at:%H:%M:%S} UTC"
        return Seen(f"{since}: the worker or the urgent worker is down")
    return Seen(detail=f"{told}, {counted(tasks.waiting(), 'message')} waiting")


def deliveries_sent(now: datetime) -> Seen:
    if not wakeups.is_alive(wakeups.WEBHOOKS):
        return Seen("no webhook sender runs")
    late = Delivery.objects.due(now - DELIVERY_LATE).order_by()[:MOST_COUNTED]
    oldest = late.aggregate(oldest=Min("next_attempt_at"))["oldest"]
    problem = f"a delivery is due since {oldest:%Y-%m-%d %H:%M:%S} UTC" if oldest else ""
    return Seen(problem, "no delivery is late")


def stream_keeps_up(now: datetime) -> Seen:
    late = [
        f"{each.name} is behind since {each.caught_up_at:%Y-%m-%d %H:%M} UTC: {each.problem or 'no task ran'}"
        for each in sending.positions()
        if now - each.caught_up_at > STREAM_LATE
    ]
    return Seen("; ".join(late))


def database_answers(now: datetime) -> Seen:
    ((version, size, used, most),) = sql.query(_DATABASE)
    return Seen(detail=f"PostgreSQL {version}, {size}, {used} of {most} connections")


def migrations_applied(now: datetime) -> Seen:
    executor = MigrationExecutor(connections[environments.current().alias])
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return Seen(f"{len(waiting)} migrations are not applied" if waiting else "", "no migration waits")


def sealing_keeps_up(now: datetime) -> Seen:
    backlog = tree.backlog()
    if backlog.oldest is not None and backlog.oldest <= now - SEALING_LATE:
        return Seen(
            f"{backlog.unsealed} entries wait to be sealed, {backlog.unsigned} to be signed,"
            f" the oldest since {backlog.oldest:%Y-%m-%d %H:%M}"
        )
    newest = tree.latest_checkpoint()
    if newest is None:
        return Seen(detail="nothing is sealed yet")
    last = f"the last on {newest.signed_at:%Y-%m-%d %H:%M} UTC"
    return Seen(detail=f"{newest.size:,} entries are sealed and signed, {last}")


def log_verified(now: datetime) -> Seen:
    if problem := last_verified.problem(now):
        return Seen(problem)
    last = last_verified.read()
    if last is None:
        return Seen(detail="nothing is verified yet; the log is new")
    moment = f"{last.verified_at:%Y-%m-%d %H:%M} UTC"
    return Seen(detail=f"{last.checkpoint.size:,} entries verified on {moment}")


def seal_and_sign(now: datetime) -> str:
    sealed = sealer.seal_all()
    sealer.sign_head(now=now)
    return f"{sealed} entries sealed"


def hsm_answers(now: datetime) -> Seen:
    backend_for(environments.current()).check()
    return Seen()


def log_is_signed(now: datetime) -> Seen:
    try:
        log_keys.signing_keys(now)
    except LogKeysMissing as error:
        return Seen(error.message)
    return Seen()


def log_is_witnessed(now: datetime) -> Seen:
    state = log_state(now=now)
    problems = [f"{each.name}: {each.problem}" for each in state.witnesses if each.contradicts]
    if state.policy_problem:
        problems.append(state.policy_problem)
    elif state.missing_since is not None and now - state.missing_since > QUORUM_LATE:
        problems.append(f"not enough cosignatures since {state.missing_since:%Y-%m-%d %H:%M}")
    return Seen("; ".join(problems))


def authorities_valid(now: datetime) -> Seen:
    try:
        CertificateAuthority.objects.issuing()
    except AuthorityMissing as error:
        return Seen(error.message)
    found = list(CertificateAuthority.objects.in_service())
    first = min(authority.not_after for authority in found)
    ending = (
        f"{authority.common_name} ends on {authority.not_after:%Y-%m-%d}"
        for authority in found
        if authority.not_after < now + CA_WARNING
    )
    return Seen("; ".join(ending), f"{counted(len(found), 'CA')}, the first ends on {first:%Y-%m-%d}")


def lists_fresh(now: datetime) -> Seen:
    stale, ends = [], []
    for authority in CertificateAuthority.objects.publishing(now):
        newest = RevocationList.objects.newest_of(authority)
        if newest is None:
            stale.append(f"{authority.common_name} has no list")
            continue
        ends.append(newest.next_update)
        if newest.next_update <= now:
            stale.append(f"the list of {authority.common_name} ended at {newest.next_update:%Y-%m-%d %H:%M}")
    first = f", the first until {min(ends):%Y-%m-%d %H:%M} UTC" if ends else ""
    return Seen("; ".join(stale), f"{counted(len(ends), 'list')}{first}")


def pool_filled(now: datetime) -> Seen:
    waiting, wanted = key_pool.waiting(), settings.KEY_POOL_SIZE
    told = f"{waiting} of {wanted} keys"
    return Seen(f"the pool holds {told}" if waiting < wanted / 2 else "", told)


def partitions_ahead(now: datetime) -> Seen:
    listed = changes.listed()
    ends = [partition.end for partition in listed if partition.start <= now + PARTITIONS_AHEAD]
    if not ends or max(ends) <= now + PARTITIONS_AHEAD:
        return Seen("no partition of events for tomorrow")
    waiting = partitions.default_rows()
    problem = f"{waiting} rows in the default partition" if waiting else ""
    return Seen(problem, f"partitions until {max(one.end for one in listed):%Y-%m-%d}")


def make_partitions(now: datetime) -> str:
    made = partitions.maintain(actor=ACTOR, now=now)
    return f"{len(made.made)} partitions made, {made.moved_rows} rows moved"


def archives_writable(now: datetime) -> Seen:
    try:
        archives.folder()
    except ArchivesUnavailable as error:
        return Seen(error.message)
    return Seen()


def issuances_settled(now: datetime) -> Seen:
    before = now - 2 * issuance.UNFINISHED_AFTER
    count = Issuance.objects.filter(state=IssuanceState.STARTED, created_at__lt=before).count()
    return Seen(f"{count} issuances were never finished" if count else "", "all issuances are finished")


def keys_agree(now: datetime) -> Seen:
    try:
        tokens = key_inventory.reconcile(now=now)
    except InvalidUri as error:
        return Seen(f"a row names a key by what is no PKCS#11 URI: {error}")
    orphans = sum(len(token.orphans) for token in tokens)
    missing = [uri for token in tokens for uri in token.missing]
    problems = [f"{orphans} keys that no row names"] if orphans else []
    problems += [f"{len(missing)} keys in use are gone, {missing[0]} among them"] if missing else []
    return Seen("; ".join(problems), "each key has its row, and each row its key")


def destroy_orphans(now: datetime) -> str:
    orphans = [key for token in key_inventory.reconcile(now=now) for key in token.orphans]
    return f"{key_inventory.destroy_orphans(orphans=orphans, actor=ACTOR, now=now)} keys destroyed"


def keys_wrapped(now: datetime) -> Seen:
    problems = []
    if key_pool.storage() is KeyStorage.WRAPPED and not WrappingKey.objects.filter(retired_at=None).exists():
        problems.append("there is no wrapping key")
    if count := wrapped_keys.waiting().count():
        problems.append(f"{count} keys wait to be wrapped anew")
    if count := sum(map(len, wrapped_keys.unnamed(now=now - key_inventory.GRACE))):
        problems.append(f"{count} wrapped keys that nothing can use")
    return Seen("; ".join(problems))


def wrap_keys(now: datetime) -> str:
    deleted = wrapped_keys.delete_unnamed(now=now)
    return f"{wrapped_keys.wrap_waiting()} keys wrapped anew, {deleted} deleted"


CA_REMEDY: Final = "manage.py ca_init, or a new authority in time"
MIGRATE_BOTH: Final = "manage.py migrate, and migrate --database test"
WORKER_REMEDY: Final = "start a worker and beat; read their logs"
SHARED_CHECKS: Final = (
    Check("redis", redis_answers, "start Redis, or correct REDIS_URL"),
    Check("workers and beat", workers_alive, WORKER_REMEDY),
    Check("archives", archives_writable, "make the folder EVENT_ARCHIVE_DIR for the workers' user"),
    Check("people", lambda now: Seen(role_audit.people_guarded()), role_audit.PEOPLE_REMEDY),
    Check("retention", lambda now: Seen(event_checks.retention_too_short()), "raise EVENT_RETENTION_DAYS"),
)
ENVIRONMENT_CHECKS: Final = (
    Check("database", database_answers, "start PostgreSQL, or correct DATABASE_URL and TEST_DATABASE_URL"),
    Check("migrations", migrations_applied, MIGRATE_BOTH),
    Check("database role", lambda now: Seen(role_audit.role_is_limited()), role_audit.REMEDY),
    Check("auditor's role", lambda now: Seen(role_audit.auditor_is_in_use()), role_audit.AUDITOR_REMEDY),
    Check("privileges", lambda now: Seen(role_audit.privileges_as_listed()), f"{MIGRATE_BOTH}, as the owner"),
    Check("audit log", lambda now: Seen(role_audit.audit_log_guarded()), guards.REMEDY),
    Check("audit log key", log_is_signed, "manage.py audit_key_rotate"),
    Check(
        "audit log witnesses",
        log_is_witnessed,
        "see Tree and witnesses in the console; if a witness contradicts, change nothing, run audit_verify",
    ),
    Check("audit log sealing", sealing_keeps_up, WORKER_REMEDY, seal_and_sign),
    Check(
        "audit log verified",
        log_verified,
        "set AUDIT_VERIFIED_FILE and run manage.py audit_verify every week; docs/audit-log.md",
    ),
    Check("webhook senders", deliveries_sent, "start manage.py webhook_sender; see its log"),
    Check(
        "signal senders",
        lambda now: Seen(
            "no signal sender runs"
            if Stream.objects.exists() and not wakeups.is_alive(wakeups.SIGNALS)
            else ""
        ),
        "start manage.py signal_sender; see its log",
    ),
    Check("stream", stream_keeps_up, "see what the receiver says, and STREAM_* in docs/settings.md"),
    Check("hsm", hsm_answers, "read the log for the reason; see docs/hsm.md"),
    Check(
        "hsm parts",
        lambda now: Seen("; ".join(backend_for(environments.current()).problems())),
        "see docs/hsm.md: start key hosts, restore tokens or make shards",
    ),
    Check("certificate authorities", authorities_valid, CA_REMEDY),
    Check(
        "revocation lists",
        lists_fresh,
        "manage.py crl_generate",
        lambda now: f"{publication.publish_due(actor=ACTOR, now=now)} lists published",
    ),
    Check(
        "key pool",
        pool_filled,
        "manage.py key_pool_fill",
        lambda now: f"{key_pool.fill(now=now, seconds=key_pool.TURN_SECONDS)} keys made",
    ),
    Check("partitions", partitions_ahead, "manage.py partition_maintain", make_partitions),
    Check(
        "issuances",
        issuances_settled,
        "doctor --fix",
        lambda now: f"{issuance.settle(now=now)} issuances settled",
    ),
    Check("wrapped keys", keys_wrapped, "manage.py ca_init, or wrapping_key_rotate --resume", wrap_keys),
    Check(
        "keys",
        keys_agree,
        "see key_reconcile. Orphans: doctor --fix destroys agents' keys, key_reconcile --destroy others. "
        "A missing key: restore its token, or revoke and certify anew",
        destroy_orphans,
    ),
)
