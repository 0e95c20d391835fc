"""The keys that sign checkpoints; while two overlap both sign, as verifiers may know either."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError
from django.db.models import Q

from auditlog import services as auditlog
from auditlog.apps import MAX_ORIGIN, is_origin
from auditlog.errors import LogKeyRotationUnderWay, LogKeysMissing
from auditlog.models import LogKey
from auditlog.tlog.notes import PUBLIC_BYTES, Signature, VerifierKey
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Conflict, Invalid
from compliance.keys.registry import backend_for, destroy_if_present

LABEL = "log-signing"
OVERLAP = timedelta(days=30)
DESTROY_AFTER = timedelta(hours=1)
"""A sealer that read the key just before it retired has signed by then."""


def origin() -> str:
    """Return the name of the current environment's log: its first key fixes it."""
    lasting: LogKey | None = LogKey.objects.lasting().first()
    if lasting is not None:
        return lasting.name
    is_sandbox = environments.current() is Environment.TEST
    return f"{settings.AUDIT_LOG_ORIGIN}{'/test' if is_sandbox else ''}"


def bootstrap(*, actor: Actor, now: datetime) -> LogKey:
    """Return the key that signs without an end; make it if there is none. Safe to repeat and in parallel."""
    try:
        return LogKey.objects.lasting().first() or _generate(origin(), None, actor, now)
    except LogKeyRotationUnderWay:
        return LogKey.objects.lasting().get()


def rotate(*, actor: Actor, now: datetime, overlap: timedelta = OVERLAP) -> LogKey:
    """Generate a key that signs beside the others for `overlap`. Raises: LogKeyRotationUnderWay."""
    lasting = LogKey.objects.lasting().first()
    if lasting is None:
        return bootstrap(actor=actor, now=now)
    return _generate(lasting.name, now + overlap, actor, now)


def begin_anew(name: str, *, actor: Actor, now: datetime) -> LogKey:
    """Continue the log's tree under another name; the keys of the old name end now.

    For a log that has lost entries: under its old name, every new checkpoint would contradict the lost ones.
    Raises: Invalid for a name that cannot be one, Conflict for a used one, LogKeysMissing before `bootstrap`.
    """
    if not is_origin(name):
        raise Invalid(f"A log's name has 1 to {MAX_ORIGIN} characters without spaces and plus signs")
    if LogKey.objects.filter(name=name).exists():
        raise Conflict("The audit log has or had this name")
    signing_keys(now)
    return _generate(name, now, actor, now)


def signing_keys(now: datetime) -> list[LogKey]:
    """Return the keys that sign now, newest first; raises `LogKeysMissing` before `bootstrap`."""
    if found := list(LogKey.objects.signing(now)):
        return found
    raise LogKeysMissing()


def sign(text: str, *, now: datetime) -> list[Signature]:
    """Sign a note's text with every key that signs now. Raises: LogKeysMissing, Unavailable (HSM)."""
    backend = backend_for(environments.current())
    return [
        verifier_key(key).signature(backend.sign_ed25519(key.key_uri, text.encode()))
        for key in signing_keys(now)
    ]


def sign_document(document: bytes, *, key: LogKey) -> bytes:
    """Sign a JSON object, in 64 octets. Raises: Unavailable (HSM).

    ValueError for other octets: what begins with a brace is no checkpoint, whatever the log's name is.
    """
    if not document.startswith(b"{") or key.name.startswith("{"):
        raise ValueError("Only JSON objects are signed beside checkpoints")
    return backend_for(environments.current()).sign_ed25519(key.key_uri, document)


def verifier_key(key: LogKey) -> VerifierKey:
    return VerifierKey.ed25519(key.name, bytes(key.public_key))


def verifier_keys(*, now: datetime) -> list[VerifierKey]:
    """Return the public halves of all keys that ever signed, newest first."""
    return [verifier_key(key) for key in reversed(log_keys(now))]


def log_keys(now: datetime) -> list[LogKey]:
    """Return all keys that ever signed, oldest first."""
    return list(LogKey.objects.filter(active_from__lte=now).order_by("active_from", "id"))


def destroy_ended(*, now: datetime) -> int:
    """Destroy the private halves of retired keys; return how many."""
    ended = list(LogKey.objects.filter(retired_at__lt=now - DESTROY_AFTER, destroyed_at=None))
    for key in ended:
        destroy_if_present(key.key_uri)
        key.destroyed_at = now
        key.save(update_fields=["destroyed_at"])
    return len(ended)


def add(key: LogKey, *, actor: Actor, now: datetime) -> None:
    """Insert a key that is in the HSM, with its audit entry. Raises: IntegrityError if there is another."""
    key.save(force_insert=True)
    _record(AuditAction.LOG_KEY_CREATED, key, f"Log key {key} signs", actor, now)


def _generate(name: str, others_end: datetime | None, actor: Actor, now: datetime) -> LogKey:
    """Generate a key; the others end at `others_end`, or when they end anyway, if that is sooner.

    Raises: LogKeyRotationUnderWay, and no key is left in the HSM, if another process has made one.
    """
    ref = backend_for(environments.current()).generate_ed25519(label=LABEL)
    # The public key is the end of its SubjectPublicKeyInfo (RFC 8410 §4).
    public = ref.spki[-PUBLIC_BYTES:]
    key = LogKey(name=name, public_key=public, key_uri=ref.uri, created_at=now, active_from=now)
    try:
        with environments.atomic():
            if others_end is not None:
                lasting_longer = Q(retired_at=None) | Q(retired_at__gt=others_end)
                for other in LogKey.objects.signing(now).filter(lasting_longer).select_for_update():
                    other.retired_at = others_end
                    other.save(update_fields=["retired_at"])
                    description = f"Log key {other} signs until {others_end:%Y-%m-%d %H:%M}"
                    _record(AuditAction.LOG_KEY_RETIRED, other, description, actor, now)
            add(key, actor=actor, now=now)
    except IntegrityError as error:
        destroy_if_present(ref.uri)
        raise LogKeyRotationUnderWay() from error
    return key


def _record(action: AuditAction, key: LogKey, description: str, actor: Actor, now: datetime) -> None:
    metadata = {
        "vkey": verifier_key(key).encode(),
        "active_from": key.active_from.isoformat(),
        "retired_at": key.retired_at and key.retired_at.isoformat(),
    }
    auditlog.record(of=key, action=action, description=description, metadata=metadata, actor=actor, now=now)
