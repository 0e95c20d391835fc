"""Frames of syslog over TLS (RFC 5425): a count of octets, a header of RFC 5424, and the event as JSON."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from auditlog.exporting.ocsf import Severity
from compliance.api.rest.renderers import dumps

FACILITY: Final = 13  # log audit
_SEVERITIES: Final = {Severity.INFORMATIONAL: 6, Severity.LOW: 5, Severity.MEDIUM: 4, Severity.HIGH: 3}


def frame(event: Mapping[str, Any]) -> bytes:
    """Return an event as one frame."""
    priority = FACILITY * 8 + _SEVERITIES[event["severity_id"]]
    moment = datetime.fromtimestamp(event["time"] / 1000, UTC).isoformat(timespec="milliseconds")[:-6]
    host, what = urlsplit(settings.BASE_URL).hostname or "-", event["metadata"]["log_name"]
    header = f"<{priority}>1 {moment}Z {host} {settings.SERVICE_NAME} - {what} - "
    message = header.encode() + dumps(event)
    return b"%d %b" % (len(message), message)
