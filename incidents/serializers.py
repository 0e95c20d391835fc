"""Read and show incidents in the API."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from compliance.api.rest.fields import (
    ChangesSerializer,
    JsonTyped,
    RowSerializer,
    StrictCharField,
    StrictDateTimeField,
    StrictIntegerField,
)
from incidents.duties.clocks import ClockKind, ClockState
from incidents.duties.statements import MOMENTS
from incidents.models import Incident, TimelineEntry, TouchedAgent, TouchedCertificate
from incidents.vocabulary import (
    STATED,
    DoraClass,
    EntryKind,
    IncidentCause,
    IncidentSeverity,
    IncidentState,
    SeriousHarm,
)

TIMELINE_SHOWN = 200
CERTIFICATES_SHOWN = 200
LARGEST_FILE = 2**53
_CLOCK = ("provision", "basis", "started_at", "due_at", "met_at")
_OWN = (
    *("id", "agent_id", "agent_name", "title", "cause", "state", "severity", "owner"),
    *("detected_at", "opened_at", "contained_at", "closed_at", "updated_at", "serious_harm", "dora_class"),
    *MOMENTS,
)


class ClockSerializer(serializers.Serializer[Any]):
    """A reporting clock."""

    kind = serializers.ChoiceField(choices=ClockKind.choices)
    state = serializers.ChoiceField(choices=ClockState.choices)
    provision = serializers.CharField(help_text="Where the term stands.")
    basis = serializers.CharField(help_text="The moment it runs from, in words; empty if it does not run.")
    started_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(allow_null=True)
    met_at = serializers.DateTimeField(allow_null=True, help_text="When the report was sent, as stated.")


class TimelineEntrySerializer(RowSerializer[TimelineEntry]):
    """One thing that happened."""

    kind = serializers.ChoiceField(choices=EntryKind.choices)
    data = serializers.DictField(  # type: ignore[assignment]  # `Serializer.data` is something else
        allow_null=True,
        help_text="By `kind`: the fields changed, the attachment's name, size and digest, the clock.",
    )

    class Meta:
        model = TimelineEntry
        fields = [
            *("id", "kind", "at", "actor_kind", "actor_id", "text"),
            *("event_id", "certificate_id", "serial_number", "data"),
        ]


class TouchedAgentSerializer(RowSerializer[TouchedAgent]):
    """An agent of an incident, since when and why."""

    class Meta:
        model = TouchedAgent
        fields = ["agent_id", "agent_name", "since", "why"]


class TouchedCertificateSerializer(RowSerializer[TouchedCertificate]):
    """A certificate of an incident's agent, since when and why."""

    class Meta:
        model = TouchedCertificate
        fields = ["certificate_id", "serial_number", "agent_id", "since", "why"]


class IncidentSerializer(RowSerializer[Incident]):
    """An incident with its clocks."""

    reference = serializers.CharField(help_text="A short name for letters; not unique.")
    state = serializers.ChoiceField(choices=IncidentState.choices)
    severity = serializers.ChoiceField(choices=IncidentSeverity.choices)
    cause = serializers.ChoiceField(choices=IncidentCause.choices)
    serious_harm = serializers.ChoiceField(choices=SeriousHarm.choices)
    dora_class = serializers.ChoiceField(choices=DoraClass.choices)
    merged_into = serializers.UUIDField(allow_null=True, help_text="The incident that goes on with it.")
    agents = TouchedAgentSerializer(many=True, help_text="`agent_id` is the first of them.")
    clocks = ClockSerializer(many=True)

    class Meta:
        model = Incident
        fields = ["reference", *_OWN, "merged_into", "agents", "clocks"]


class IncidentDetailSerializer(IncidentSerializer):
    """An incident with its clocks, its first 200 certificates and the newest 200 rows of its timeline."""

    certificates = TouchedCertificateSerializer(many=True)
    timeline = TimelineEntrySerializer(many=True)

    class Meta(IncidentSerializer.Meta):
        fields = [*IncidentSerializer.Meta.fields, "certificates", "timeline"]


