"""The checks of a restored installation, those of the doctor that matter then among them.

Some compare the databases with what was kept elsewhere: checkpoints, witnesses, published revocation lists.
Without such evidence a database that is sound in itself cannot be told from one of an earlier moment.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from allauth.mfa.models import Authenticator
from cryptography import x509
from django.conf import settings
from django.db.models import Count, Max, Min, Model

from auditlog.models import AuditEntry, LogKey
from auditlog.sealing.tree import latest_checkpoint
from auditlog.submitting import gathering
from auditlog.submitting.gathering import contradicts
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import Note
from auditlog.verifying.findings import Damage, LogOutcome
from auditlog.verifying.live_log import Demands, verify_log
from certificates.lists.resuming import KeptList, gap, recognized
from certificates.models import CertificateAuthority
from compliance.api.models import IdempotencyRecord
from compliance.core import environments
from compliance.core.encryption import Undecryptable, decrypt
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.core.wording import counted
from ops import doctor
from ops.doctor import Check, Finding, Seen
from ops.restoring import signing
from signals.models import Stream
from tenancy.models import Tenant
from webhooks.models import Delivery, Webhook

ENCRYPTED: Final[tuple[tuple[type[Model], str], ...]] = (
    (Webhook, "secret"),
    (Webhook, "previous_secret"),
    (Stream, "authorization"),
    (Authenticator, "data__secret"),
    (Authenticator, "data__seed"),
    (IdempotencyRecord, "body"),
)
"""Every model and field that holds what `encrypt` returned."""
MOST: Final = 1_000
"""Values of each field that are opened."""


OF_DOCTOR: Final = (
    *("database", "migrations", "database role", "auditor's role", "privileges", "audit log"),
    *("audit log key", "people", "archives", "hsm", "hsm parts", "certificate authorities", "wrapped keys"),
    "keys",
)
SHOWN: Final = 5
PAGE: Final = "docs/backup.md"
ROLLED_BACK: Final = (
    f"entries after this point are missing: restore to a later moment. If they are lost, {PAGE} says what "
    "to do before anything is recorded"
)
RESUME: Final = "manage.py crl_resume with the newest list that anyone kept, before the service starts"


KeptCheckpoint = tuple[str, Note]
"""The name of a file, and the checkpoint in it."""


@dataclass(frozen=True)
class KeptElsewhere:
    """Evidence kept outside of the databases."""

    checkpoints: Sequence[KeptCheckpoint] = ()
    lists: Sequence[x509.CertificateRevocationList] = ()


def examine(
    *, chosen: Sequence[Environment], evidence: KeptElsewhere, sample: int, now: datetime
) -> list[Finding]:
    """Run all checks for the environments chosen.

    Raises: Invalid for a list of no CA and a checkpoint of no log of theirs.
    """
    found = doctor.examine(chosen=list(chosen), fix=False, now=now, only=OF_DOCTOR)
    lists, checkpoints = _lists_of(chosen, evidence.lists), _checkpoints_of(chosen, evidence.checkpoints)
    for environment in chosen:
        with environments.use(environment):
            checks = _checks(checkpoints[environment], lists[environment], sample)
            found += [doctor.run(check, environment.value, fix=False, now=now) for check in checks]
    return found


def _checks(
    checkpoints: Sequence[KeptCheckpoint], lists: Sequence[KeptList], sample: int
) -> tuple[Check, ...]:
    return (
        Check("moment", moment),
        Check("tenants", tenants_mirrored, "restore both databases to the same moment"),
        Check("log verifies", partial(log_verifies, checkpoints), f"manage.py audit_verify; {PAGE}"),
        Check("log and witnesses", witnesses_agree, ROLLED_BACK),
        Check(
            "service's keys sign",
            partial(keys_sign, signing.of_the_service),
            "restore the tokens of that moment or later",
        ),
        Check(
            "agents' keys sign",
            partial(keys_sign, partial(signing.of_agents, sample)),
            "restore the tokens of that moment or later; else revoke and certify anew",
        ),
        Check("list numbers", partial(lists_continue, lists), RESUME),
        Check("secrets", secrets_open, "restore ENCRYPTION_KEYS with every key used before"),
        Check("webhooks", webhooks_waiting),
        Check("idempotency", answers_kept),
    )


def _lists_of(
    chosen: Sequence[Environment], lists: Sequence[x509.CertificateRevocationList]
) -> dict[Environment, list[KeptList]]:
    """Give each list to the environment whose CA signed it. Raises: Invalid if there is none."""
    found: dict[Environment, list[KeptList]] = {environment: [] for environment in chosen}
    for crl in lists:
        for environment in chosen:
            with environments.use(environment):
                kept = recognized(crl)
            if kept is not None:
                found[environment].append(kept)
                break
        else:
            raise Invalid(f"No CA of this installation signed the list of {crl.issuer.rfc4514_string()}")
    return found


def _checkpoints_of(
    chosen: Sequence[Environment], checkpoints: Sequence[KeptCheckpoint]
) -> dict[Environment, list[KeptCheckpoint]]:
    """Give each checkpoint to the environment whose log has its name. Raises: Invalid if there is none."""
    found: dict[Environment, list[KeptCheckpoint]] = {environment: [] for environment in chosen}
    for name, note in checkpoints:
        origin = Checkpoint.parse(note.text).origin
        for environment in chosen:
            with environments.use(environment):
                is_ours = LogKey.objects.filter(name=origin).exists()
            if is_ours:
                found[environment].append((name, note))
                break
        else:
            raise Invalid(f"{name}: no log of this installation is named {origin}")
    return found


def moment(now: datetime) -> Seen:
    """State of which moment the database is: that of its newest audit entry."""
    newest = AuditEntry.objects.aggregate(newest=Max("created_at"))["newest"]
    if newest is None:
        return Seen(detail="the audit log is empty")
    return Seen(detail=f"the newest audit entry is of {newest:%Y-%m-%d %H:%M:%S} UTC")


def tenants_mirrored(now: datetime) -> Seen:
    """Compare the tenants of the sandbox with those of live, which has them all."""
    with environments.use(Environment.LIVE):
        live = set(Tenant.objects.values_list("id", flat=True))
    unknown = set(Tenant.objects.values_list("id", flat=True)) - live
    if unknown:
        return Seen(f"{counted(len(unknown), 'tenant')} unknown in live")
    return Seen(detail=counted(len(live), "tenant"))


def log_verifies(checkpoints: Sequence[KeptCheckpoint], now: datetime) -> Seen:
    """Verify the whole log, and that it contains the checkpoints kept elsewhere."""
    verdict = verify_log(demands=Demands(against=checkpoints), tell=lambda *progress: None, now=now)
    if verdict.outcome is LogOutcome.VERIFIED:
        newest = latest_checkpoint()
        signed = f", signed on {newest.signed_at:%Y-%m-%d %H:%M:%S} UTC" if newest else ""
        compared = "" if settings.AUDIT_VERIFIED_FILE else "; compared with no AUDIT_VERIFIED_FILE"
        return Seen(detail=f"{counted(verdict.counts['size'], 'entry', 'entries')}{signed}{compared}")
    is_rolled_back = any(flaw.damage is Damage.ROLLED_BACK for flaw in verdict.flaws)
    reasons = [*map(str, verdict.flaws[:SHOWN]), *verdict.doubts]
    return Seen("; ".join(reasons), remedy=ROLLED_BACK if is_rolled_back else "")


def witnesses_agree(now: datetime) -> Seen:
    """Ask every witness whether it has seen a larger or another tree."""
    newest = latest_checkpoint()
    answers = gathering.ask_all(newest=newest) if newest else []
    against = [each for each in answers if contradicts(each.problem)]
    if against:
        return Seen("; ".join(f"{each.witness.name}: {each.problem}" for each in against))
    silent = [each for each in answers if each.cosignature is None and each.size is None]
    if silent:
        names = ", ".join(each.witness.name for each in silent)
        return Seen(f"no answer from {names}: cannot tell", remedy="ask again once they answer")
    if not answers:
        return Seen(detail="no witness was asked: AUDIT_WITNESS_POLICY names none")
    return Seen(detail=f"{counted(len(answers), 'witness', 'witnesses')} know no later tree")


def keys_sign(sign: Callable[[datetime], signing.Signatures], now: datetime) -> Seen:
    made = sign(now)
    return Seen(made.problem(), f"{counted(made.made, 'key')} signed")


def lists_continue(lists: Sequence[KeptList], now: datetime) -> Seen:
    """Compare numbers and revocations with published lists that were kept."""
    problems, unknown = [], set()
    for kept in lists:
        found = gap(kept, now=now)
        name = f"list {kept.number} of {kept.authority.common_name}"
        if found.ahead > 0:
            problems.append(f"{name} was published, the database ends at {kept.authority.crl_number}")
        if found.lost:
            problems.append(f"{name} has {counted(len(found.lost), 'lost revocation')}")
        unknown |= set(found.unknown)
    if problems:
        return Seen("; ".join(problems))
    authorities = CertificateAuthority.objects.publishing(now).order_by("created_at", "id")
    numbers = [f"{each.common_name} continues after {each.crl_number}" for each in authorities]
    issued_later = f"; {counted(len(unknown), 'listed certificate')} unknown here" if unknown else ""
    compared = "" if lists else "; compared with no published list"
    return Seen(detail=f"{'; '.join(numbers)}{issued_later}{compared}")


def secrets_open(now: datetime) -> Seen:
    """Decrypt stored values of the current environment and forget them."""
    opened, closed = 0, Counter[str]()
    for model, name in ENCRYPTED:
        filled = model._default_manager.exclude(**{f"{name}__isnull": True})
        for value in filter(None, filled.order_by("-pk").values_list(name, flat=True)[:MOST]):
            try:
                decrypt(value.encode() if isinstance(value, str) else value)
                opened += 1
            except Undecryptable:
                closed[f"{model._meta.db_table}.{name}"] += 1
    problems = "; ".join(f"{count} of {name}" for name, count in closed.items())
    return Seen(problems, f"{counted(opened, 'secret')} decrypted")


def webhooks_waiting(now: datetime) -> Seen:
    """State what will be delivered once senders start: receivers may have it already."""
    waiting = Delivery.objects.filter(status__in=["pending", "in_flight"]).order_by()
    found = waiting.aggregate(count=Count("id"), oldest=Min("created_at"))
    since = f", the oldest of {found['oldest']:%Y-%m-%d %H:%M:%S} UTC" if found["oldest"] else ""
    return Seen(detail=f"{counted(found['count'], 'delivery', 'deliveries')} will be sent{since}")


def answers_kept(now: datetime) -> Seen:
    """State how many answers repeated requests still get; later ones are executed again."""
    records = IdempotencyRecord.objects.order_by()
    found = records.aggregate(count=Count("id"), newest=Max("created_at"))
    until = f", up to {found['newest']:%Y-%m-%d %H:%M:%S} UTC" if found["newest"] else ""
    return Seen(detail=f"{counted(found['count'], 'answer')} kept{until}")
