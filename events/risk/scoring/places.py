"""Read the places that values name: destinations, hosts, resources, and what holds a resource."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, islice

from events.risk.scoring.keys import MAX_TEXT, NOUNS, key_of, text_of

SERVICES = frozenset({
    "gmail.com", "googlemail.com", "google.com", "googleapis.com", "outlook.com", "hotmail.com", "live.com",
    "office.com", "office365.com", "microsoft.com", "microsoftonline.com", "yahoo.com", "icloud.com",
    "apple.com", "proton.me", "protonmail.com", "gmx.net", "gmx.de", "github.com", "githubusercontent.com",
    "gitlab.com", "bitbucket.org", "pypi.org", "pythonhosted.org", "npmjs.com", "npmjs.org", "docker.io",
    "docker.com", "stackoverflow.com", "wikipedia.org", "slack.com", "zoom.us", "dropbox.com", "notion.so",
    "atlassian.com", "openai.com", "anthropic.com", "huggingface.co", "stripe.com", "paypal.com",
})  # fmt: skip
"""Services whose hosts, at any depth, belong to the service and not to one customer."""
SHARED_DOMAINS = frozenset({
    "amazonaws.com", "s3.amazonaws.com", "cloudfront.net", "azure.com", "windows.net",
    "blob.core.windows.net", "azurewebsites.net", "sharepoint.com", "github.io", "gitlab.io", "pages.dev",
    "workers.dev", "vercel.app", "netlify.app", "herokuapp.com", "web.app", "atlassian.net", "myshopify.com",
    "zendesk.com", "salesforce.com", "force.com",
})  # fmt: skip
"""Domains whose customers have hosts of their own, which may be marked; the bare domain may not."""


def is_public(host: str) -> bool:
    """Return whether a host is a public service's. An account or address at one is not its host."""
    labels = reversed(host.split("."))
    domains = accumulate(labels, lambda domain, label: f"{label}.{domain}")
    return host in SHARED_DOMAINS or not SERVICES.isdisjoint(domains)


MAX_LIST = 32  # most texts of one value that are told apart
MAX_READ = 64  # most values of a list that are read
MAX_LINE = 8_192  # longest text that is split into several addresses
KEPT_TEXTS = 4_096  # size of the caches of short texts, since most come again
MAX_PATH = 64  # characters of a URL that name its resource
QUOTES = "'\"<>[] "
ADDRESS_KEYS = frozenset({"target", "url", "host"})
NAMING_KEYS = frozenset({"id", "login", "name", "username", "userid", "value"})

Texts = tuple[str, ...]
_MAIL = re.compile(r"[^@\s<>,;:\"'/]{1,64}@[^@\s<>,;:\"'/]+\.[a-z0-9-]{2,}")
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}|https?:[/\\]?")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,15}://[^\s]+")


def texts(value: object) -> Texts:
    """Return a text, or each in a list; the rest of a long list counts as one."""
    if isinstance(value, list):
        return _each(_scalar, value)
    return _scalar(value)


def _scalar(value: object) -> Texts:
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        return _text(value)
    text = text_of(value)
    return () if text is None else (text,)


@lru_cache(maxsize=KEPT_TEXTS)
def _text(value: str) -> Texts:
    text = text_of(value)
    return () if text is None else (text,)


def _each(reader: Callable[[object], Texts], values: list[object]) -> Texts:
    """Return the different texts of a list; those beyond `MAX_LIST` count as one, so repeating hides none."""
    found: dict[str, None] = {}
    more = len(values[MAX_READ:])
    for value in values[:MAX_READ]:
        for text in reader(value):
            if len(found) < MAX_LIST or text in found:
                found[text] = None
            else:
                more += 1
    return (*found, f"{more} more") if more else tuple(found)


def targets_of(value: object) -> Texts:
    """Return the destinations under a telling key: a text, an object with an address, or a list of them."""
    if isinstance(value, str):
        return _targets(value) if len(value) <= MAX_TEXT else _long_targets(value)
    if isinstance(value, list):
        return _each(_listed_targets, value)
    return _inner_targets(value) if isinstance(value, dict) else _scalar(value)


def _listed_targets(value: object) -> Texts:
    return () if isinstance(value, list) else targets_of(value)


@lru_cache(maxsize=KEPT_TEXTS)
def _targets(value: str) -> Texts:
    return tuple([_destination(text) for part in _addresses(value) for text in _text(part)])


def _addresses(line: str) -> list[str]:
    """Return the addresses in a line; what has no `@` is part of a name: `Doe, Jane <j@a.example>`."""
    return [part for part in re.split("[,;]", line) if "@" in part] or [line]


def _long_targets(value: str) -> Texts:
    """Return the addresses of a long line of them, so that none hides behind the first ones."""
    if "@" not in value[:MAX_LINE]:
        return _plain_target(value)
    return _each(_plain_target, list(_addresses(value[:MAX_LINE])))


def _plain_target(value: object) -> Texts:
    return tuple(map(_destination, _scalar(value)))