class DigestField(JsonTyped, serializers.RegexField):
    """A SHA-256 in lowercase hex, as a JSON string; a number of 64 digits is refused."""

    json_types = (str,)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(r"^[0-9a-f]{64}\Z", trim_whitespace=False, **kwargs)


class AttachmentSerializer(serializers.Serializer[Any]):
    """A file that stays with you, by its digest."""

    name = StrictCharField(max_length=255)
    size = StrictIntegerField(min_value=0, max_value=LARGEST_FILE, help_text="In octets.")
    sha256 = DigestField(help_text="In lowercase hex.")


class UpdateIncidentSerializer(ChangesSerializer):
    """`PATCH /v1/incidents/{id}`: what is stated, and what is added to the timeline."""

    title = StrictCharField(max_length=255, required=False)
    state = serializers.ChoiceField(choices=STATED, required=False)
    severity = serializers.ChoiceField(choices=IncidentSeverity.choices, required=False)
    owner = StrictCharField(max_length=255, required=False, allow_blank=True)
    aware_at = StrictDateTimeField(
        required=False, allow_null=True, help_text="When the organisation became aware; null: the detection."
    )
    serious_harm = serializers.ChoiceField(choices=SeriousHarm.choices, required=False)
    ai_act_reported_at = StrictDateTimeField(required=False, allow_null=True)
    dora_class = serializers.ChoiceField(choices=DoraClass.choices, required=False)
    classified_at = StrictDateTimeField(
        required=False, allow_null=True, help_text="When it was classified as major; now if left out."
    )
    dora_initial_at = StrictDateTimeField(required=False, allow_null=True)
    dora_intermediate_at = StrictDateTimeField(required=False, allow_null=True)
    dora_final_at = StrictDateTimeField(required=False, allow_null=True)
    merged_into = serializers.UUIDField(
        required=False,
        help_text="The incident that goes on with this one's agents and clocks; with a note at most.",
    )
    note = StrictCharField(max_length=5_000, required=False, help_text="Added to the timeline.")
    attachment = AttachmentSerializer(required=False, help_text="Added to the timeline.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of `services.update`, or with `into` those of `merging.merge`."""
        found = super().validate(attrs)
        if "merged_into" in found:
            if found.keys() - {"merged_into", "note"}:
                raise serializers.ValidationError({"merged_into": "Only a note may stand beside it"})
            return {"into": found["merged_into"], "note": found.get("note", "")}
        note, attachment = found.pop("note", ""), found.pop("attachment", None)
        return {"changes": found, "note": note, "attachment": attachment}


def shown_incident(incident: Incident, now: datetime) -> dict[str, Any]:
    """Return the fields of `IncidentSerializer`."""
    return {
        "reference": incident.reference,
        **{name: getattr(incident, name) for name in _OWN},
        "merged_into": incident.merged_into_id,
        "agents": TouchedAgentSerializer(incident.agents.all(), many=True).data,
        "clocks": [
            {
                "kind": clock.kind.value,
                "state": clock.state_at(now).value,
                **{name: getattr(clock, name) for name in _CLOCK},
            }
            for clock in incident.clocks()
        ],
    }


def shown_detail(incident: Incident, now: datetime) -> dict[str, Any]:
    """Return the fields of `IncidentDetailSerializer`."""
    newest = TimelineEntry.objects.filter(incident_id=incident.id).order_by("-at", "-id")[:TIMELINE_SHOWN]
    rows = TimelineEntrySerializer(list(newest)[::-1], many=True).data
    certificates = TouchedCertificateSerializer(incident.certificates.all()[:CERTIFICATES_SHOWN], many=True)
    return {**shown_incident(incident, now), "certificates": certificates.data, "timeline": rows}
