"""Names of tools in one spelling, whoever reports them, and which of them a scope permits."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

MAX_WORDS = 24
KEPT_NAMES, KEPT_SCOPES = 4_096, 1_024
TOLD = 3  # permitted names that a reason tells
NEUTRAL = frozenset({"default_api", "function", "functions", "mcp", "tool", "tools"})
"""First parts of names that frameworks put before every tool."""
SERVER_MARK = "mcp"
"""The neutral part after which a server's name follows, which may look like a call: `mcp__post-office__…`."""
CHANGING = frozenset({
    "add", "append", "approve", "assign", "buy", "cancel", "change", "checkout", "clear", "commit",
    "copy", "create", "deploy", "disable", "edit", "elevate", "enable", "execute", "fill", "forward",
    "generate", "give", "grant", "impersonate", "insert", "install", "invite", "make", "merge", "modify",
    "move", "notify", "pay", "post", "promote", "publish", "push", "put", "refund", "register", "rename",
    "replace", "reply", "reschedule", "reserve", "reset", "revoke", "rotate", "run", "save", "sell",
    "send", "set", "share", "submit", "transfer", "trigger", "unshare", "update", "upload", "upsert",
    "wire", "withdraw", "write",
})  # fmt: skip
DELETING = frozenset({
    "delete", "deprovision", "destroy", "drop", "empty", "erase", "kill", "prune", "purge", "remove",
    "shred", "terminate", "trash", "truncate", "uninstall", "unlink", "wipe",
})  # fmt: skip
DOING_VERBS = CHANGING | DELETING
"""Verbs that alone don't say what they act on, and with which no namespace begins."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\s_.:/\\-]+")
_NAMESPACES = re.compile(r"::|__|[.:/]")
_BETWEEN_WORDS = re.compile(r"[\s_-]")


@lru_cache(maxsize=KEPT_NAMES)
def words_of(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case: `getHTTPHeader` and `get-http_header` have the same three."""
    parts = _SEPARATORS.split(_CAMEL.sub("_", name))
    return tuple([part.casefold() for part in parts if part][:MAX_WORDS])


@lru_cache(maxsize=KEPT_NAMES)
def normal_name(name: str) -> str:
    """Return `gmail.send_email` for `mcp__gmail__sendEmail`, and the same for what that returns.

    Case, separators, one leading slash and what a framework puts before every tool make no difference; only
    before a server whose name looks like a call (`post_office`) does `mcp` stay. A name with an empty part
    (`send_email_`, `a..b`) stays as it is but for its case: nothing vouches that it means the same.
    """
    text = name.strip()
    spaces = _NAMESPACES.split(text.removeprefix("/"))
    parts = [_BETWEEN_WORDS.split(_CAMEL.sub("_", part)) for part in spaces]
    if not all(all(words) for words in parts):
        return _lower(text)
    joined, before = [_lower("_".join(words)) for words in parts], ""
    while len(joined) > 1 and joined[0] in NEUTRAL:
        before = joined.pop(0)
    if before == SERVER_MARK and len(joined) > 1 and _may_be_a_server(joined[0]):
        joined.insert(0, SERVER_MARK)
    return ".".join(joined)


def _may_be_a_server(space: str) -> bool:
    """Return whether the words begin with a verb, but one that many servers' names begin with too."""
    verb, mark, _ = space.partition("_")
    return bool(mark) and verb in CHANGING


def _lower(text: str) -> str:
    """Return the text in lower case; a character that only resembles an ASCII letter doesn't become one."""
    if text.isascii():
        return text.lower()
    return "".join(
        [one if not one.isascii() and one.casefold().isascii() else one.casefold() for one in text]
    )


class ToolName(NamedTuple):
    """A name as it is compared: its namespaces without `mcp`, and the name without marks between words."""

    spaces: tuple[str, ...]
    plain: str
    stands_alone: bool  # it means the same in every namespace
    has_server: bool = False  # `mcp` stood before the first namespace


@lru_cache(maxsize=KEPT_NAMES)
def _parsed(name: str) -> ToolName:
    """Return the parts of a name from `normal_name()`."""
    *spaces, last = name.split(".")
    if not last or not all(spaces) or not all(last.split("_")):
        return ToolName((), name, False)
    has_server = len(spaces) > 1 and spaces[0] == SERVER_MARK
    plain, stands_alone = last.replace("_", ""), last not in DOING_VERBS
    return ToolName(tuple(spaces[has_server:]), plain, stands_alone, has_server)


