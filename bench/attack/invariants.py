"""What holds for every answer of the service, whatever was asked."""

import re
from collections.abc import Collection, Iterable

from bench.attack.core import Siege
from bench.attack.wire import Reply

STANDING = ("x-content-type-options", "x-frame-options", "referrer-policy", "cross-origin-opener-policy")
# What the layers below the endpoints may always answer.
OF_THE_SERVER = frozenset({408, 414, 417, 431})
"""Refusals of requests that no operation sees; the description tells of them once."""
EVERYWHERE = OF_THE_SERVER | {400, 405, 413}
_LEAKS = re.compile(
    rb"Traceback \(most recent|site-packages|psycopg|django\.|rest_framework|/compliance/|PKCS11_|CKR_"
    rb"|DETAIL: |password=|BEGIN (?:RSA |EC )?PRIVATE KEY"
)


def broken(
    reply: Reply, *, documented: Collection[int] | None = None, is_layer: bool = False
) -> Iterable[str]:
    """The rules that an answer breaks; `is_layer`: the HTTP layer wrote it, without the standing headers."""
    if reply.status >= 500 and not _is_excused(reply):
        yield f"a {reply.status}"
    if documented is not None and reply.status not in documented and reply.status not in EVERYWHERE:
        yield f"an undocumented {reply.status}"
    if reply.status >= 400:
        yield from _envelope(reply)
    if reply.header("set-cookie") is not None:
        yield "a cookie"
    if not (is_layer or _is_layers(reply)):
        missing = [name for name in STANDING if reply.header(name) is None]
        if missing:
            yield f"a {reply.status} without {', '.join(missing)}"
    # What succeeds may show what a caller wrote, which may be such words.
    if reply.status >= 400 and _LEAKS.search(reply.body):
        yield "the body tells of the inside"


def check(
    siege: Siege,
    reply: Reply,
    what: object,
    *,
    where: str,
    documented: Collection[int] | None = None,
    is_layer: bool = False,
    is_bodiless: bool = False,
) -> None:
    """Note each broken rule."""
    for rule in broken(reply, documented=documented, is_layer=is_layer):
        if not (is_bodiless and rule.startswith("an error")):
            siege.report(rule, where, f"{what} → {reply}")


def _is_layers(reply: Reply) -> bool:
    """Whether the HTTP layer wrote it: it ends the connection then, or has no room."""
    return reply.ends_connection if reply.status in EVERYWHERE else reply.status == 503 and _is_excused(reply)


def _is_excused(reply: Reply) -> bool:
    """A full house says so, and the resolver of DIDs answers 501 as W3C has it; all else is a defect."""
    if reply.status == 503:
        return b"At capacity" in reply.body
    return reply.status == 501 and b"methodNotSupported" in reply.body


def _envelope(reply: Reply) -> Iterable[str]:
    kind = (reply.header("content-type") or "").partition(";")[0].strip()
    if kind != "application/json":
        yield f"an error {reply.status} of type {kind or '(none)'}"
        return
    found = reply.json
    is_resolution = isinstance(found, dict) and "didResolutionMetadata" in found
    names = (
        set(found) - {"didDocument", "didResolutionMetadata", "didDocumentMetadata"}
        if is_resolution
        else found
    )
    if isinstance(found, dict) and found.keys() == {"code", "message"}:
        return  # google.rpc.Status, as OTLP has it
    is_oauth = isinstance(found, dict) and isinstance(found.get("error_description"), str)
    expected = {"error", "error_description"} if is_oauth else {"error"}
    is_sound = isinstance(found, dict) and set(names) == expected and isinstance(found["error"], str)
    if not is_sound or not found["error"]:
        yield f"an error {reply.status} out of the envelope"
