"""Signatures of HTTP requests (RFC 9421) in the profile of Web Bot Auth; reads no row and no clock.

The profile is draft-ietf-webbotauth-httpsig-protocol. To prove who sends one request, a signature must also
cover its method and its path, which the draft leaves to the signer.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import http_sf
from http_sf import StructuredFieldError

from delegation.agent_keys.errors import SignatureFault, SignatureRejected
from delegation.jose.dpop import DEFAULT_PORTS, WINDOW, Proof
from delegation.jose.holder_keys import HolderKey
from delegation.jose.tokens import is_thumbprint

TAG: Final = "web-bot-auth"
ALGORITHM: Final = "ed25519"
AGENT_FIELD: Final = "signature-agent"
LONGEST_LIFE: Final = timedelta(days=1)
"""The draft recommends no later `expires`; a signature counts for `WINDOW` after it was made, and once."""
MAX_LENGTH: Final = 8_192
MOST_COMPONENTS: Final = 30
ACCEPTED: Final = (
    f'sig1=("@method" "@authority" "@path" "{AGENT_FIELD}";key="sig1");created;expires;keyid;tag="{TAG}"'
)
"""`Accept-Signature` (RFC 9421 §5.1): what a signature must cover and say."""
_FIELD: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_TAGGED: Final = re.compile(rf';\s*tag="{TAG}"')

Component = tuple[Any, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as its client sent it: `uri` whole, with its query; names of `headers` in lower case."""

    method: str
    uri: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """A signature of one request, whose key is still to be found by `keyid`."""

    keyid: str
    nonce: str | None
    base: bytes
    value: bytes

    def checked(self, key: HolderKey) -> Proof:
        """Return what the signature proves, if the key made it; its base names it among used proofs.

        Raises: SignatureRejected.
        """
        if not key.signed(self.base, self.value):
            raise SignatureRejected(SignatureFault.INVALID, "the key did not make it for this request")
        return Proof(self.keyid, f"signature {hashlib.sha256(self.base).hexdigest()}", self.nonce)


def is_offered(headers: Mapping[str, str]) -> bool:
    """Return whether a request claims to be signed by an agent; signatures for other uses don't count."""
    return _TAGGED.search(headers.get("signature-input", "")) is not None


def read(request: SignedRequest, *, now: datetime) -> RequestSignature:
    """Read the one signature of an agent, made just now for this request. Raises: SignatureRejected."""
    covered, params, value = parsed(request.headers)
    _check_covered(covered)
    _check_times(params.get("created"), params.get("expires"), now)
    return signature_of(request, covered, params, value)


def parsed(headers: Mapping[str, str]) -> tuple[list[Component], dict[str, Any], bytes]:
    """Return what the one signature of an agent covers, its parameters and itself.

    Raises: SignatureRejected.
    """
    inputs = _dictionary(headers, "signature-input")
    tagged = [(label, *one) for label, one in inputs.items() if one[1].get("tag") == TAG]
    if len(tagged) != 1:
        raise _malformed(f"exactly one signature must have the tag {TAG}")
    ((label, covered, params),) = tagged
    value, _ = _dictionary(headers, "signature").get(label, (None, None))
    if not isinstance(covered, list) or not isinstance(value, bytes):
        raise _malformed("Signature and Signature-Input don't fit each other")
    if not all(isinstance(name, str) for name, _ in covered):
        raise _malformed("components must be named by texts")
    return covered, params, value


def signature_of(
    request: SignedRequest, covered: list[Component], params: dict[str, Any], value: bytes
) -> RequestSignature:
    """Return a parsed signature with its base, whatever it covers. Raises: SignatureRejected."""
    keyid, nonce = params.get("keyid"), params.get("nonce")
    if not isinstance(keyid, str) or not is_thumbprint(keyid):
        raise _malformed("keyid must be the thumbprint of a key")
    if params.get("alg", ALGORITHM) != ALGORITHM:
        raise _malformed(f"alg must be {ALGORITHM}")
    if not isinstance(nonce, str | None):
        raise _malformed("nonce must be a text")
    return RequestSignature(keyid, nonce, _base(request, covered, params), value)


