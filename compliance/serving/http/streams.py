"""Answers too large to be put together: each piece is made once the client has taken those before."""

from dataclasses import dataclass
from typing import Protocol

from compliance.api.answers import Answer


class StreamBroken(Exception):
    """The rest of the body cannot be made."""


class PieceSource(Protocol):
    """The body of an answer in pieces. Its reader calls `stop` when it reads no further."""

    async def next(self) -> bytes:
        """Return the next piece, empty after the last. Raises: StreamBroken."""

    async def stop(self) -> None:
        """Let go of it, wherever it is; safe to repeat."""


@dataclass(frozen=True)
class StreamedAnswer(Answer):
    """An answer whose body follows in `pieces`."""

    pieces: PieceSource
