"""Serious incidents and their clocks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.incidents import Incident, IncidentDetail, IncidentExport


class Incidents(Group[S]):
    """Serious incidents and their clocks."""

    @listing("listIncidents")
    def list(
        self,
        *,
        agent_id: str | None = None,
        before: datetime | str | None = None,
        limit: int | None = None,
        severity: str | None = None,
        state: str | None = None,
    ) -> Request[Page[Incident]]:
        """List incidents, newest first."""
        return Request(
            "GET",
            "/v1/incidents",
            answers.page(Incident),
            query=given(agent_id=agent_id, before=before, limit=limit, severity=severity, state=state),
        )

    @operation("getIncident")
    def get(self, incident_id: str) -> Request[IncidentDetail]:
        """Fetch an incident."""
        return Request("GET", path("/v1/incidents/{}", incident_id), answers.data(IncidentDetail))

    @operation("updateIncident")
    def update(
        self,
        incident_id: str,
        *,
        title: str | Unset = UNSET,
        state: str | Unset = UNSET,
        severity: str | Unset = UNSET,
        owner: str | Unset = UNSET,
        aware_at: datetime | Unset | None = UNSET,
        serious_harm: str | Unset = UNSET,
        ai_act_reported_at: datetime | Unset | None = UNSET,
        dora_class: str | Unset = UNSET,
        classified_at: datetime | Unset | None = UNSET,
        dora_initial_at: datetime | Unset | None = UNSET,
        dora_intermediate_at: datetime | Unset | None = UNSET,
        dora_final_at: datetime | Unset | None = UNSET,
        merged_into: str | Unset = UNSET,
        note: str | Unset = UNSET,
        attachment: Mapping[str, Any] | Unset = UNSET,
    ) -> Request[IncidentDetail]:
        """State what is known of an incident."""
        return Request(
            "PATCH",
            path("/v1/incidents/{}", incident_id),
            answers.data(IncidentDetail),
            **as_json(
                changed(
                    title=title,
                    state=state,
                    severity=severity,
                    owner=owner,
                    aware_at=aware_at,
                    serious_harm=serious_harm,
                    ai_act_reported_at=ai_act_reported_at,
                    dora_class=dora_class,
                    classified_at=classified_at,
                    dora_initial_at=dora_initial_at,
                    dora_intermediate_at=dora_intermediate_at,
                    dora_final_at=dora_final_at,
                    merged_into=merged_into,
                    note=note,
                    attachment=attachment,
                )
            ),
        )

    @operation("exportIncident")
    def export(self, incident_id: str) -> Request[IncidentExport]:
        """Export the whole record of an incident."""
        return Request("GET", path("/v1/incidents/{}/export", incident_id), answers.data(IncidentExport))
