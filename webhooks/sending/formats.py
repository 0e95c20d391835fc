"""The bodies of deliveries: the envelope as it is stored, or made anew of it."""

from typing import Any, Final

import orjson
from django.conf import settings

from compliance.console.addresses import prefix_of
from compliance.core import environments
from compliance.core.plain_text import HIDDEN
from webhooks.models import Format

CONTENT_TYPES: Final = {
    Format.STANDARD: "application/json",
    Format.CLOUDEVENTS: "application/cloudevents+json",
    Format.SLACK: "application/json",
}
MOST_FACTS: Final = 12
LONGEST_FACT: Final = 200


def formed(body: bytes, form: Format) -> bytes:
    """Return an envelope's bytes in the form that its webhook asks for."""
    if form is Format.STANDARD:
        return body
    envelope = orjson.loads(body)
    if form is Format.SLACK:
        return orjson.dumps({"text": _message(envelope)})
    # CloudEvents 1.0.2, §3; `subject` is the agent.
    agent_id = envelope["data"].get("agent_id")
    return orjson.dumps(
        {
            "specversion": "1.0",
            "id": envelope["id"],
            "source": settings.BASE_URL,
            "type": envelope["event"],
            **({"subject": agent_id} if agent_id else {}),
            "time": envelope["created_at"],
            "datacontenttype": "application/json",
            "environment": environments.current().value,
            "data": envelope["data"],
        }
    )


def _message(envelope: dict[str, Any]) -> str:
    """Return Slack's mrkdwn: the event, what it says of itself, and a link to the agent in the console."""
    data, environment = envelope["data"], environments.current()
    lines = [f"*{envelope['event']}* ({environment.value})"]
    plain = [(name, value) for name, value in data.items() if isinstance(value, str | int | float)]
    lines += [f"{name}: {_escaped(value)}" for name, value in plain[:MOST_FACTS]]
    if agent_id := data.get("agent_id"):
        page = f"{settings.BASE_URL}{prefix_of(environment)}agents/agent/{agent_id}/change/"
        lines.append(f"<{page}|Open the agent>")
    return "\n".join(lines)


def _escaped(value: object) -> str:
    """Return a value as code, in which Slack mentions nobody, makes no links and marks nothing."""
    text = HIDDEN.sub(" ", str(value))[:LONGEST_FACT].replace("`", "'")
    return f"`{text.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}`"
