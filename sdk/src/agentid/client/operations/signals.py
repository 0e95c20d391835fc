"""Streams of signals: what ends authority, told as Security Event Tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from agentid.client import answers
from agentid.client.operation import Group, S, operation
from agentid.client.records import record
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.signals import Polled, SignalStream, SignalStreamStatus, Transmitter


class Signals(Group[S]):
    """Streams of signals: what ends authority, told as Security Event Tokens."""

    @operation("getSsfConfiguration")
    def configuration(self, *, environment: str | None = None) -> Request[Transmitter]:
        """What receivers need to know of the service."""
        return Request(
            "GET",
            "/.well-known/ssf-configuration",
            answers.bare(Transmitter),
            query=given(environment=environment),
        )

    @operation("createSignalStream")
    def create(
        self,
        *,
        delivery: Mapping[str, str] | None = None,
        events_requested: Sequence[str] | None = None,
        description: str | None = None,
        aud: str | None = None,
        idempotency_key: str = "",
    ) -> Request[SignalStream]:
        """Make a stream; it is polled unless `delivery` says otherwise."""
        return Request(
            "POST",
            "/v1/ssf/streams",
            answers.bare(SignalStream),
            **as_json(
                given(delivery=delivery, events_requested=events_requested, description=description, aud=aud)
            ),
            key=idempotency_key,
        )

    @operation("getSignalStreams")
    def streams(self, stream_id: str | None = None) -> Request[tuple[SignalStream, ...]]:
        """All streams, newest first, or the one named."""
        return Request("GET", "/v1/ssf/streams", _one_or_all, query=given(stream_id=stream_id))

    @operation("updateSignalStream")
    def update(
        self,
        stream_id: str,
        *,
        delivery: Mapping[str, str] | Unset = UNSET,
        events_requested: Sequence[str] | Unset = UNSET,
        description: str | Unset = UNSET,
    ) -> Request[SignalStream]:
        """Change a stream; a `delivery` replaces the old one as a whole."""
        fields = changed(delivery=delivery, events_requested=events_requested, description=description)
        return Request(
            "PATCH",
            "/v1/ssf/streams",
            answers.bare(SignalStream),
            **as_json({"stream_id": stream_id, **fields}),
        )

    @operation("deleteSignalStream")
    def delete(self, stream_id: str) -> Request[None]:
        """Remove a stream and what waits in it."""
        return Request(
            "DELETE", "/v1/ssf/streams", answers.nothing, query={"stream_id": stream_id}, repeatable=True
        )

    @operation("pollSignals")
    def poll(
        self,
        stream_id: str,
        *,
        ack: Sequence[str] | None = None,
        set_errs: Mapping[str, Mapping[str, str]] | None = None,
        max_events: int | None = None,
        return_immediately: bool | None = None,
    ) -> Request[Polled]:
        """Acknowledge what was taken, then take what waits; each token comes until it is acknowledged."""
        asked = given(ack=ack, setErrs=set_errs, maxEvents=max_events, returnImmediately=return_immediately)
        return Request(
            "POST",
            path("/v1/ssf/streams/{}/poll", stream_id),
            Polled.of,
            **as_json(asked),
            repeatable=True,
        )

    @operation("getSignalStreamStatus")
    def status(self, stream_id: str) -> Request[SignalStreamStatus]:
        """A stream's status."""
        return Request(
            "GET", "/v1/ssf/status", answers.bare(SignalStreamStatus), query={"stream_id": stream_id}
        )

    @operation("setSignalStreamStatus")
    def set_status(
        self, stream_id: str, *, status: str, reason: str | None = None
    ) -> Request[SignalStreamStatus]:
        """Enable, pause (keeps what happens) or disable (drops it) a stream."""
        return Request(
            "POST",
            "/v1/ssf/status",
            answers.bare(SignalStreamStatus),
            **as_json(given(stream_id=stream_id, status=status, reason=reason)),
        )

    @operation("verifySignalStream")
    def verify(self, stream_id: str, *, state: str | None = None) -> Request[None]:
        """Ask for a verification event, which comes behind what waits."""
        return Request(
            "POST", "/v1/ssf/verify", answers.nothing, **as_json(given(stream_id=stream_id, state=state))
        )


def _one_or_all(answer: httpx.Response) -> tuple[SignalStream, ...]:
    found: Any = answers.json_of(answer)
    return tuple(record(SignalStream, each) for each in (found if isinstance(found, list) else [found]))
