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
    """The period of a schedule."""

    MONTH = "month", "Each month"
    QUARTER = "quarter", "Each quarter"


class NotificationTemplate(models.TextChoices):
    """The official form that a draft follows."""

    AI_ACT = "ai_act", "AI Act, Article 73: serious incident report"
    DORA_INITIAL = "dora_initial", "DORA: initial notification"
    DORA_INTERMEDIATE = "dora_intermediate", "DORA: intermediate report"
    DORA_FINAL = "dora_final", "DORA: final report"
