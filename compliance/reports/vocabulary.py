"""The enumerations of reports."""

from django.db import models


class ReportType(models.TextChoices):
    """The regulation of a report."""

    EU_AI_ACT = "eu_ai_act", "EU AI Act"
    MICA = "mica", "MiCA"


class ReportStatus(models.TextChoices):
    """The state of a report."""

    PENDING = "pending"
    GENERATING = "generating"
    READY = "ready"
    FAILED = "failed"


class ControlState(models.TextChoices):
    """The result of a control. There is no "compliant", which is for people to judge."""

    EVIDENCED = "evidenced"
    PARTIAL = "partial"
    NOT_EVIDENCED = "not_evidenced"
    OPERATOR_INPUT_REQUIRED = "operator_input_required"


class Cadence(models.TextChoices):
    """How often a schedule reports."""

    MONTH = "month", "Each month"
    QUARTER = "quarter", "Each quarter"
