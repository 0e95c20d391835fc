"""Log lines: one document each whatever is logged, with ids, and without secrets."""

import json
import logging
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import IntegrityError

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.observing import correlation, logs
from compliance.observing.correlation import Correlation
from tenancy.tests.factories import make_tenant
from webhooks.models import Webhook

JSON, CONSOLE = logs.LineFormatter("json"), logs.LineFormatter("console")
IDS = Correlation("order-7", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
KEY = "service_live_" + "k" * 43
QUOTED = quote(settings.SECRET_KEY, safe="")
DSN = "postgresql://service:hunter2hunter2@db.example:5432/live"

SECRETS = {
    "an API key": (f"refused {KEY}", KEY),
    "a key in a URL": (f"GET /v1/agents?api_key={KEY}&a=1", KEY),
    "another secret in a URL": ("GET https://hooks.example/x?token=abc123def&a=1", "abc123def"),
    "a bearer": ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    "a DSN": (f"could not connect to {DSN}", "hunter2hunter2"),
    "libpq's words": ("connection to host=db password='two words' failed", "two words"),
    "a PIN": ("pkcs11:token=a?pin-value=87654321", "87654321"),
    "a JWT": ("token eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl bad", "c2lnbmF0dXJl"),
    "a webhook secret": ("with whsec_MfKQ9r8GKYqrTwjUPD8ILP of it", "MfKQ9r8GKYqrTwjUPD8ILP"),
    "a private key": ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----", "MIIEvQIBADAN"),
    "a row": ('violates "x"\nDETAIL:  Failing row contains (1, a payload,\n null).', "a payload"),
    "the rest of a row": ("x\nDETAIL:  Failing row contains (1, a\n\n  payload).", "payload"),
    "a value": ('invalid input syntax for type uuid: "a" payload"', "payload"),
    "our own key": (f"as {settings.SECRET_KEY}", settings.SECRET_KEY),
    "our own key in a URL": (f"/x?q={QUOTED}", QUOTED),
}  # fmt: skip
HOSTILE = {
    "a newline": 'x\n{"level":"critical","event":"forged"}',
    "a carriage return": "x\rforged",
    "an escape sequence": "x\x1b[2Jforged",
    "a NUL": "x\0y",
    "a line separator": "x\u2028forged",
    "a lone surrogate": "x\ud800y",
    "quotes": 'x","event":"forged',
}


def record_of(
    message: str, *args: object, error: BaseException | None = None, **extra: object
) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.getLogger("events").makeRecord("events", logging.WARNING, "f", 1, message, args, info)
    made.__dict__.update(extra)
    return made


def line_of(record: logging.LogRecord) -> dict[str, Any]:
    text = JSON.format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_line_names_request_tenant_environment_and_agent() -> None:
    with correlation.use(IDS), environments.use(Environment.TEST):
        line = line_of(record_of("stored %d", 3, tenant="t", agent="a"))

    assert line.pop("time").endswith("+00:00")
    assert line.pop("process") > 0
    assert line == {
        "level": "warning",
        "event": "stored 3",
        "logger": "events",
        "request_id": "order-7",
        "trace_id": IDS.trace_id,
        "environment": "test",
        "tenant": "t",
        "agent": "a",
    }


def test_what_is_bound_is_told_until_the_block_ends() -> None:
    with correlation.use(IDS):
        with correlation.use(IDS):
            correlation.bind(tenant="t", agent="a")
            bound = line_of(record_of("x"))

        assert (bound["tenant"], bound["agent"]) == ("t", "a")
        assert "tenant" not in line_of(record_of("x"))


def raised(text: str) -> BaseException:
    """An error with a traceback."""
    with pytest.raises(ConnectionError) as found:
        _raise(text)
    return found.value


def _raise(text: str) -> None:
    raise ConnectionError(text)


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("formatter", [JSON, CONSOLE], ids=["json", "console"])
def test_secret_is_not_written(formatter: logging.Formatter, kind: str) -> None:
    text, secret = SECRETS[kind]
    error = raised(text)

    for record in (record_of("%s", text), record_of(text.replace("%", "%%")), record_of("x", error=error)):
        assert secret not in formatter.format(record)
    assert secret not in formatter.format(record_of("x", tenant=text, agent=text))


def test_rows_in_errors_of_postgresql_are_not_written() -> None:
    # A traceback shows lines of source, and so must not find it here.
    payload = str(new_id())
    row = Webhook(tenant=make_tenant(), description=payload, events=["risk.alert"], secret=b"")
    row.created_at = row.updated_at = now()
    with pytest.raises(IntegrityError) as found, environments.atomic():
        row.save()

    text = JSON.format(record_of("x", error=found.value))

    assert payload in str(found.value)
    assert payload not in text
    assert "webhooks_url_present" in text
    assert "The above exception was the direct cause" in text


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_forges_no_line(kind: str) -> None:
    record = record_of("said %s", HOSTILE[kind])

    line, text = line_of(record), CONSOLE.format(record)

    assert line["level"] == "warning"
    assert line["event"].startswith("said x")
    assert len(text.splitlines()) == 1
    assert text.isprintable()


@pytest.mark.parametrize(
    "unit",
    [
        "x",
        "eyJ-",
        "a_live_",
        "x://",
        "x@",
        "-----BEGIN PRIVATE KEY-----",
        "token=",
        "DETAIL: ",
        "\n\nThe above",
    ],
)
def test_endless_text_is_cut(unit: str) -> None:
    assert len(line_of(record_of(unit * 100_000))["event"]) < logs.LONGEST_TEXT + 50


def test_secret_across_the_cut_is_not_written() -> None:
    for spare in range(1, len(KEY)):
        text = "a " * ((logs.LONGEST_TEXT - spare) // 2) + KEY
        assert KEY[:20] not in line_of(record_of(text + " and more" * 100))["event"]


def test_secret_across_the_cut_is_not_written_where_much_was_redacted() -> None:
    read = logs.LONGEST_TEXT + logs.MARGIN
    for spare in range(1, len(KEY)):
        text = f"{KEY} " * (read // (len(KEY) + 1))
        text = text[: read - spare - 1].rpartition(" ")[0].ljust(read - spare) + KEY
        assert KEY[:12] not in line_of(record_of(text + " and more" * 100))["event"]
