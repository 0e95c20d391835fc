"""Formatting of values for the console: chips, JSON, code, scores. All of it escapes HTML.

Text of agents and tenants may be hostile: invisible and direction-changing characters are shown as escapes,
so that no name can pose as another or reorder its line.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from compliance.core.plain_text import HIDDEN
from compliance.core.wording import counted

EMPTY = "-"
JSON_LIMIT = 20_000
ABBREVIATIONS = frozenset({"api", "ca", "crl", "id", "ocsp", "uri", "url"})

STATUSES = {
    "success": "active succeeded published ready completed current low dismissed approved used",
    "info": "pending in_flight generating queued started running",
    "warning": "medium suspended expiring",
    "danger": "high revoked failed withdrawn confirmed denied",
    "default": "expired retired cancelled",
}
STATUS_COLOURS = {status: colour for colour, statuses in STATUSES.items() for status in statuses.split()}


def column(title: str, show: Callable[[Any], Any], *, ordering: str | None = None) -> Any:
    """Return a column or field of a page, titled `title`, that shows `show(row)`.

    Pages ask for a field several times and it may read the database, so each row keeps what was shown of it.
    """

    def shown(_: Any, row: Any) -> Any:
        kept = row.__dict__.setdefault("_shown", {})
        if show not in kept:
            kept[show] = show(row)
        return kept[show]

    return display(description=title, ordering=ordering)(shown)


def visible(text: object) -> str:
    """Show hidden characters (`compliance.core.plain_text`) as escapes; keep newlines."""

    def escape(found: re.Match[str]) -> str:
        point = ord(found[0])
        if found[0] == "\n":
            return "\n"
        return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"

    return HIDDEN.sub(escape, str(text))


def link(label: object, url: str) -> SafeString:
    """Link a label to an address."""
    return format_html('<a class="text-link" href="{}">{}</a>', url, label)


def row_link(label: object, model: str, key: object) -> SafeString:
    """Link a label to the page of a row; `model` as `agents_agent`."""
    return link(label, reverse(f"admin:{model}_change", args=[key]))


def spelled(words: str) -> str:
    """Write the abbreviations among `words` as people do: `crl number` becomes `CRL number`."""
    return " ".join(word.upper() if word in ABBREVIATIONS else word for word in words.split(" "))


def chip(text: object, colour: str = "default", *, verbatim: bool = False) -> SafeString:
    """Return a small label in one of Unfold's colours: success, info, warning, danger, primary, default.

    `verbatim` keeps the case, for the names of actions, events and scopes.
    """
    context = {"text": visible(text), "type": colour, "class": "console-verbatim" if verbatim else ""}
    return SafeString(render_to_string("unfold/helpers/label.html", context).strip())


def status_chip(status: str | None) -> SafeString | str:
    """Return a status as a chip, coloured by how good or bad it is."""
    return chip(status.replace("_", " "), STATUS_COLOURS.get(status, "default")) if status else EMPTY


def chips(values: Iterable[object] | None, colour: str = "default") -> SafeString | str:
    shown = [(chip(value, colour, verbatim=True),) for value in values or ()]
    joined = format_html_join("", "{}", shown)
    return format_html('<span class="console-chips">{}</span>', joined) if shown else EMPTY


def score_chip(score: float, band: str) -> SafeString:
    """Return a risk score (0 to 1) with its band, which chooses the colour."""
    return chip(f"{score:.2f} {band}", STATUS_COLOURS.get(band, "default"))


def shortened(text: str, length: int = 56) -> str:
    """Cut `text` to the width of a column."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def moment(value: datetime | None) -> SafeString | str:
    """Return a time in UTC to the minute; the tooltip has the year and the seconds."""
    if value is None:
        return EMPTY
    utc = value.astimezone(UTC)
    exact = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    shown = f"{utc:%b %d, %H:%M}"
    return format_html('<time datetime="{}" title="{}">{}</time>', utc.isoformat(), exact, shown)


def code(text: object) -> SafeString | str:
    """Return an identifier, hash or address in a fixed-width font."""
    return format_html('<code class="console-code">{}</code>', visible(text)) if text else EMPTY


def short_code(text: str | None) -> SafeString | str:
    """Return the kind and the end of an identifier, for a column; the tooltip has all of it.

    UUIDs of version 7 begin with the time: rows of one moment differ only at their end.
    """
    if not text or len(text) <= 24:
        return code(text)
    kind, colon, rest = visible(text).rpartition(":")
    shown = f"{kind}{colon}…{rest[-12:]}"
    return format_html('<code class="console-code" title="{}">{}</code>', visible(text), shown)


def block(text: object, *, limit: int | None = JSON_LIMIT) -> SafeString | str:
    """Return text of several lines in a fixed-width font and a box that scrolls; None: all of it."""
    if text is None or text == "":
        return EMPTY
    shown = visible(text)
    hidden = 0 if limit is None else len(shown) - limit
    more = f"\n… {counted(hidden, 'more character')}" if hidden > 0 else ""
    return format_html('<pre class="console-block" tabindex="0">{}{}</pre>', shown[:limit], more)


def facts(pairs: Iterable[tuple[str, str]]) -> SafeString:
    """Return labels with their values, a line each."""
    shown = [(visible(label), visible(value)) for label, value in pairs]
    lines = format_html_join("", "<dt>{}</dt><dd>{}</dd>", shown)
    return format_html('<dl class="console-decoded">{}</dl>', lines)


def table(
    head: Iterable[str], rows: Iterable[Iterable[object]], *, classes: str = "console-reasons"
) -> SafeString:
    """Return a table of rows of cells below its head."""
    names = format_html_join("", '<th scope="col">{}</th>', ((name,) for name in head))
    cells = ((format_html_join("", "<td>{}</td>", ((cell,) for cell in row)),) for row in rows)
    return format_html(
        '<table class="{}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>',
        classes,
        names,
        format_html_join("", "<tr>{}</tr>", cells),
    )


def pretty_json(value: Any, *, limit: int | None = JSON_LIMIT) -> SafeString | str:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return EMPTY if value is None else block(text, limit=limit)
