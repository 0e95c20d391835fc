"""Actions on streams in the console; each makes one service call."""

from typing import Any

from django import forms

from auditlog.actors.requests import actor_of
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.signals import streams
from compliance.signals.vocabulary import StreamStatus


def _set_status(call: ActionCall, status: StreamStatus, **reason: str) -> None:
    stream: Any = call.row
    streams.set_status(
        tenant_id=stream.tenant_id,
        stream_id=stream.id,
        status=status,
        is_announced=True,
        actor=actor_of(call.request),
        now=call.now,
        **reason,
    )


def _pause(call: ActionCall) -> str:
    _set_status(call, StreamStatus.PAUSED, reason=call.data["reason"][:255])
    return "The stream is paused."


def _resume(call: ActionCall) -> str:
    _set_status(call, StreamStatus.ENABLED)
    return "The stream is enabled; what waited is on its way."


def _verify(call: ActionCall) -> str:
    stream = call.row
    common: Any = {"actor": actor_of(call.request), "now": call.now}
    streams.request_verification(tenant_id=stream.tenant_id, stream_id=stream.id, **common)
    return "A verification event is on its way, behind what waits."


STREAM_ACTIONS = (
    ConfirmedAction(
        *("verify", "Send verification", "send"),
        "Sends a verification event to this receiver, behind what waits.",
        _verify,
        is_offered=lambda row: row.status != StreamStatus.DISABLED,
        roles=DEVELOPERS,
        form_class=forms.Form,
    ),
    ConfirmedAction(
        *("pause", "Pause", "pause"),
        "Sends nothing until the stream is resumed; what happens meanwhile is kept.",
        _pause,
        is_offered=lambda row: row.status == StreamStatus.ENABLED,
        roles=DEVELOPERS,
    ),
    ConfirmedAction(
        *("resume", "Resume", "play_arrow"),
        "Sends what was kept, and what happens from now on.",
        _resume,
        is_offered=lambda row: row.status != StreamStatus.ENABLED,
        roles=DEVELOPERS,
        form_class=forms.Form,
    ),
)