@lru_cache(maxsize=KEPT_NAMES)
def habit_name(name: str) -> str:
    """Return the name, from `normal_name()`, under which habits count a tool: without its namespace.

    A single word (`mail.delete`) keeps it, since it doesn't say what it acts on.
    """
    parsed, last = _parsed(name), name.rpartition(".")[2]
    if parsed.spaces and "_" in last and _may_go(parsed.spaces, parsed.has_server):
        return last
    return name.removeprefix(f"{SERVER_MARK}.") if parsed.has_server else name


class ToolScope:
    """The names that a scope permits.

    A name without a namespace permits that tool in any, if the namespace is no verb (or, after `mcp`, one of
    several words, none that deletes) and the name says what is done. A namespace that the scope states is
    binding: `mail.send_email` permits no other's `send_email`, but a report that states none.
    """

    def __init__(self, permitted: Iterable[str]) -> None:
        self.names = sorted(permitted)
        self.exact = frozenset([_joined(name) for name in self.names])
        self.bare: set[str] = set()
        self.spaced: dict[str, list[tuple[str, ...]]] = {}
        for name in map(_parsed, self.names):
            if not name.spaces:
                self.bare.add(name.plain)
            else:
                self.spaced.setdefault(name.plain, []).append(_compact(name.spaces))

    def states(self, name: str) -> bool:
        """Return whether the scope has this very name, but for marks between its words and parts."""
        return _joined(name) in self.exact

    def permits(self, name: str) -> bool:
        """Return whether the scope permits the name, which is from `normal_name()`."""
        if _joined(name) in self.exact:
            return True
        spaces, plain, stands_alone, has_server = _parsed(name)
        if plain in self.bare and stands_alone and _may_go(spaces, has_server):
            return True
        seen = _compact(spaces)
        return any(
            seen[-len(stated) :] == stated and _may_go(spaces[: -len(stated)], has_server)
            if seen
            else stands_alone
            for stated in self.spaced.get(plain, ())
        )

    def nearest(self, name: str) -> list[str]:
        """Return the permitted names, those that share most words with `name` first."""
        words = frozenset(words_of(name))
        return sorted(self.names, key=lambda known: -len(words.intersection(words_of(known))))

    def told(self, name: str) -> str:
        """Return for people which names were expected instead of one that is not permitted."""
        nearest = self.nearest(name)
        more = f" or {len(nearest) - TOLD} more" if len(nearest) > TOLD else ""
        return ", ".join(nearest[:TOLD]) + more if nearest else "no action at all"


