"""The doctor: checks of the service and its dependencies, and the repairs that need no decision."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import Error, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Min
from redis.exceptions import RedisError

from auditlog import guards
from auditlog.errors import LogKeysMissing
from auditlog.proving.state import log_state
from auditlog.sealing import keys as log_keys
from auditlog.sealing import sealer, tree
from auditlog.verifying import last_verified
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.errors import AuthorityMissing
from certificates.issuing import key_pool, unfinished, wrapped_keys
from certificates.key_records import WrappingKey
from certificates.models import CertificateAuthority, Issuance, IssuanceState, RevocationList
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.keys import KeyStorage, backend_for
from compliance.keys.uri import InvalidUri
from compliance.ops import heartbeat, key_inventory
from compliance.ops.privileges import role_audit
from compliance.people import guards as people_guards
from compliance.signals import wakeup as signals_wakeup
from compliance.signals.models import Stream
from compliance.stores import redis, sql
from events import checks as event_checks
from events import partitions
from events.archiving import archives
from events.errors import ArchivesUnavailable
from webhooks.models import Delivery
from webhooks.sending import wakeup

ACTOR: Final = Actor.system("doctor")
CA_WARNING: Final = timedelta(days=30)
DELIVERY_LATE: Final = timedelta(seconds=30)
MOST_COUNTED: Final = 10_000
"""Of deliveries that are due, so many are looked at."""
PARTITIONS_AHEAD: Final = timedelta(days=1)
QUORUM_LATE: Final = timedelta(minutes=5)
SEALING_LATE: Final = timedelta(seconds=60)


@dataclass(frozen=True)
class Check:
    """A check: `problem` describes what is wrong, or returns an empty text.

    `repair` does what is safe beside a running service, and describes what it did.
    """

    name: str
    problem: Callable[[datetime], str]
    remedy: str
    repair: Callable[[datetime], str] | None = None


@dataclass(frozen=True)
class Finding:
    """The result of one check. `is_down`: a dependency did not answer; `fixed`: what the repair did."""

    environment: str
    check: str
    ok: bool
    detail: str
    remedy: str = ""
    fixed: str = ""
    is_down: bool = False

    def line(self) -> str:
        """Return the finding for a terminal, with its remedy below it."""
        mark, repaired = "✓" if self.ok else "✗", f" ({self.fixed})" if self.fixed else ""
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
        found = [_run(check, "all", fix=fix, now=now) for check in shared]
    for environment in chosen:
        with environments.use(environment):
            found += [_run(check, environment.value, fix=fix, now=now) for check in own]
    return found


def _run(check: Check, environment: str, *, fix: bool, now: datetime) -> Finding:
    """Run one check; a check that fails is a finding, so that the others still run."""
    fixed = ""
    try:
        problem = check.problem(now)
        if problem and fix and check.repair is not None:
            fixed = check.repair(now)
            problem = check.problem(now)
    except (Error, RedisError, ServiceError, OSError) as error:
        detail = error.message if isinstance(error, ServiceError) else type(error).__name__
        return Finding(environment, check.name, False, detail, check.remedy, is_down=True)
    remedy = check.remedy if problem else ""
    return Finding(environment, check.name, not problem, problem or "ok", remedy, fixed)


def redis_answers(now: datetime) -> str:
    redis.ping()
    return ""


def workers_alive(now: datetime) -> str:
    age = heartbeat.age(now=now)
    if age is None:
        return "no heartbeat: beat or all workers are down, or have just started"
    return f"the last heartbeat is {age.seconds} s old" if age > heartbeat.LATE else ""


def deliveries_sent(now: datetime) -> str:
    if not wakeup.is_sender_alive():
        return "no webhook sender runs"
    late = Delivery.objects.due(now - DELIVERY_LATE).order_by()[:MOST_COUNTED]
    oldest = late.aggregate(oldest=Min("next_attempt_at"))["oldest"]
    return f"a delivery is due since {oldest:%Y-%m-%d %H:%M:%S} UTC" if oldest else ""


def signals_sent(now: datetime) -> str:
    if not Stream.objects.exists():
        return ""
    return "" if signals_wakeup.is_sender_alive() else "no signal sender runs"


def database_answers(now: datetime) -> str:
    sql.query("SELECT 1")
    return ""


def migrations_applied(now: datetime) -> str:
    executor = MigrationExecutor(connections[environments.current().alias])
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(waiting)} migrations are not applied" if waiting else ""


def sealing_keeps_up(now: datetime) -> str:
    backlog = tree.backlog()
    if backlog.oldest is None or backlog.oldest > now - SEALING_LATE:
        return ""
    return (
        f"{backlog.unsealed} entries wait to be sealed, {backlog.unsigned} to be signed,"
        f" the oldest since {backlog.oldest:%Y-%m-%d %H:%M}"
    )


def seal_and_sign(now: datetime) -> str:
    sealed = sealer.seal_all()
    sealer.sign_head(now=now)
    return f"{sealed} entries sealed"


def hsm_answers(now: datetime) -> str:
    backend_for(environments.current()).check()
    return ""


def hsm_is_complete(now: datetime) -> str:
    return "; ".join(backend_for(environments.current()).problems())


def log_is_signed(now: datetime) -> str:
    try:
        log_keys.signing_keys(now)
    except LogKeysMissing as error:
        return error.message
    return ""


def log_is_witnessed(now: datetime) -> str:
    state = log_state(now=now)
    problems = [f"{each.name}: {each.problem}" for each in state.witnesses if each.contradicts]
    if state.policy_problem:
        problems.append(state.policy_problem)
    elif state.missing_since is not None and now - state.missing_since > QUORUM_LATE:
        problems.append(f"not enough cosignatures since {state.missing_since:%Y-%m-%d %H:%M}")
    return "; ".join(problems)


def authorities_valid(now: datetime) -> str:
    try:
        CertificateAuthority.objects.issuing()
    except AuthorityMissing as error:
        return error.message
    return "; ".join(
        f"{authority.common_name} ends on {authority.not_after:%Y-%m-%d}"
        for authority in CertificateAuthority.objects.in_service()
        if authority.not_after < now + CA_WARNING
    )


def lists_fresh(now: datetime) -> str:
    stale = []
    authorities = list(CertificateAuthority.objects.publishing(now))
    found = RevocationList.objects.newest_of_each(authorities)
    for authority in authorities:
        newest = found.get(authority.pk)
        if newest is None:
            stale.append(f"{authority.common_name} has no list")
        elif newest.next_update <= now:
            stale.append(f"the list of {authority.common_name} ended at {newest.next_update:%Y-%m-%d %H:%M}")
    return "; ".join(stale)


def publish_lists(now: datetime) -> str:
    return f"{certificates.publish_due(actor=ACTOR, now=now)} lists published"


def pool_filled(now: datetime) -> str:
    waiting, wanted = key_pool.waiting(), key_pool.wanted()
    return f"the pool holds {waiting} of {wanted} keys" if waiting < wanted / 2 else ""


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


def archives_writable(now: datetime) -> str:
    try:
        archives.folder()
    except ArchivesUnavailable as error:
        return error.message
    return ""


def issuances_settled(now: datetime) -> str:
    before = now - 2 * unfinished.UNFINISHED_AFTER
    count = Issuance.objects.filter(state=IssuanceState.STARTED, created_at__lt=before).count()
    return f"{count} issuances were never finished" if count else ""


def settle_issuances(now: datetime) -> str:
    return f"{unfinished.settle(now=now)} issuances settled"


def keys_agree(now: datetime) -> str:
    try:
        tokens = key_inventory.reconcile(now=now)
    except InvalidUri as error:
        return f"a row names a key by what is no PKCS#11 URI: {error}"
    orphans = sum(len(token.orphans) for token in tokens)
    missing = [uri for token in tokens for uri in token.missing]
    problems = [f"{orphans} keys that no row names"] if orphans else []
    problems += [f"{len(missing)} keys in use are gone, {missing[0]} among them"] if missing else []
    return "; ".join(problems)


def destroy_orphans(now: datetime) -> str:
    orphans = [key for token in key_inventory.reconcile(now=now) for key in token.orphans]
    return f"{key_inventory.destroy_orphans(orphans=orphans, actor=ACTOR, now=now)} keys destroyed"


def keys_wrapped(now: datetime) -> str:
    problems = []
    if key_pool.storage() is KeyStorage.WRAPPED and not WrappingKey.objects.filter(retired_at=None).exists():
        problems.append("there is no wrapping key")
    if count := wrapped_keys.waiting().count():
        problems.append(f"{count} keys wait to be wrapped anew")
    if count := sum(map(len, wrapped_keys.unnamed(now=now - key_inventory.GRACE))):
        problems.append(f"{count} wrapped keys that nothing can use")
    return "; ".join(problems)


def wrap_keys(now: datetime) -> str:
    deleted = wrapped_keys.delete_unnamed(now=now)
    return f"{wrapped_keys.wrap_waiting()} keys wrapped anew, {deleted} deleted"


MIGRATE_BOTH: Final = "manage.py migrate, and migrate --database test"
SHARED_CHECKS: Final = (
    Check("redis", redis_answers, "start Redis, or correct REDIS_URL"),
    Check("workers and beat", workers_alive, "start a worker and beat; read their logs"),
    Check("archives", archives_writable, "make the folder EVENT_ARCHIVE_DIR for the workers' user"),
    Check("people", lambda now: role_audit.people_guarded(), people_guards.REMEDY),
    Check("retention", lambda now: event_checks.retention_too_short(), "raise EVENT_RETENTION_DAYS"),
)
ENVIRONMENT_CHECKS: Final = (
    Check("database", database_answers, "start PostgreSQL, or correct DATABASE_URL and TEST_DATABASE_URL"),
    Check("migrations", migrations_applied, MIGRATE_BOTH),
    Check("database role", lambda now: role_audit.role_is_limited(), role_audit.REMEDY),
    Check("auditor's role", lambda now: role_audit.auditor_is_in_use(), role_audit.AUDITOR_REMEDY),
    Check("privileges", lambda now: role_audit.privileges_as_listed(), f"{MIGRATE_BOTH}, as the owner"),
    Check("audit log", lambda now: role_audit.audit_log_guarded(), guards.REMEDY),
    Check("audit log key", log_is_signed, "manage.py audit_key_rotate"),
    Check(
        "audit log witnesses",
        log_is_witnessed,
        "see Tree and witnesses in the console; if a witness contradicts, change nothing, run audit_verify",
    ),
    Check("audit log sealing", sealing_keeps_up, "start a worker and beat; read their logs", seal_and_sign),
    Check(
        "audit log verified",
        last_verified.problem,
        "set AUDIT_VERIFIED_FILE and run manage.py audit_verify every week; docs/audit-log.md",
    ),
    Check(
        "webhook senders",
        deliveries_sent,
        "start manage.py webhook_sender; see its log",
    ),
    Check("signal senders", signals_sent, "start manage.py signal_sender; see its log"),
    Check("hsm", hsm_answers, "read the log for the reason; see docs/hsm.md"),
    Check("hsm parts", hsm_is_complete, "see docs/hsm.md: start key hosts, restore tokens or make shards"),
    Check("certificate authorities", authorities_valid, "manage.py ca_init, or a new authority in time"),
    Check("revocation lists", lists_fresh, "manage.py crl_generate", publish_lists),
    Check("key pool", pool_filled, "manage.py key_pool_fill", fill_pool),
    Check("partitions", partitions_ahead, "manage.py partition_maintain", make_partitions),
    Check("issuances", issuances_settled, "doctor --fix", settle_issuances),
    Check("wrapped keys", keys_wrapped, "manage.py ca_init, or wrapping_key_rotate --resume", wrap_keys),
    Check(
        "keys",
        keys_agree,
        "see key_reconcile. Orphans: doctor --fix destroys agents' keys, key_reconcile --destroy others. "
        "A missing key: restore its token, or revoke and certify anew",
        destroy_orphans,
    ),
)
