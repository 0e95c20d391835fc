"""The words of reports."""

from django.db import models


class ReportType(models.TextChoices):
    """Which regulation a report maps evidence to."""

    EU_AI_ACT = "eu_ai_act", "EU AI Act"
    MICA = "mica", "MiCA"


class ReportStatus(models.TextChoices):
    """How far a report is."""

    PENDING = "pending"
    GENERATING = "generating"
    READY = "ready"
    FAILED = "failed"


class ControlState(models.TextChoices):
    """What the records say of a control. There is no "compliant": that is for people to judge."""

    EVIDENCED = "evidenced"
    PARTIAL = "partial"
    NOT_EVIDENCED = "not_evidenced"
    OPERATOR_INPUT_REQUIRED = "operator_input_required"
