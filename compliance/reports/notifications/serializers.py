"""The shape of an exported incident."""

from typing import Any

from rest_framework import serializers

from compliance.incidents.serializers import AttachmentSerializer, IncidentSerializer, TimelineEntrySerializer
from compliance.incidents.vocabulary import NotificationTemplate


class ExportedDraftSerializer(serializers.Serializer[Any]):
    """A frozen version of a notification."""

    id = serializers.UUIDField()
    template = serializers.ChoiceField(choices=NotificationTemplate.choices)
    version = serializers.IntegerField()
    digest = serializers.CharField(help_text="SHA-256 of `document` in canonical JSON (RFC 8785).")
    actor_kind = serializers.CharField()
    actor_id = serializers.CharField()
    created_at = serializers.DateTimeField()
    document = serializers.DictField(help_text="Each field with its value, or with what is to state.")


class IncidentExportSerializer(serializers.Serializer[Any]):
    """The whole record of an incident: up to 1,000 rows of the timeline, 200 events and 50 drafts."""

    format = serializers.CharField()
    exported_at = serializers.DateTimeField()
    environment = serializers.ChoiceField(choices=["live", "test"])
    truncated = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the lists that leave rows out, by their limits."
    )
    incident = IncidentSerializer()
    timeline = TimelineEntrySerializer(many=True)
    attachments = AttachmentSerializer(many=True)
    agent = serializers.DictField(help_text="The first of `agents`.")
    agents = serializers.ListField(child=serializers.DictField(), help_text="All agents of the incident.")
    certificates = serializers.ListField(child=serializers.DictField())
    events = serializers.ListField(
        child=serializers.DictField(), help_text="The agents' high-risk events, without their details."
    )
    verdicts = serializers.DictField(child=serializers.IntegerField())
    steps = serializers.ListField(
        child=serializers.DictField(), help_text="What was done about the agents and their certificates."
    )
    audit_log_size = serializers.IntegerField(help_text="Sealed entries of the audit log.")
    drafts = ExportedDraftSerializer(many=True)
