"""What a room further right adds to the page of an incident."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from compliance.console.actions import ConfirmedAction


@dataclass(frozen=True)
class IncidentFile:
    """A download at `route` below the incident's address, as the page `incidents_incident_<name>`.

    `view` takes the request, the incident, which the user may see, and the route's other arguments. It may
    raise `NotFound`.
    """

    name: str
    route: str
    view: Callable[..., HttpResponse]


@dataclass(frozen=True)
class IncidentPart:
    """A section with columns (`compliance.console.display.column`) by their names, an action, and files."""

    title: str
    columns: Mapping[str, Any]
    action: ConfirmedAction
    files: tuple[IncidentFile, ...]
