"""One call described as data: what is sent, and how its answer is read. No I/O."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx

T = TypeVar("T")
U = TypeVar("U")


class Prove(Protocol):
    """Makes a DPoP proof for a method and a URL, as `DpopKey.proof` does."""

    def __call__(self, method: str, url: str, /, *, nonce: str | None = None) -> str: ...


class Unset(Enum):
    """Marks an argument that was not given, where None means null."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return self.name


UNSET: Final = Unset.UNSET


@dataclass(frozen=True)
class Request(Generic[T]):
    """A call of one endpoint.

    `key` is the Idempotency-Key; an empty one asks the transport to make one, None says that the endpoint
    takes none. `repeatable` says that a second try does no harm even without a key. `prove` makes a proof of
    possession for each try, with the `nonce` that the service asked for.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    read: Callable[[httpx.Response], T] = field(repr=False)
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str | None = None
    repeatable: bool = False
    prove: Prove | None = field(default=None, repr=False)
    nonce: str | None = None

    @property
    def may_repeat(self) -> bool:
        """A proof that was given ready-made counts once only."""
        return "DPoP" not in self.headers and self._is_repeatable

    @property
    def _is_repeatable(self) -> bool:
        return self.method == "GET" or self.repeatable or self.key is not None

    def followed_by(self, further: Callable[[T], U]) -> "Request[U]":
        """The same call, whose result `further` reads on."""
        same: Any = self
        found: Request[U] = replace(same, read=lambda answer: further(self.read(answer)))
        return found

    def after(self, cursor: str) -> Self:
        """The same list from a cursor on."""
        return replace(self, query={**self.query, "before": cursor})


def path(template: str, *values: object) -> str:
    """Fill the braces of a path, a segment each. Raises: ValueError for one that leads elsewhere."""
    if any(str(value) in ("", ".", "..") for value in values):
        raise ValueError("an empty name, or a name of dots")
    return template.format(*(quote(str(value), safe="") for value in values))


def segments(text: str) -> str:
    """Text as segments of a path, divided by slashes. Raises: ValueError."""
    return "/".join(path("{}", segment) for segment in text.split("/"))


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given, without those that are None or UNSET."""
    return {name: value for name, value in fields.items() if value is not None and value is not UNSET}


def changed(**fields: Any) -> dict[str, Any]:
    """The fields that were given; None is sent as null."""
    return {name: value for name, value in fields.items() if value is not UNSET}


def as_json(body: Any, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The arguments of a `Request` that sends JSON, with further headers."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return {"content": text.encode(), "headers": {"Content-Type": "application/json", **(headers or {})}}


def as_form(fields: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a `Request` that sends a form."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return {"content": str(httpx.QueryParams(fields)).encode(), "headers": kind}


def proven(sent: dict[str, Any], proof: str | Prove | None) -> dict[str, Any]:
    """The arguments of a `Request` that shows a DPoP proof, if there is one (RFC 9449 §4.1)."""
    if proof is None:
        return sent
    if isinstance(proof, str):
        return {**sent, "headers": {**sent["headers"], "DPoP": proof}}
    return {**sent, "prove": proof}


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
