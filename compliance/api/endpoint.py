"""The definition of an endpoint of the hot paths, the same for both of its entrances.

A definition says who may call, how a request is read, what the work is, and how its outcome is shown.
Django's view calls it for one request (`compliance.api.rest.endpoints.respond`), the fast path in the event
loop for all that arrived together (`compliance.serving.fast_path`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from compliance.api import exceptions, gate
from compliance.api.gate import GateRequest
from compliance.api.rest.parsers import read_json
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import Credential
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.stores import sql, trips
from compliance.stores.async_postgres import Query, Rows
from compliance.stores.trips import Steps

Question = TypeVar("Question")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """What an endpoint reads of a request.

    `parameter` is the segment that the path leaves open, `query` has the last value of each name, `body` is
    what the endpoint's `body_of` made of it (None without one). `tenant_id` and `key_id` are the caller's
    where a key is needed. Names in `headers` are looked up in lower case.
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
    """One operation of the API.

    A `path` that ends in a slash has one segment more, its parameter, and after that the `suffix`.
    """

    method: ClassVar[str]
    path: ClassVar[str]
    suffix: ClassVar[str] = ""
    bucket: ClassVar[str]
    """Name of the rate limit; it counts for each API key if `scope` is set, else for each client address."""
    allow: ClassVar[str]
    """The methods of the path, for the `Allow` header."""
    scope: ClassVar[Scope | None] = None  # what the caller's key must hold; None: anyone may call
    status: ClassVar[int] = 200
    headers: ClassVar[Mapping[str, str]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Values of the parameter that are paths of other endpoints."""
    takes_query: ClassVar[bool] = True  # whether the fast path serves requests with a query string
    media_types: ClassVar[frozenset[str]] = gate.JSON_TYPES
    """What a `Content-Type` may be, in lower case, for the fast path to read the body."""
    full: ClassVar[str] = "At capacity; retry with backoff"
    """The message of the 503 when too many wait."""
    largest_group: ClassVar[int] = 100
    """How many questions are worked on together; 1: each is asked alone, and tenants share connections."""
    longest_queue: ClassVar[int] = 1_000  # how many questions of one environment may wait in one process

    @property
    def route(self) -> str:
        """The path with `{}` in place of its parameter, as metrics name it."""
        return f"{self.path}{{}}{self.suffix}" if self.path.endswith("/") else self.path

    def key_of(self, request: GateRequest, body: bytes) -> str:
        """The API key that a request presents; "" without one, or to leave the request to the view."""
        return gate.bearer_token(request) or ""

    def fits(self, request: GateRequest, body: bytes, key: Credential) -> bool:
        """Whether a request names no other caller than its key; else the view has to judge it."""
        return True

    def body_of(self, octets: bytes) -> Any:
        """The parsed body of a POST. Raises: ServiceError, REST framework's ParseError."""
        return read_json(octets)

    @abstractmethod
    def read(self, request: EndpointRequest) -> Question:
        """The question a request puts. Raises: ServiceError for a malformed one."""

    @abstractmethod
    def work(self, questions: Sequence[Question]) -> "Sequence[Outcome | Exception | Deferred[Outcome]]":
        """The outcome of each question, in order, in the current environment. Raises: Django's errors."""

    @abstractmethod
    def show(self, outcome: Outcome) -> Mapping[str, Any]:
        """The body of the answer."""

    def headers_of(self, outcome: Outcome) -> Mapping[str, str]:
        """Headers of the answer beside `headers`."""
        return {}

    def refusal(
        self, error: Exception, request: GateRequest
    ) -> tuple[int, Mapping[str, str], Mapping[str, str]] | None:
        """Status, body and headers of the answer to an error; None for a defect."""
        found = exceptions.error_parts(error)
        return None if found is None else (found[0], {"error": found[1]}, found[2])

    def environment_of(self, question: Question) -> Environment | None:
        """Where a question of a public endpoint is answered; None: in neither environment."""
        return None

    def outcome_of(self, question: Question) -> Outcome:
        """The outcome of one question in the current environment. Raises: ServiceError, Django's errors."""
        (found,) = self.work([question])
        outcome = found.work() if isinstance(found, Deferred) else found
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class ReadEndpoint(Endpoint[Question, Outcome]):
    """An endpoint whose work is one statement as a rule, asked by either entrance in its own way."""

    @abstractmethod
    def query(self, questions: Sequence[Question]) -> Query:
        """The statement that finds the rows of all questions."""

    def second_query(self, questions: Sequence[Question], rows: Rows) -> Query | None:
        """A statement for what the first one, which found these rows, has to leave open."""
        return None

    @abstractmethod
    def outcomes(
        self, questions: Sequence[Question], rows: Sequence[Sequence[Any]]
    ) -> Sequence[Outcome | ServiceError]:
        """The outcome of each question, in order, that the rows make."""

    def work(self, questions: Sequence[Question]) -> Sequence[Outcome | ServiceError]:
        rows = sql.asked(*self.query(questions))
        if rest := self.second_query(questions, rows):
            rows = [*rows, *sql.asked(*rest)]
        return self.outcomes(questions, rows)


class ThreadEndpoint(Endpoint[Question, Outcome]):
    """An endpoint whose work is more than one statement: it writes, asks several times, or computes.

    A thread does it on the fast path, unless it is in steps (`SteppedEndpoint`).
    """

    worth_a_group: ClassVar[int] = 1
    longest_gathering: ClassVar[float] = 0.0
    """How the fast path gathers groups; see `compliance.serving.batching.Batcher`."""
    calls_tenants: ClassVar[bool] = False
    """Whether deferred work may wait for a tenant's own server, and so gets threads apart from the others."""

    def warm(self) -> None:
        """Open the connections the work needs; called once, in the thread of the live environment."""


class SteppedEndpoint(ThreadEndpoint[Question, Outcome]):
    """An endpoint whose work asks in steps and computes little, so that the event loop can run it.

    Django refuses the ORM in the loop (`SynchronousOnlyOperation`). Steps that use it are run again from the
    beginning in the thread, so they may use it only before their first trip with commands: a command that
    was sent twice would meet its own effect. Fields deferred by `from_db()` count as uses.
    """

    largest_group = 8  # the loop answers nobody else while it computes for a group
    longest_queue = 200  # some 25 groups, one after the other

    @abstractmethod
    def steps(
        self, questions: Sequence[Question]
    ) -> "Steps[Sequence[Outcome | Exception | Deferred[Outcome]]]":
        """The work in steps (`compliance.stores.trips`); its outcome is that of `work()`."""

    def work(self, questions: Sequence[Question]) -> "Sequence[Outcome | Exception | Deferred[Outcome]]":
        return trips.run(self.steps(questions))
