"""Operations: signatures of the OpenAPI description, called over either transport."""

import inspect
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property, wraps
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    get_origin,
    get_type_hints,
    overload,
)
from urllib.parse import quote
from uuid import UUID

import httpx

from agentid.client.records import camel, json_of, member, read
from agentid.client.transport import AsyncTransport, Request, Transport, completed, settled
from agentid.errors import UnexpectedAnswer

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", Transport, AsyncTransport)
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
ROUTED_BY: Final = "X-Agent-Id"  # by it a balancer may send all events of an agent to one node


class Unset(Enum):
    """Marks an argument that was not given, where None means null."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return self.name


UNSET: Final = Unset.UNSET


class Group(Generic[S]):
    """Operations on one kind of thing, over one transport."""

    def __init__(self, transport: S) -> None:
        self.transport: S = transport


class Operation(Generic[P, T]):
    """A described call: of a blocking group it returns its result, of an async one an awaitable.

    Arguments that the path names are filled in; `idempotency_key` and `proof` become headers; the others are
    the query of GET and DELETE, else the body, which is JSON unless `body` names another kind. The result is
    read from `data`, or from the whole body if it is `bare`. `camel` says that the service spells names so.
    """

    def __init__(
        self,
        described: Callable[Concatenate[Any, P], T],
        method: Method,
        path: str,
        *,
        accept: str = JSON,
        body: str = JSON,
        bare: bool = False,
        camel: bool = False,
        repeatable: bool = False,
    ) -> None:
        self.described, self.method, self.path = described, method, path
        self.accept, self.body, self.is_bare = accept, body, bare
        self.is_camel, self.is_repeatable = camel, repeatable
        self.signature = inspect.signature(described)
        self.__doc__ = described.__doc__

    @overload
    def __get__(self, group: None, owner: object) -> Self: ...

    @overload
    def __get__(self, group: Group[Transport], owner: object) -> Callable[P, T]: ...

    @overload
    def __get__(self, group: Group[AsyncTransport], owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, group: Group[Any] | None, owner: object) -> Callable[P, Any] | Self:
        if group is None:
            return self

        @wraps(self.described)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:
            return group.transport.run(self.send(group.transport, self.request(*arguments, **named)))

        return call

    async def send(self, transport: Transport | AsyncTransport, request: Request) -> T:
        return self.read(await settled(transport.send(request)))

    def request(self, *arguments: P.args, **named: P.kwargs) -> Request:
        """Describe the call. Raises: ValueError for a name that would lead to another path."""
        bound = self.signature.bind(None, *arguments, **named)
        bound.apply_defaults()
        values = {name: value for name, value in bound.arguments.items() if name != "self"}
        path = re.sub(r"{(\w+)}", lambda found: _segment(found[1], values.pop(found[1])), self.path)
        key, proof = values.pop("idempotency_key", None), values.pop("proof", None)
        headers = {"Accept": self.accept} | ({"DPoP": proof} if isinstance(proof, str) else {})
        sent = {
            camel(name) if self.is_camel else name.rstrip("_"): value
            for name, value in values.items()
            if not ((value is None or value is UNSET) and value is self.signature.parameters[name].default)
        }
        query: dict[str, Any] = {}
        content = None
        if self.method in ("GET", "DELETE"):
            query = {
                name: _plain(each) if isinstance(each, datetime) else each for name, each in sent.items()
            }
        elif values:
            headers["Content-Type"] = self.body
            content = self._content(sent)
        agent = sent.get("agentId")
        if isinstance(agent, str) and agent.isascii() and agent.isprintable():
            headers[ROUTED_BY] = agent
        return Request(
            self.method,
            path,
            query=query,
            content=content,
            headers=headers,
            key=key,
            repeatable=self.is_repeatable and not _uses_receipt(sent),
            prove=None if isinstance(proof, str) else proof,
        )

    def read(self, answer: httpx.Response) -> T:
        """Read the result of an answer. Raises: UnexpectedAnswer."""
        found: Any = None
        if self.result is bytes:
            found = answer.content
        elif self.result is str:
            found = answer.text
        elif self.result is not type(None):
            value = json_of(answer) if self.is_bare else member(json_of(answer), "data")
            # A bare list is that of all streams, or the one stream that was asked for.
            is_one = self.is_bare and get_origin(self.result) is tuple and isinstance(value, dict)
            found = read(self.result, [value] if is_one else value, self.described.__qualname__)
        return found  # type: ignore[no-any-return]

    @cached_property
    def result(self) -> Any:
        return get_type_hints(self.described)["return"]

    def _content(self, sent: dict[str, Any]) -> bytes:
        if self.body == JSON:
            text = json.dumps(
                sent, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
            )
            return text.encode()
        if self.body == FORM:
            return str(httpx.QueryParams(sent)).encode()
        found: bytes = sent["request"]
        return found


class Listing(Operation[P, T]):
    """A described list that becomes an iterator over the rows of all pages, newest first."""

    @overload  # type: ignore[override]
    def __get__(self, group: Group[Transport], owner: object) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, group: Group[AsyncTransport], owner: object) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, group: Group[Any], owner: object) -> Callable[P, Any]:
        is_blocking = isinstance(group.transport, Transport)

        @wraps(self.described)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:
            rows = self._pages(group.transport, self.request(*arguments, **named))
            return _each(rows) if is_blocking else rows

        return call

    async def _pages(
        self, transport: Transport | AsyncTransport, request: Request | None
    ) -> AsyncGenerator[T]:
        while request is not None:
            answer = json_of(await settled(transport.send(request)))
            kind: Any = tuple[self.result, ...]  # type: ignore[name-defined]
            for row in read(kind, member(answer, "data"), self.described.__qualname__):
                yield row
            request = _next(request, member(answer, "next_cursor"))


def operation(
    method: Method, path: str, **how: Any
) -> Callable[[Callable[Concatenate[Any, P], T]], Operation[P, T]]:
    """Make a call of a signature; `how` are options of `Operation`."""
    return lambda described: Operation(described, method, path, **how)


def listing(path: str) -> Callable[[Callable[Concatenate[Any, P], T]], Listing[P, T]]:
    """Make an iterator of a signature that returns a row."""
    return lambda described: Listing(described, "GET", path)


def _each(rows: AsyncGenerator[T]) -> Iterator[T]:
    """Iterate over what needs no event loop."""
    while True:
        try:
            yield completed(rows.asend(None))
        except StopAsyncIteration:
            return


def _next(request: Request, cursor: Any) -> Request | None:
    """The request for the next page, if there is one. Raises: UnexpectedAnswer if it is the same again."""
    if cursor is None:
        return None
    if not isinstance(cursor, str) or request.query.get("before") == cursor:
        raise UnexpectedAnswer("next_cursor: leads nowhere")
    return replace(request, query={**request.query, "before": cursor})


def _uses_receipt(sent: Mapping[str, Any]) -> bool:
    """Whether an approval's receipt is sent; it is good once, so that a second try would be denied."""
    items = sent.get("evaluations")
    asked = [sent, *(items if isinstance(items, Sequence) else ())]
    contexts = (each.get("context") for each in asked if isinstance(each, Mapping))
    return any(isinstance(each, Mapping) and bool(each.get("approval")) for each in contexts)


def _segment(name: str, value: object) -> str:
    """Text as a segment of a path; a `path` may be several. Raises: ValueError if it leads elsewhere."""
    segments = str(value).split("/") if name == "path" else [str(value)]
    if any(each in ("", ".", "..") for each in segments):
        raise ValueError("an empty name, or a name of dots")
    return "/".join(quote(each, safe="") for each in segments)


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