def _inner_targets(value: dict[str, object], depth: int = 0) -> Texts:
    """Return the addresses in an object (`{"emailAddress": {"address": …}}`), or else its id or name."""
    names: Texts = ()
    found: Texts = ()
    for key, inner in islice(value.items(), MAX_LIST):
        if isinstance(inner, dict):
            found += _inner_targets(inner, depth + 1) if depth < 1 else ()
        elif key_of(key).kind in ADDRESS_KEYS:
            found += _each(_plain_target, inner if isinstance(inner, list) else [inner])
        elif key.replace("_", "").lower() in NAMING_KEYS:
            names += _scalar(inner)
    return found or names[:1]


def by_shape(value: object) -> Texts:
    """Return the destinations under a key that tells nothing: mail addresses, and URLs with their scheme."""
    if isinstance(value, str):
        return _shaped(value) if len(value) <= MAX_TEXT else _long_url(value)
    if isinstance(value, list):
        return _each(_shaped_item, value)
    return ()


def _shaped_item(value: object) -> Texts:
    return by_shape(value) if isinstance(value, str) else ()


def _long_url(value: str) -> Texts:
    """Return the host of a URL that says much: what an address can carry is no reason not to read it."""
    url = value[:MAX_LINE].strip(QUOTES)
    return _shaped(url[:MAX_TEXT]) if "://" in url[:MAX_TEXT] and not re.search(r"\s", url) else ()


@lru_cache(maxsize=KEPT_TEXTS)
def _shaped(value: str) -> Texts:
    text = text_of(value.strip(QUOTES))
    if text is not None and (_MAIL.fullmatch(text) or _URL.fullmatch(text)):
        return (_destination(text),)
    return ()


def hosts_stated(value: object) -> Texts:
    """Return the hosts under a key that says so, or that of a URL, which may lack its scheme."""
    return tuple([host for text in texts(value) if (host := _host(text))])


@lru_cache(maxsize=KEPT_TEXTS)
def _host(text: str) -> str:
    scheme = _SCHEME.match(text)
    return _bare_host(text[scheme.end() :] if scheme else text).strip(QUOTES)


def url_targets(urls: Texts) -> Texts:
    """Return the hosts of URLs; a path without a host, as of one's own API, is a destination as it is."""
    return tuple(map(_url_target, urls))


@lru_cache(maxsize=KEPT_TEXTS)
def _url_target(text: str) -> str:
    is_path = text.startswith("/") and not text.startswith("//")
    return _host(text) or text if "." in text and not is_path else _destination(text)


def _destination(text: str) -> str:
    if "://" in text:
        return _bare_host(text.partition("://")[2])
    plain = text.removeprefix("mailto:")
    if "<" in plain and "@" in plain:  # a name before the address
        plain = plain.rpartition("<")[2]
    return plain.strip(QUOTES) or text


def _bare_host(text: str) -> str:
    host = text.replace("\\", "/").lstrip("/").partition("/")[0].partition("?")[0].partition("#")[0]
    host = host.rpartition("@")[2]
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].rstrip(".")
    return bare or text[:MAX_TEXT]


@lru_cache(maxsize=KEPT_TEXTS)
def hosts_of(target: str) -> Texts:
    """Return the host that a destination names, if any: the part of a mail address, or a host itself."""
    if "@" in target:
        host = target.rpartition("@")[2].strip(QUOTES)
        return (host,) if host else ()
    is_host = "." in target and not {" ", "/"} & set(target) and not target.replace(".", "").isdigit()
    return (target,) if is_host else ()


def resources_of(noun: str, value: object) -> Texts:
    """Return resources in one spelling: `repo:x` under `resource` is what `x` is under `repo_name`."""
    return tuple([_resource(text, noun) for text in texts(value)])


@lru_cache(maxsize=KEPT_TEXTS)
def _resource(text: str, noun: str) -> str:
    head, colon, rest = text.partition(":")
    if colon and rest.strip("/ ") and not rest.startswith("//") and head in NOUNS:
        noun, text = NOUNS[head], rest.strip()
    if "://" in text:
        text = text.partition("://")[2].partition("?")[0].partition("#")[0][:MAX_PATH]
        return text.rstrip("/") or noun
    # Paths, files and owner/name speak for themselves
    if not noun or "/" in text or "." in text:
        return text.rstrip("/") or text
    return f"{noun}:{text}"


def url_resources(urls: Texts) -> Texts:
    return tuple([_resource(url if "://" in url else f"https://{url}", "") for url in urls])


def within_owner(resources: Texts, owner: str) -> Texts:
    """Return the resources with the owner stated beside a repository's bare name put before it."""
    return tuple(
        [f"{owner}/{name.removeprefix('repo:')}" if name.startswith("repo:") else name for name in resources]
    )


def containers_of(resources: Texts) -> Texts:
    """Return what holds each resource: a path's folder, a URL's host or bucket, the owner in `owner/name`."""
    return tuple([holder for resource in resources if (holder := _container(resource))])


@lru_cache(maxsize=KEPT_TEXTS)
def _container(resource: str) -> str:
    plain = resource.replace("\\", "/")
    if plain.startswith(("/", ".", "~")):
        return plain.rpartition("/")[0]
    return plain.partition("/")[0] if "/" in plain else ""
