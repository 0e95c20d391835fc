"""How values look in the console: chips, JSON, code, scores. Everything is escaped here, once.

What agents and tenants write is hostile until proven otherwise: characters that hide or change directions
are shown as escapes, so that no name can pose as another or reorder the line it stands in.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from compliance.plain_text import HIDDEN

EMPTY = "-"
JSON_LIMIT = 20_000

STATUS_COLOURS = {
    "active": "success",
    "succeeded": "success",
    "published": "success",
    "ready": "success",
    "completed": "success",
    "current": "success",
    "low": "success",
    "pending": "info",
    "in_flight": "info",
    "generating": "info",
    "queued": "info",
    "started": "info",
    "medium": "warning",
    "suspended": "warning",
    "expiring": "warning",
    "high": "danger",
    "revoked": "danger",
    "failed": "danger",
    "withdrawn": "danger",
    "confirmed": "danger",
    "dismissed": "success",
    "expired": "default",
    "retired": "default",
    "cancelled": "default",
}


def visible(text: object) -> str:
    """`text` with its hidden characters (`compliance.plain_text`) spelled out; newlines stay."""
    return HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else _spelled_out(found[0]), str(text))


def _spelled_out(character: str) -> str:
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def chip(text: object, colour: str = "default", *, verbatim: bool = False) -> SafeString:
    """A small label in one of Unfold's colours: success, info, warning, danger, primary, default.

    `verbatim` keeps the case of what machines read: action, event and scope names.
    """
    context = {"text": visible(text), "type": colour, "class": "console-verbatim" if verbatim else ""}
    return SafeString(render_to_string("unfold/helpers/label.html", context).strip())


def status_chip(status: str | None) -> SafeString | str:
    """A status as a chip whose colour tells how well things stand."""
    return chip(status.replace("_", " "), STATUS_COLOURS.get(status, "default")) if status else EMPTY


def chips(values: Iterable[object] | None, colour: str = "default") -> SafeString | str:
    """Several names, a chip each."""
    shown = [(chip(value, colour, verbatim=True),) for value in values or ()]
    return (
        format_html('<span class="console-chips">{}</span>', format_html_join("", "{}", shown))
        if shown
        else EMPTY
    )


def score_chip(score: float, band: str) -> SafeString:
    """A risk score from 0 to 1 with its band, which colours it."""
    return chip(f"{score:.2f} {band}", STATUS_COLOURS.get(band, "default"))


def shortened(text: str, length: int = 56) -> str:
    """`text` cut to what a column holds; the row's page shows all of it."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def moment(value: datetime | None) -> SafeString | str:
    """A recent moment in UTC to the minute, with the whole of it for machines and on pointing at it."""
    if value is None:
        return EMPTY
    utc = value.astimezone(UTC)
    exact = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', utc.isoformat(), exact, f"{utc:%b %d, %H:%M}"
    )


def code(text: object) -> SafeString | str:
    """An identifier, hash or address in a fixed-width face."""
    return format_html('<code class="console-code">{}</code>', visible(text)) if text else EMPTY


def short_code(text: str | None) -> SafeString | str:
    """The kind and the telling end of an identifier, for a column; all of it on pointing at it.

    UUIDs of version 7 begin with the time: rows of one moment differ at the end only.
    """
    if not text or len(text) <= 24:
        return code(text)
    kind, colon, rest = visible(text).rpartition(":")
    return format_html(
        '<code class="console-code" title="{}">{}{}…{}</code>', visible(text), kind, colon, rest[-12:]
    )


def block(text: object) -> SafeString | str:
    """Text of several lines as it is, in a fixed-width face and a box that scrolls."""
    if text is None or text == "":
        return EMPTY
    shown = visible(text)
    hidden = len(shown) - JSON_LIMIT
    more = f"\n… {hidden} more characters" if hidden > 0 else ""
    return format_html('<pre class="console-block" tabindex="0">{}{}</pre>', shown[:JSON_LIMIT], more)


def facts(pairs: Iterable[tuple[str, str]]) -> SafeString:
    """Labels with their values, a line each."""
    shown = [(visible(label), visible(value)) for label, value in pairs]
    lines = format_html_join("", "<dt>{}</dt><dd>{}</dd>", shown)
    return format_html('<dl class="console-decoded">{}</dl>', lines)


def pretty_json(value: Any) -> SafeString | str:
    """A JSON value, indented."""
    if value is None:
        return EMPTY
    return block(json.dumps(value, indent=2, ensure_ascii=False, default=str))
