"""Input and output of reports."""

import json
from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.api.pagination import Cursor
from compliance.api.rest.fields import ChangesSerializer, IdField, RowSerializer
from compliance.api.rest.schema import MOMENT
from compliance.core.clock import now
from compliance.core.encodings import b64_encode
from compliance.core.errors import Invalid
from reports.bundles.manifest import pem
from reports.models import Report, ReportSchedule
from reports.periods import end_of
from reports.vocabulary import Cadence, ReportStatus, ReportType

MAX_PERIOD = timedelta(days=3_660)
MAX_AGENTS = 1_000
DATE_LENGTH = len("2026-11-20")


@extend_schema_field(MOMENT)
class MomentField(serializers.Field[Any, Any, Any, Any]):
    """An ISO 8601 date-time, or a date: the start of that day, or with `at_end` its end."""

    def __init__(self, *, at_end: bool = False, **kwargs: Any) -> None:
        self.at_end = at_end
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> datetime:
        try:
            moment = Cursor.parse(data if isinstance(data, str) else "").at
            return end_of(moment.date(), now()) if self.at_end and len(data) == DATE_LENGTH else moment
        except (Invalid, OverflowError) as error:
            raise serializers.ValidationError("Must be an ISO 8601 date or date-time.") from error


class RequestReportSerializer(serializers.Serializer[Any]):
    """`POST /v1/reports`."""

    type = serializers.ChoiceField(choices=ReportType.choices)
    period_start = MomentField(help_text="ISO 8601 date-time or date; included.")
    period_end = MomentField(
        at_end=True,
        help_text="ISO 8601 date-time, excluded; or a date, included, today up to now; not in the future.",
    )
    agent_ids = serializers.ListField(
        child=IdField(),
        min_length=1,
        max_length=MAX_AGENTS,
        required=False,
        allow_null=True,
        help_text="All agents of the tenant when omitted.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs["period_start"], attrs["period_end"]
        if end <= start:
            raise serializers.ValidationError({"period_end": "Must be later than period_start."})
        if end - start > MAX_PERIOD:
            raise serializers.ValidationError({"period_end": f"The period exceeds {MAX_PERIOD.days} days."})
        return attrs


class ReportSerializer(RowSerializer[Report]):
    """A report's state; `digest` once it is ready."""

    status = serializers.ChoiceField(choices=ReportStatus.choices)
    type = serializers.ChoiceField(choices=ReportType.choices)
    agent_ids = serializers.ListField(child=serializers.UUIDField(), allow_null=True)
    digest = serializers.SerializerMethodField(
        help_text="SHA-256 of the document in canonical JSON (RFC 8785)."
    )

    class Meta:
        model = Report
        fields = [
            *("id", "type", "status", "period_start", "period_end", "agent_ids", "digest"),
            *("created_at", "completed_at"),
        ]

    def get_digest(self, report: Report) -> str | None:
        return report.digest or None


class CreateScheduleSerializer(serializers.Serializer[Any]):
    """`POST /v1/report-schedules`."""

    type = serializers.ChoiceField(choices=ReportType.choices)
    cadence = serializers.ChoiceField(choices=Cadence.choices)


class UpdateScheduleSerializer(ChangesSerializer):
    """`PATCH /v1/report-schedules/{id}`."""

    cadence = serializers.ChoiceField(choices=Cadence.choices, required=False)


class ReportScheduleSerializer(RowSerializer[ReportSchedule]):
    """A schedule; `next_start` begins the period that it reports next."""

    type = serializers.ChoiceField(choices=ReportType.choices)
    cadence = serializers.ChoiceField(choices=Cadence.choices)

    class Meta:
        model = ReportSchedule
        fields = ["id", "type", "cadence", "next_start", "created_at", "ended_at"]


class ReportDocumentSerializer(serializers.Serializer[Any]):
    """A report's document and its digest."""

    report = serializers.DictField()
    digest = serializers.DictField(child=serializers.CharField(), read_only=True)


class ReportManifestSerializer(serializers.Serializer[Any]):
    """A report's manifest, its signature and the key that made it."""

    manifest = serializers.DictField(read_only=True)
    signature = serializers.CharField(read_only=True, help_text="Base64 of 64 octets (Ed25519).")
    public_key = serializers.CharField(read_only=True, help_text="The public key in PEM.")


def shown_manifest(report: Report) -> dict[str, Any]:
    """Return the fields of `ReportManifestSerializer`."""
    return {
        "manifest": json.loads(report.manifest),
        "signature": b64_encode(bytes(report.signature)),
        "public_key": pem(bytes(report.signing_key)).decode(),
    }