def _malformed(description: str) -> SignatureRejected:
    return SignatureRejected(SignatureFault.MALFORMED, description)


def _unfit(description: str) -> SignatureRejected:
    return SignatureRejected(SignatureFault.COMPONENTS, description)


def _dictionary(headers: Mapping[str, str], name: str) -> Mapping[str, Any]:
    text = headers.get(name, "")
    if not text or len(text) > MAX_LENGTH:
        raise _malformed(f"{name} is missing or too long")
    try:
        return _parsed_dictionary(text)
    except (StructuredFieldError, ValueError) as error:
        raise _malformed(f"{name} can't be read") from error


@lru_cache(maxsize=8)
def _parsed_dictionary(text: str) -> Mapping[str, Any]:
    """Parse a dictionary once for all the members of it that one signature covers."""
    found = http_sf.parse(text.encode("ascii"), tltype="dictionary", on_duplicate_key=_refuse_twice)
    return MappingProxyType(dict(found) if isinstance(found, dict) else {})


def _refuse_twice(name: str, context: str) -> None:
    """Refuse what parsers differ on: which of two counts."""
    raise ValueError(f"{name} stands twice")


def _check_covered(covered: list[Component]) -> None:
    names = {name for name, _ in covered}
    is_enough = names >= {"@method", AGENT_FIELD, "@target-uri"}
    if not is_enough and not names >= {"@method", AGENT_FIELD, "@authority", "@path"}:
        raise _unfit(f"@method, @authority and @path (or @target-uri), and {AGENT_FIELD} must be covered")
    if len(covered) > MOST_COMPONENTS or len({str(one) for one in covered}) != len(covered):
        raise _unfit("too many components, or one twice")


def _check_times(created: Any, expires: Any, now: datetime) -> None:
    moment = now.timestamp()
    if type(created) is not int or type(expires) is not int:
        raise SignatureRejected(SignatureFault.TIMES, "created and expires are required")
    if abs(created - moment) > WINDOW.total_seconds():
        raise SignatureRejected(SignatureFault.TIMES, "created is too far from the time of this service")
    if not max(moment, created) < expires <= created + LONGEST_LIFE.total_seconds():
        raise SignatureRejected(SignatureFault.TIMES, "expires has passed, or is too late")


def _base(request: SignedRequest, covered: list[Component], params: dict[str, Any]) -> bytes:
    """The signature base (RFC 9421 §2.5). Raises: SignatureRejected."""
    lines = [f"{http_sf.ser(component)}: {_value(request, *component)}" for component in covered]
    stated = _serialized((covered, params))
    try:
        return "\n".join([*lines, f'"@signature-params": {stated}']).encode("ascii")
    except UnicodeEncodeError as error:
        raise _unfit("a covered component has other characters than ASCII") from error


def _serialized(member: Any) -> str:
    """The text of a dictionary's member (RFC 9651 §4.1.2), without its name."""
    return http_sf.ser({"a": member}).partition("=")[2]


def _value(request: SignedRequest, name: str, params: dict[str, Any]) -> str:
    """The value of a component (RFC 9421 §2.1, §2.1.2, §2.2). Raises: SignatureRejected."""
    if name.startswith("@"):
        found = None if params else _derived(request).get(name)
    elif not _FIELD.fullmatch(name) or (text := request.headers.get(name)) is None:
        found = None
    elif params.keys() == {"key"}:
        member = _dictionary(request.headers, name).get(params["key"])
        found = None if member is None else _serialized(member)
    else:
        found = None if params else text.strip()
    if found is None or not found.isprintable():
        raise _unfit(f"{name} is not in the request, or in a form that is not supported")
    return found


def _derived(request: SignedRequest) -> dict[str, str]:
    scheme, _, rest = request.uri.partition("://")
    host, _, target = rest.partition("/")
    authority = host.lower().removesuffix(f":{DEFAULT_PORTS.get(scheme)}")
    path, _, query = target.partition("?")
    return {
        "@method": request.method,
        "@target-uri": f"{scheme}://{authority}/{target}",
        "@authority": authority,
        "@scheme": scheme,
        "@request-target": f"/{target}",
        "@path": f"/{path}",
        "@query": f"?{query}",
    }