def _compact(spaces: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([space.replace("_", "") for space in spaces])


def _may_go(spaces: tuple[str, ...], has_server: bool) -> bool:
    """Return whether the namespaces only say whose tool it is: none but a server begins with a verb."""
    return DOING_VERBS.isdisjoint([space.partition("_")[0] for space in spaces[has_server:]])


@lru_cache(maxsize=KEPT_NAMES)
def _joined(name: str) -> str:
    """Return the letters of a name alone; of a name with an empty part, the name."""
    parsed = _parsed(name)
    return "".join((*_compact(parsed.spaces), parsed.plain))


def keys_of(name: str, *, is_stated: bool = False) -> set[str]:
    """Return keys to look names up by: a name that a scope states shares one with each that it permits."""
    spaces, plain, *_ = _parsed(name)
    keys = {_joined(name), "".join((*_compact(spaces)[-1:], ".", plain))}
    return keys | {f".{plain}" if is_stated and spaces else plain}


@lru_cache(maxsize=KEPT_SCOPES)
def scope_of(permitted: frozenset[str]) -> ToolScope:
    return ToolScope(permitted)


READING = frozenset({
    "browse", "browser", "check", "click", "clone", "count", "crawl", "describe", "download", "fetch", "find",
    "get", "goto", "grep", "inspect", "list", "load", "lookup", "navigate", "open", "pull", "query", "read",
    "receive", "received", "retrieve", "scan", "scrape", "search", "select", "show", "view", "visit", "watch",
})  # fmt: skip
TESTING = frozenset({"authenticate", "login", "test", "validate", "verify"})
HARMLESS = frozenset({
    "alert", "basket", "bookmark", "cache", "cart", "draft", "favorite", "favourite", "filter", "label",
    "like", "notification", "reaction", "reminder", "selection", "star", "tag", "wishlist",
})  # fmt: skip
"""What may be deleted and shared without harm."""
OPENED = frozenset({"account", "case", "issue", "order", "position", "pr", "ticket", "trade"})
"""What is made by opening it."""
CREDENTIALS = frozenset({
    "credential", "credentials", "mfa", "otp", "passcode", "passphrase", "passwd", "password", "passwords",
    "pin", "pwd", "secret", "secrets", "token", "tokens", "totp",
})  # fmt: skip
KEYS = frozenset({
    "apikey", "apikeys", "cert", "certificate", "certificates", "certs", "jwk", "keypair", "sshkey",
    "sshkeys",
})  # fmt: skip
KEY_KINDS = frozenset({
    "access", "api", "deploy", "encryption", "gpg", "host", "pgp", "private", "public", "service", "signing",
    "ssh",
})  # fmt: skip
ROLES = frozenset({
    "admin", "admins", "administrator", "elevate", "impersonate", "owner", "owners", "ownership", "privilege",
    "privileges", "role", "roles", "root", "sudo", "superuser",
})  # fmt: skip
PERMISSIONS = frozenset({
    "acl", "acls", "allowlist", "authorize", "collaborator", "collaborators", "grant", "invite", "permission",
    "permissions", "policy", "share", "unshare", "whitelist",
})  # fmt: skip
JOINING = frozenset({"add", "allow", "approve", "give", "request", "set", "update"})
JOINED = frozenset({"access", "member", "members", "visibility"})
USERS, GROUPS = frozenset({"user", "users"}), frozenset({"channel", "group", "organization", "team", "to"})
MEETINGS = frozenset({"calendar", "event", "meeting"})
PUBLISHING = frozenset({"deploy", "promote", "publicize", "publish", "release", "rollout", "unembargo"})
GENERIC = DOING_VERBS | {
    "api", "call", "data", "entity", "http", "item", "node", "object", "record", "request", "resource",
    "resources", "rest", "patch", "crud",
}  # fmt: skip
"""Words of tools that need their resource's name to say what they do."""
ACT_KEPT_NAMES = 4_096
ACT_MAX_WORDS = 8  # of a resource's name


@lru_cache(maxsize=ACT_KEPT_NAMES)
def is_reading(names: tuple[str, ...]) -> bool:
    """Return whether outside text comes in: the names' first verbs read, and none changes or sends."""
    verbs = [verb for name in names for verb in _verbs(words_of(name))]
    return bool(verbs) and DOING_VERBS.isdisjoint(verbs)


def _verbs(words: tuple[str, ...]) -> list[str]:
    """Return the first verb among a name's words, and those that `and` adds to it."""
    found: list[str] = []
    for place, word in enumerate(words):
        opens = word == "open" and not OPENED.isdisjoint(words)
        is_verb = word in DOING_VERBS or (word in READING and not opens)
        if is_verb and (not found or words[place - 1] == "and"):
            found.append(word)
    return found


def act_of(names: tuple[str, ...], resource: str | None) -> str | None:
    """Return the irreversible or privileged act that a tool and its verbs name, if any.

    One of `deletion`, `credential`, `key`, `permission`, `role`, `publishing`. A generic tool (`delete`,
    `update_record`) does to its resource what a telling one would.
    """
    act, generic = _named_act(names)
    if generic and resource is not None:
        return _act(frozenset(generic + words_of(resource)[:ACT_MAX_WORDS]))
    return act


@lru_cache(maxsize=ACT_KEPT_NAMES)
def _named_act(names: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return the act that the names state by themselves, and their words if the resource counts too."""
    words = tuple(chain.from_iterable(map(words_of, names)))
    if not words or is_reading(names) or not TESTING.isdisjoint(words):
        return None, ()
    return _act(frozenset(words)), words if GENERIC.issuperset(words) else ()


def _act(said: frozenset[str]) -> str | None:
    if not said.isdisjoint(DOING_VERBS) and (noun := _guarded(said)):
        return noun
    if _permits(said):
        return "permission"
    if not said.isdisjoint(DELETING):
        return "deletion" if said.isdisjoint(HARMLESS) else None
    opens = "public" in said and not said.isdisjoint(DOING_VERBS)
    return "publishing" if opens or not said.isdisjoint(PUBLISHING) else None


def _guarded(said: frozenset[str]) -> str | None:
    """Return what that guards other things is changed, if any."""
    if not said.isdisjoint(CREDENTIALS):
        return "credential"
    if not said.isdisjoint(KEYS) or (not said.isdisjoint(("key", "keys")) and not said.isdisjoint(KEY_KINDS)):
        return "key"
    return None if said.isdisjoint(ROLES) else "role"


def _permits(said: frozenset[str]) -> bool:
    if not said.isdisjoint(PERMISSIONS):
        return said.isdisjoint(MEETINGS) and said.isdisjoint(HARMLESS)
    if "add" in said and not said.isdisjoint(USERS) and not said.isdisjoint(GROUPS):
        return True
    return not said.isdisjoint(JOINING) and not said.isdisjoint(JOINED)
