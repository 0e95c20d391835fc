"""What the words of an action's name say of it: that it brings text in, or that it can't be undone."""

from functools import lru_cache
from itertools import chain

from events.risk.scoring.names import DELETING, DOING_VERBS, words_of

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
KEPT_NAMES = 4_096
MAX_WORDS = 8  # of a resource's name


@lru_cache(maxsize=KEPT_NAMES)
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
        return _act(frozenset(generic + words_of(resource)[:MAX_WORDS]))
    return act


@lru_cache(maxsize=KEPT_NAMES)
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
