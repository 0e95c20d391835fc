"""Send what is new in the audit log and among the events to the receivers that the settings name.

A position moves once the receiver has taken what is before it. What is sent again begins at the same record:
in a bucket it replaces the object that it was.
"""

import hmac
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from auditlog.exporting.ocsf import Severity, ocsf_of_entry
from auditlog.sealing.stored_rows import sealed_between
from auditlog.sealing.tree import head
from compliance.api.pagination import Feed
from compliance.api.rest.renderers import dumps
from compliance.core import environments
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import RequestOptions, send
from compliance.outbound.tls_stream import send_over_tls
from compliance.stores.session_locks import TurnLock, locked
from events.models import BehaviorEvent
from events.risk.rolling import settled_until
from events.streaming.feed import events_from
from events.streaming.models import StreamPosition
from events.streaming.ocsf import ocsf_of_event

log = logging.getLogger(__name__)

MOST: Final = 500
RUN_SECONDS: Final = 30.0
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=15), timedelta(minutes=15)
"""The pause after a failure, doubled by each further one."""
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED: Final = "content-type;host;x-amz-content-sha256;x-amz-date"
FACILITY: Final = 13  # log audit
SYSLOG_SEVERITIES: Final = {Severity.INFORMATIONAL: 6, Severity.LOW: 5, Severity.MEDIUM: 4, Severity.HIGH: 3}


def _entries(start: UUID, now: datetime) -> Feed[dict[str, Any]]:
    size = head().size
    end = max(min(start.int + MOST, size), start.int)
    found = [ocsf_of_entry(one.index, one.disclosure()) for one in sealed_between(start.int, end)]
    return Feed(found, UUID(int=end), end < size)


def _events(start: UUID, now: datetime) -> Feed[dict[str, Any]]:
    found = events_from(start, BehaviorEvent.objects.all(), limit=MOST, now=now)
    return Feed([*map(ocsf_of_event, found.rows)], found.position, found.has_next)


_SOURCES: Final = {"audit-log": _entries, "events": _events}


def _options() -> RequestOptions:
    """How receivers are reached; their addresses are the operator's own."""
    policy = UrlPolicy(allow_http=True, allow_private=True)
    return RequestOptions(policy, settings.STREAM_TIMEOUT_SECONDS, settings.STREAM_CA_FILE or None)


def _to_bucket(source: str, start: UUID, records: Sequence[dict[str, Any]], now: datetime) -> str:
    key = f"{environments.current().value}/{source}/{start.hex}.ndjson"
    url = f"{settings.STREAM_S3_URL.rstrip('/')}/{key}"
    body = b"".join(dumps(one) + b"\n" for one in records)
    outcome = send(
        url, body=body, headers=signed_headers(url, body, now=now), options=_options(), method="PUT"
    )
    if outcome.succeeded:
        return ""
    return outcome.error or f"The bucket answered {outcome.response_status}: {outcome.response_body}"


def _frame(event: Mapping[str, Any]) -> bytes:
    """Return an event as a frame of syslog over TLS: octets, a header of RFC 5424, JSON (RFC 5425 §4.3)."""
    priority = FACILITY * 8 + SYSLOG_SEVERITIES[event["severity_id"]]
    moment = datetime.fromtimestamp(event["time"] / 1000, UTC).isoformat(timespec="milliseconds")[:-6]
    host, what = urlsplit(settings.BASE_URL).hostname or "-", event["metadata"]["log_name"]
    header = f"<{priority}>1 {moment}Z {host} {settings.SERVICE_NAME} - {what} - "
    message = header.encode() + dumps(event)
    return b"%d %b" % (len(message), message)


def _to_syslog(source: str, start: UUID, records: Sequence[dict[str, Any]], now: datetime) -> str:
    return send_over_tls(settings.STREAM_SYSLOG, b"".join(map(_frame, records)), options=_options())


_RECEIVERS: Final = {"s3": _to_bucket, "syslog": _to_syslog}


def send_new(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Send for about so long; return how many records. Safe to repeat; one process works at a time."""
    until, sent = time.monotonic() + seconds, 0
    with locked(TurnLock.STREAMING) as is_mine:
        for name in _streams() if is_mine else ():
            sent += _follow(name, until, now)
    return sent


def positions() -> list[StreamPosition]:
    """Return the positions of the streams that the settings ask for."""
    return list(StreamPosition.objects.filter(name__in=_streams()))


def _streams() -> list[str]:
    receivers = {"s3": settings.STREAM_S3_URL, "syslog": settings.STREAM_SYSLOG}
    return [f"{name}.{source}" for name, address in receivers.items() if address for source in _SOURCES]


def _follow(name: str, until: float, now: datetime) -> int:
    """Send a stream's records until none is left, a try fails, or the time is over; return how many."""
    receiver, _, named = name.partition(".")
    read, send, sent = _SOURCES[named], _RECEIVERS[receiver], 0
    present = UUID(int=head().size) if named == "audit-log" else settled_until(now)
    start = {"upto": present, "caught_up_at": now}
    row, _ = StreamPosition.objects.get_or_create(name=name, defaults=start)
    if row.retry_at is not None and row.retry_at > now:
        return 0
    while True:
        batch = read(row.upto, now)
        problem = send(named, row.upto, batch.rows, now) if batch.rows else ""
        if problem:
            pause = min(FIRST_PAUSE * 2 ** min(row.failures, 10), LONGEST_PAUSE)
            row.failures, row.retry_at, row.problem = row.failures + 1, now + pause, problem[:255]
            row.save()
            log.warning("stream %s: %s", name, problem)
            return sent
        row.upto, row.failures, row.retry_at, row.problem = batch.position, 0, None, ""
        if not batch.has_next:
            row.caught_up_at = now
        row.save()
        sent += len(batch.rows)
        if not batch.has_next or time.monotonic() >= until:
            return sent


def signed_headers(url: str, body: bytes, *, now: datetime) -> Mapping[str, str]:
    """Return the headers of a PUT to Amazon S3 or what speaks its protocol, signed by Signature Version 4.

    The URL has plain characters and no query.

    Source: Amazon S3 API Reference, "Signature Calculations for the Authorization Header".
    """
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/x-ndjson",
        "host": urlsplit(url).netloc,
        "x-amz-content-sha256": sha256(body).hexdigest(),
        "x-amz-date": moment,
    }
    lines = [f"{name}:{value}" for name, value in headers.items()]
    canonical = ["PUT", urlsplit(url).path, "", *lines, "", _SIGNED, headers["x-amz-content-sha256"]]
    scope = f"{moment[:8]}/{settings.STREAM_S3_REGION}/s3/aws4_request"
    digest = sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{settings.STREAM_S3_SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), sha256)
    signature = hmac.digest(key, "\n".join([_ALGORITHM, moment, scope, digest]).encode(), sha256).hex()
    credential = f"{settings.STREAM_S3_KEY_ID}/{scope}"
    said = f"{_ALGORITHM} Credential={credential}, SignedHeaders={_SIGNED}, Signature={signature}"
    return {name.title(): value for name, value in headers.items()} | {"Authorization": said}
