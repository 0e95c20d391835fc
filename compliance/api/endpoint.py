"""The definition of an endpoint of the fast path, the same for both of its entrances.

A definition says who may call, how a request is read, what the work is, and how its outcome is shown.
Django's view calls it for one request (`compliance.api.rest.endpoints.respond`), the fast path in the event
loop for all that arrived together (`compliance.serving.fast_path`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar
from uuid import UUID

from compliance.api import gate
from compliance.api.gate import GateRequest, Scope
from compliance.core.environments import Environment
from compliance.stores import asking
from compliance.stores.asking import Asker, ThreadAsker

Question = TypeVar("Question")
Outcome = TypeVar("Outcome")


PUBLIC_HEADERS: Final = {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": (
        "ETag, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
    ),
}
"""Headers by which a page of any origin may read what anyone may read."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """What an endpoint reads of a request.

    `parameter` is the segment that the path leaves open, `query` has the value of each name, `body` is
    parsed (None without one). `tenant_id` and `key_id` are the caller's where a key is needed. Names in
    `headers` are looked up in lower case.
    """

    received_at: datetime
    parameter: str
    query: Mapping[str, str]
    body: Any
    tenant_id: UUID | None
    headers: Mapping[str, str]
    key_id: UUID | None = None


@dataclass(frozen=True)
class Deferred(Generic[Outcome]):
    """The place of an outcome that takes longer than its group: `work` finds it, in any thread."""

    work: Callable[[], Outcome | Exception]


class Endpoint(ABC, Generic[Question, Outcome]):
    """One operation of the API, whose work a thread does on the fast path.

    A `path` that ends in a slash has one segment more, its parameter.
    """

    method: ClassVar[str]
    path: ClassVar[str]
    bucket: ClassVar[str]
    """Name of the rate limit; it counts for each API key if `scope` is set, else for each client address."""
    allow: ClassVar[str]
    """The methods of the path, for the `Allow` header."""
    scope: ClassVar[Scope | None] = None  # what the caller's key must hold; None: anyone may call
    status: ClassVar[int] = 200
    headers: ClassVar[Mapping[str, str]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Values of the parameter that are paths of other endpoints."""
    full: ClassVar[str] = "At capacity; retry with backoff"
    """The message of the 503 when too many wait."""
    largest_group: ClassVar[int] = 100
    """How many questions are worked on together."""
    longest_queue: ClassVar[int] = 1_000  # how many questions of one environment may wait in one process
    worth_a_group: ClassVar[int] = 1
    longest_gathering: ClassVar[float] = 0.0
    """How the fast path gathers groups; see `compliance.serving.batching.Batcher`."""

    @property
    def route(self) -> str:
        """The path with `{}` in place of its parameter, as metrics name it."""
        return f"{self.path}{{}}" if self.path.endswith("/") else self.path

    def key_of(self, request: GateRequest) -> str:
        """The API key that a request presents; "" without one."""
        return gate.bearer_token(request) or ""

    @abstractmethod
    def read(self, request: EndpointRequest) -> Question:
        """The question a request puts. Raises: ServiceError for a malformed one."""

    def requests_in(self, question: Question) -> int:
        """How many requests a question with a key counts as, unless the size of its body counts as more."""
        return 1

    @abstractmethod
    def work(self, questions: Sequence[Question]) -> "Sequence[Outcome | Exception | Deferred[Outcome]]":
        """The outcome of each question, in order, in the current environment. Raises: Django's errors."""

    @abstractmethod
    def show(self, outcome: Outcome) -> Mapping[str, Any]:
        """The body of the answer."""

    def headers_of(self, outcome: Outcome) -> Mapping[str, str]:
        """Headers of the answer beside `headers`."""
        return {}

    def environment_of(self, question: Question) -> Environment:
        """Where a question of a public endpoint is answered."""
        raise NotImplementedError

    def outcome_of(self, question: Question) -> Outcome:
        """The outcome of one question in the current environment. Raises: ServiceError, Django's errors."""
        (found,) = self.work([question])
        outcome = found.work() if isinstance(found, Deferred) else found
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class LoopEndpoint(Endpoint[Question, Outcome]):
    """An operation whose work asks a few statements and computes little: the event loop does it.

    Django refuses the ORM in the loop (`SynchronousOnlyOperation`). Work that uses it is done again from the
    beginning in a thread, so it may use it only before it has sent any command: a command that was sent twice
    would meet its own effect. Fields deferred by `from_db()` count as uses.
    """

    @abstractmethod
    async def answer(
        self, questions: Sequence[Question], asker: Asker
    ) -> "Sequence[Outcome | Exception | Deferred[Outcome]]":
        """The outcome of each question, in order; awaits nothing but the asker. Raises: Django's errors."""

    def work(self, questions: Sequence[Question]) -> "Sequence[Outcome | Exception | Deferred[Outcome]]":
        return asking.run(self.answer(questions, ThreadAsker()))
