"""What a connection and the listener that accepted it ask of each other."""

from enum import Enum
from typing import Protocol

from compliance.api.answers import Answer
from compliance.serving.http.messages import Received


class WatchedConnection(Protocol):
    """A connection, as its listener sees it."""

    @property
    def idle_since(self) -> float:
        """When its idle time began, in the loop's seconds; infinity unless it is idle."""

    def check_deadline(self, now: float) -> None:
        """Act on a deadline that has passed; `now` is the loop's time."""

    def end_if_idle(self) -> None:
        """Close a connection on which no request is under way."""


class Admission(Enum):
    """Whether a worker takes one more connection."""

    ACCEPT = "accept"
    REFUSE = "refuse, with an answer"
    CLOSE = "close, without an answer"


class ConnectionOwner(Protocol):
    """What a connection asks of the listener that accepted it."""

    largest_body: int
    body_seconds: float
    is_stopping: bool

    async def answer(self, request: Received) -> Answer:
        """The answer to a request; raises nothing."""

    def refused(self, status: int) -> None:
        """Take note of a request that was refused before its end."""

    def opened(self, connection: WatchedConnection) -> Admission:
        """Take note of a new connection; whether there is room for it."""

    def closed(self, connection: WatchedConnection) -> None:
        """Take note of a connection's end."""
