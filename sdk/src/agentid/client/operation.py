"""Operations: written once as methods that describe a request, called over either transport."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from agentid.client.records import Page
from agentid.client.request import Request
from agentid.client.transport import AsyncTransport, Transport
from agentid.errors import UnexpectedAnswer

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", Transport, AsyncTransport)


class Group(Generic[S]):
    """Operations on one kind of thing, over one transport."""

    def __init__(self, transport: S) -> None:
        self.transport: S = transport


class Operation(Generic[P, T]):
    """A described request that becomes a call: of a blocking group its result, of an async one awaitable."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Request[T]], operation_id: str) -> None:
        self.describe = describe
        self.operation_id = operation_id
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: object) -> Self: ...

    @overload
    def __get__(self, group: Group[Transport], owner: object) -> Callable[P, T]: ...

    @overload
    def __get__(self, group: Group[AsyncTransport], owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, group: Group[Any] | None, owner: object) -> Callable[P, Any] | Self:
        if group is None:
            return self

        @wraps(self.describe)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:
            return group.transport.send(self.describe(group, *arguments, **named))

        return call


class Listing(Generic[P, T]):
    """A described page that becomes an iterator over the rows of all pages, newest first."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Request[Page[T]]], operation_id: str) -> None:
        self.describe = describe
        self.operation_id = operation_id
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: Group[Transport], owner: object) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, group: Group[AsyncTransport], owner: object) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, group: Group[Any], owner: object) -> Callable[P, Any]:
        walk = _pages if isinstance(group.transport, Transport) else _async_pages

        @wraps(self.describe)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:
            return walk(group.transport, self.describe(group, *arguments, **named))

        return call


def operation(
    operation_id: str,
) -> Callable[[Callable[Concatenate[Any, P], Request[T]]], Operation[P, T]]:
    """Make a call of a method that describes its request; the id is that of `/v1/schema`."""
    return lambda describe: Operation(describe, operation_id)


def listing(
    operation_id: str,
) -> Callable[[Callable[Concatenate[Any, P], Request[Page[T]]]], Listing[P, T]]:
    """Make an iterator of a method that describes the request for a page."""
    return lambda describe: Listing(describe, operation_id)


def _pages(transport: Transport, request: Request[Page[T]]) -> Iterator[T]:
    while True:
        page = transport.send(request)
        yield from page.items
        if page.next_cursor is None:
            return
        request = _next(request, page.next_cursor)


async def _async_pages(transport: AsyncTransport, request: Request[Page[T]]) -> AsyncIterator[T]:
    while True:
        page = await transport.send(request)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        request = _next(request, page.next_cursor)


def _next(request: Request[Page[T]], cursor: str) -> Request[Page[T]]:
    """The request for the next page. Raises: UnexpectedAnswer if it is the same again."""
    following = request.after(cursor)
    if following.query == request.query:
        raise UnexpectedAnswer("next_cursor: leads nowhere")
    return following
