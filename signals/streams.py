"""Make, change, pause, verify and remove streams, and sign what waits in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from auditlog import services as auditlog
from auditlog.sealing.tree import head
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.encryption import encrypt
from compliance.core.errors import Conflict, Invalid, InvalidState
from compliance.core.identifiers import new_id
from compliance.outbound.addresses import UrlRefused, check_url
from compliance.stores import wakeups
from delegation.jose import jws
from delegation.token_keys import keys
from signals.models import MAX_REASON, FeedPosition, Signal, Stream
from signals.vocabulary import SET_TYPE, DeliveryMethod, SignalEvent, StreamStatus
from tenancy.models import Tenant
from webhooks.services import url_policy

VERIFICATION_INTERVAL: Final = timedelta(seconds=5)
SERVICE: Final = Actor.system("signals")
TOO_MUCH_WAITS: Final = "Too many signals wait for the receiver"
FAILING_LONG: Final = "The receiver has not answered for too long"


class InvalidEndpoint(Invalid):
    message = "delivery.endpoint_url: not a URL that signals can be sent to"


class TooManyStreams(Conflict):
    message = "The tenant has as many streams as it can have"


class StreamDisabled(InvalidState):
    message = "The stream is disabled"


class VerificationTooSoon(Conflict):
    message = "The stream was asked for a verification event a moment ago"


@dataclass(frozen=True)
class StreamDelivery:
    """The delivery of signals to a receiver; `authorization` goes with each push as it is."""

    method: DeliveryMethod
    endpoint_url: str = ""
    authorization: str | None = field(default=None, repr=False)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a stream. Raises: InvalidEndpoint."""
        if self.method == DeliveryMethod.POLL:
            return {"method": self.method, "endpoint_url": "", "authorization": None}
        try:
            check_url(self.endpoint_url, url_policy())
        except UrlRefused as refusal:
            raise InvalidEndpoint(f"delivery.endpoint_url: {refusal}") from refusal
        sealed = encrypt(self.authorization.encode()) if self.authorization else None
        return {"method": self.method, "endpoint_url": self.endpoint_url, "authorization": sealed}


def create(
    *,
    tenant_id: UUID,
    delivery: StreamDelivery,
    events_requested: list[str],
    description: str = "",
    actor: Actor,
    now: datetime,
) -> Stream:
    """Make an enabled stream; it tells what ends from now on. Raises: InvalidEndpoint, TooManyStreams."""
    columns, stream_id = delivery.columns(), new_id()
    most = settings.SIGNAL_STREAMS_PER_TENANT
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        if Stream.objects.for_tenant(tenant_id).count() >= most:
            raise TooManyStreams(f"A tenant can have at most {most} streams")
        # The log is followed from here on, unless it is already.
        FeedPosition.objects.bulk_create([FeedPosition(position=head().size)], ignore_conflicts=True)
        stream = Stream.objects.create(
            id=stream_id,
            tenant_id=tenant_id,
            audience=own_url(stream_id),
            description=description,
            events_requested=events_requested,
            created_at=now,
            updated_at=now,
            **columns,
        )
        _record(stream, AuditAction.SIGNAL_STREAM_CREATED, "Signal stream created", actor, now)
    return stream


def update(
    *, tenant_id: UUID, stream_id: Any, changes: Mapping[str, Any], actor: Actor, now: datetime
) -> Stream:
    """Change `delivery`, `events_requested` or `description`; a new delivery replaces the old.

    Signals that wait go the new way. Raises: StreamNotFound, InvalidEndpoint.
    """
    columns = {name: value for name, value in changes.items() if name != "delivery"}
    if (delivery := changes.get("delivery")) is not None:
        columns |= delivery.columns() | {"consecutive_failures": 0, "failing_since": None}
        columns |= {"next_attempt_at": None, "last_error": ""}
    with environments.atomic():
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        _save(stream, now, **columns)
        description = f"Signal stream changed: {', '.join(sorted(changes))}"
        _record(stream, AuditAction.SIGNAL_STREAM_UPDATED, description, actor, now)
        environments.on_commit(lambda: wakeups.wake(wakeups.SIGNALS))
    return stream


def delete(*, tenant_id: UUID, stream_id: Any, actor: Actor, now: datetime) -> None:
    """Remove a stream with what waits in it; raises `StreamNotFound`."""
    with environments.atomic():
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        _record(stream, AuditAction.SIGNAL_STREAM_DELETED, "Signal stream deleted", actor, now)
        stream.delete()


def set_status(
    *,
    tenant_id: UUID,
    stream_id: Any,
    status: StreamStatus,
    reason: str = "",
    is_announced: bool = False,
    actor: Actor,
    now: datetime,
) -> Stream:
    """Enable, pause or disable a stream; disabling drops what waits.

    `is_announced` for changes that the receiver did not ask for itself (SSF §8.1.5). Raises: StreamNotFound.
    """
    with environments.atomic():
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        _move(stream, status, reason, actor=actor, now=now, is_announced=is_announced)
    return stream


