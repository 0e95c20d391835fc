"""What a key of details states, in any of its spellings."""

from functools import lru_cache
from typing import NamedTuple

from events.risk.scoring.names import words_of

MAX_KEYS = 128
MAX_KEY = 48
MAX_TEXT = 256

KEYS: dict[str, tuple[str, ...]] = {
    "tool": (
        "tool", "toolname", "function", "functionname", "requestedaction", "attemptedaction", "toolcall",
        "toolcalls",
    ),
    "verb": ("action", "actionname", "operation", "operationname"),
    "name": ("name",),
    "method": ("method", "httpmethod"),
    "target": (
        "targets", "target", "destination", "destinations", "recipient", "recipients", "to", "beneficiary",
        "payee", "counterparty", "iban", "wallet", "address", "email", "toaccount", "endpoint", "cc", "bcc",
        "phonenumber",
    ),
    "url": ("url",),
    "host": ("host", "hostname", "domain"),
    "resource": (
        "resource", "resources", "resourceid", "path", "file", "filename", "document", "table", "dataset",
        "collection", "database", "datasource", "bucket", "record", "recordid",
    ),
    "container": ("owner", "org", "organization", "organisation", "workspace", "namespace", "group"),
    "dollars": (
        "amountusd", "usdamount", "valueusd", "notionalusd", "totalusd", "tradeusd", "tradeamountusd",
        "amountindollars",
    ),
    "amount": (
        "amount", "notional", "tradeamount", "transactionamount", "orderamount", "ordervalue", "tradevalue",
        "tradesize",
    ),
    "total": ("total", "value"),
    "cents": ("amountcents",),
    "quantity": ("quantity", "qty"),
    "price": ("price", "unitprice"),
    "currency": ("currency", "currencycode"),
    "instrument": ("instruments", "instrument", "symbol", "ticker", "pair", "asset"),
    "venue": ("venues", "venue", "exchange"),
    "leverage": ("leverage", "leverageratio"),
    "status": ("status", "statuscode", "httpstatus", "outcome", "result"),
}  # fmt: skip
"""The well-known keys of each kind of fact, the most telling first."""

MONEY = frozenset({"dollars", "amount", "total", "cents", "quantity", "price", "currency"})
"""The kinds of fact that say an amount together."""
FREE = frozenset({
    "answer", "body", "caption", "code", "command", "comment", "content", "contents", "data", "description",
    "html", "instruction", "instructions", "keyword", "keywords", "markdown", "memo", "message", "messages",
    "note", "notes", "payload", "prompt", "query", "question", "reason", "script", "snippet", "sql",
    "subject", "summary", "text", "title",
})  # fmt: skip
"""Last words of keys whose text is free: it is never searched, though an object under them is."""
CLOSED = frozenset({
    "attachment", "attachments", "context", "credential", "credentials", "error", "errors", "header",
    "headers", "history", "observation", "otp", "output", "outputs", "password", "response", "responses",
    "results", "schema", "secret", "token",
})  # fmt: skip
"""Last words of keys that hold secrets, or what came back rather than what was asked."""
ORIGINS = frozenset({"from", "origin", "sender", "debit", "debtor"})
PARTIES = frozenset({
    "assignee", "attendee", "attendees", "bcc", "beneficiary", "cc", "collaborator", "collaborators",
    "counterparty", "creditor", "dest", "destination", "forward", "grantee", "guest", "guests", "invitee",
    "invitees", "new", "participant", "participants", "payee", "receiver", "recipient", "recipients",
    "share", "shared", "target", "to",
})  # fmt: skip
"""Words of keys that say whom something goes to."""
IDENTITIES = frozenset({
    "account", "accounts", "handle", "id", "ids", "member", "members", "number", "owner", "user", "userid",
    "username", "usernames", "users",
})  # fmt: skip
ADDRESSES = frozenset({
    "address", "addresses", "callback", "channel", "contact", "contacts", "email", "emails", "endpoint",
    "iban", "inbox", "ibans", "mail", "phone", "wallet", "wallets", "webhook",
})  # fmt: skip
URLS = frozenset({"href", "link", "links", "uri", "uris", "url", "urls", "webpage", "website"})
HOSTS = frozenset({"domain", "domains", "host", "hostname", "hosts", "server"})
ARGUMENTS = frozenset({"args", "arguments", "input", "kwargs", "parameters", "params", "toolinput"})
"""Keys of a call's arguments; a `name` beside them is the tool's."""
NOUNS: dict[str, str] = {
    "account": "account", "user": "account", "username": "account", "login": "account", "repo": "repo",
    "repos": "repo", "repository": "repo", "repositories": "repo", "file": "file", "files": "file",
    "filename": "file", "filenames": "file", "filepath": "file", "path": "file", "paths": "file",
    "document": "file", "documents": "file", "doc": "file", "folder": "folder", "dir": "file",
    "directory": "file", "table": "table", "bucket": "bucket", "branch": "branch", "database": "database",
    "dataset": "dataset", "collection": "collection", "project": "project", "calendar": "calendar",
    "product": "product", "order": "order", "event": "event", "record": "record", "invoice": "invoice",
    "queue": "queue", "topic": "topic", "index": "index", "sheet": "sheet", "spreadsheet": "sheet",
    "key": "key", "ssh": "key", "item": "item", "issue": "issue", "ticket": "ticket", "message": "message",
    "customer": "customer", "scheduled": "scheduled", "instance": "instance",
}  # fmt: skip
"""What resources are, by the word of their key or prefix; synonyms have one name."""
OWN_DISK = frozenset({"local", "output", "save"})  # words of paths where the agent keeps what it works on
NO_THINGS = frozenset({
    "call", "chain", "correlation", "element", "field", "idempotency", "input", "request", "run", "session",
    "span", "trace",
})  # fmt: skip
"""Words before `id` whose ids name nothing that is acted on."""
DESCRIBED = frozenset(
    {"customer", "event", "item", "message", "order", "product"}
)  # their names are free text


