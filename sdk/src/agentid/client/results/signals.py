"""Answers about signals: OpenID SSF 1.0 and RFC 8936."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from agentid.client.answers import json_object
from agentid.client.records import Record
from agentid.errors import UnexpectedAnswer


@dataclass(frozen=True, kw_only=True)
class Transmitter(Record):
    """What a receiver needs to know of the service."""

    issuer: str
    jwks_uri: str
    delivery_methods_supported: tuple[str, ...]
    configuration_endpoint: str
    status_endpoint: str
    verification_endpoint: str


@dataclass(frozen=True, kw_only=True)
class StreamDelivery(Record):
    """How signals reach the receiver."""

    method: str
    endpoint_url: str


@dataclass(frozen=True, kw_only=True)
class SignalStream(Record):
    """A stream; `aud` is in each of its tokens."""

    stream_id: str
    iss: str
    aud: str
    events_supported: tuple[str, ...]
    events_requested: tuple[str, ...]
    events_delivered: tuple[str, ...]
    delivery: StreamDelivery
    min_verification_interval: int
    description: str


@dataclass(frozen=True, kw_only=True)
class SignalStreamStatus(Record):
    """Whether a stream is enabled, paused or disabled."""

    stream_id: str
    status: str
    reason: str


@dataclass(frozen=True)
class Polled:
    """Tokens by their `jti`, in the order of what happened, and whether more wait."""

    tokens: Mapping[str, str]
    more: bool

    @classmethod
    def of(cls, answer: httpx.Response) -> "Polled":
        """Read a poll's answer (RFC 8936 §2.3). Raises: UnexpectedAnswer."""
        body = json_object(answer)
        tokens, more = body.get("sets"), body.get("moreAvailable", False)
        if not isinstance(tokens, dict) or not isinstance(more, bool):
            raise UnexpectedAnswer("not an answer to a poll")
        if not all(isinstance(each, str) for each in tokens.values()):
            raise UnexpectedAnswer("sets: a token that is no text")
        return cls(tokens, more)