def request_verification(
    *, tenant_id: UUID, stream_id: Any, state: str | None = None, actor: Actor, now: datetime
) -> Stream:
    """Send a verification event behind what waits.

    Raises: StreamNotFound, StreamDisabled, VerificationTooSoon.
    """
    with environments.atomic():
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        if stream.status == StreamStatus.DISABLED:
            raise StreamDisabled()
        asked = stream.verification_asked_at
        if asked is not None and now < asked + VERIFICATION_INTERVAL:
            raise VerificationTooSoon()
        stream.verification_asked_at = now
        stream.save(update_fields=["verification_asked_at"])
        _tell(stream, SignalEvent.VERIFICATION, {} if state is None else {"state": state}, now)
        _record(stream, AuditAction.SIGNAL_STREAM_VERIFIED, "Verification event requested", actor, now)
    return stream


def give_up(*, stream_id: UUID, now: datetime) -> None:
    """Disable a stream whose signals nobody takes; the receiver has to learn the state by other ways."""
    with environments.atomic():
        stream = Stream.objects.locked().filter(id=stream_id).first()
        if stream is not None:
            _move(stream, StreamStatus.DISABLED, TOO_MUCH_WAITS, actor=SERVICE, now=now, is_announced=True)


def pause_failing(*, stream: Stream, now: datetime) -> None:
    """Pause a locked push stream whose receiver has failed for `SIGNALS_PAUSE_AFTER_SECONDS`."""
    longest = timedelta(seconds=settings.SIGNALS_PAUSE_AFTER_SECONDS)
    if (
        stream.status == StreamStatus.ENABLED
        and stream.failing_since
        and now - stream.failing_since >= longest
    ):
        _move(stream, StreamStatus.PAUSED, FAILING_LONG, actor=SERVICE, now=now, is_announced=True)


def own_url(stream_id: UUID) -> str:
    """Return the address of a stream here, which is also its audience."""
    return f"{settings.BASE_URL}/v1/ssf/streams/{stream_id}"


def _move(
    stream: Stream, status: StreamStatus, reason: str, *, actor: Actor, now: datetime, is_announced: bool
) -> None:
    if stream.status == status:
        return
    before, sound = stream.status, {"consecutive_failures": 0, "failing_since": None, "next_attempt_at": None}
    _save(stream, now, status=status, status_reason=reason[:MAX_REASON], **sound)
    if status == StreamStatus.DISABLED:
        Signal.objects.of(stream).delete()
    description = f"Signal stream {before}, now {status}" + (f": {reason}" if reason else "")
    _record(stream, AuditAction.SIGNAL_STREAM_STATUS_CHANGED, description, actor, now, before=before)
    if is_announced:
        said = {"reason": reason} if reason else {}
        _tell(stream, SignalEvent.STREAM_UPDATED, {"status": status.value, **said}, now)
    environments.on_commit(lambda: wakeups.wake(wakeups.SIGNALS))


def _tell(stream: Stream, event: SignalEvent, details: dict[str, Any], now: datetime) -> None:
    """Add an event about the stream itself, which is its subject (SSF §8.1.4, §8.1.5)."""
    subject = {"format": "opaque", "id": str(stream.id)}
    claims = {"sub_id": subject, "events": {event.value: details}}
    Signal.objects.create(stream=stream, jti=new_id(), event=event.value, claims=claims, created_at=now)
    environments.on_commit(lambda: wakeups.wake(wakeups.SIGNALS))


def _save(stream: Stream, now: datetime, **columns: Any) -> None:
    for name, value in columns.items():
        setattr(stream, name, value)
    stream.updated_at = now
    stream.save(update_fields=[*columns, "updated_at"])


def _record(
    stream: Stream, action: AuditAction, description: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    """Append an audit entry, without the endpoint's URL: it may carry a token."""
    said = {"method": stream.method, "status": stream.status, "events": stream.events_requested}
    auditlog.record(
        of=stream, action=action, description=description, metadata={**said, **metadata}, actor=actor, now=now
    )


def sign_waiting(stream: Stream, *, most: int, now: datetime) -> list[Signal]:
    """Return the oldest signals that wait in a stream, each with its token.

    The claims are those of RFC 8417 §2.2, without `sub` and `exp` as SSF demands. A token of a key that no
    longer signs is made anew, under the same `jti`: verifiers forget old keys.
    Raises: TokenKeysMissing, Unavailable (HSM). Call it outside a transaction.
    """
    waiting = list(Signal.objects.of(stream).waiting()[:most])
    if not waiting:
        return []
    key = keys.signing_key()
    unsigned = [signal for signal in waiting if signal.kid != key.kid]
    for signal in unsigned:
        claims = {
            "iss": settings.TOKEN_ISSUER,
            "aud": stream.audience,
            "iat": int(now.timestamp()),
            "jti": str(signal.jti),
            **signal.claims,
        }
        signal.token = jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=SET_TYPE)
        signal.kid = key.kid
    Signal.objects.bulk_update(unsigned, ["token", "kid"])
    return waiting