class Key(NamedTuple):
    """A key's kind; `rank`: the lower, the more telling; `noun`: what a resource under it is, or empty."""

    kind: str
    rank: int
    noun: str = ""


OTHER = Key("other", 999)
_WELL_KNOWN = {
    key: Key(kind, rank)
    for rank, (key, kind) in enumerate((key, kind) for kind, keys in KEYS.items() for key in keys)
}
_FREE, _CLOSED, _AMOUNT = Key("free", 998), Key("closed", 998), Key("amount", 300)
_TARGET, _URL, _HOST = Key("target", 200), Key("url", 210), Key("host", 220)


def key_of(key: str) -> Key:
    """Return what a key states: its own name is telling, or else its words are."""
    return _key_of(key) if len(key) <= MAX_KEY else OTHER


@lru_cache(maxsize=4096)
def _key_of(key: str) -> Key:
    words = words_of(key)
    plain = "".join(words)
    found = _WELL_KNOWN.get(plain)
    if found is None:
        return _by_words(words) if words else OTHER
    return found._replace(noun=NOUNS.get(plain.removesuffix("id"), "")) if found.kind == "resource" else found


def _by_words(words: tuple[str, ...]) -> Key:
    last, said = words[-1], frozenset(words)
    resource = _resource_key(words)
    if not said.isdisjoint(CLOSED) and (resource is None or resource.noun != "key"):
        return _CLOSED
    if not said.isdisjoint(ORIGINS):
        return _CLOSED if resource is None or resource.noun == "account" else resource
    if last in URLS:
        return _URL
    if last in ADDRESSES or last == "to" or _names_a_party(words, said):
        return _TARGET
    if last in HOSTS:
        return _HOST
    if last == "amount" and said.isdisjoint(("min", "max", "limit", "tax", "fee", "discount")):
        return _AMOUNT
    return resource or (_FREE if last in FREE else OTHER)


def _names_a_party(words: tuple[str, ...], said: frozenset[str]) -> bool:
    last = words[-1]
    if last in PARTIES and last not in ("new", "share", "shared", "forward"):
        return True
    return (last in IDENTITIES or last == "with") and not said.isdisjoint(PARTIES)


def _resource_key(words: tuple[str, ...]) -> Key | None:
    """Return the key of a resource: `repo_name`, `product_ids`, `file_path`, `ssh_key`, `username`."""
    last = words[-1]
    if last in ("id", "ids", "uuid", "key", "number") and len(words) > 1:
        noun = words[-2]
        if noun in NO_THINGS or (last in ("key", "number") and noun not in NOUNS and noun != "public"):
            return None
        noun = "key" if last == "key" else NOUNS.get(noun, noun)
    elif last in ("name", "names") and len(words) > 1:
        noun = "" if words[-2] in DESCRIBED else NOUNS.get(words[-2], "")
    else:
        noun = "" if last in FREE else NOUNS.get(last, "")
    if not noun:
        return None
    if not OWN_DISK.isdisjoint(words):
        return Key("kept", 290, noun)
    return Key("resource", 280 if "source" in words else 270 if noun == "file" else 260, noun)


def text_of(value: object) -> str | None:
    """Return a scalar as a cut, case-folded text; None when there is nothing to compare."""
    if isinstance(value, str):
        text = value[:MAX_TEXT].strip().casefold()
        if len(value) <= MAX_TEXT >= len(text):  # folding makes some texts longer
            return text or None
        return f"{text[:MAX_TEXT]}#{len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 63 else "a huge number"
    return repr(value) if isinstance(value, float) else None
