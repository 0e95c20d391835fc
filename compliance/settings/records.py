"""Audit log, events and their archives, risk and incidents."""

from datetime import timedelta

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL, SERVICE_NAME

section = Section("Audit log, events and risk")

AUDIT_LOG_ORIGIN: str = section.text(
    "AUDIT_LOG_ORIGIN",
    f"{BASE_URL.partition('://')[2]}/v1/audit-log",
    "Name of the audit log, under which its checkpoints are signed (the sandbox's ends in `/test`); fixed"
    " by the log's first key.",
    default_is="<BASE_URL without its scheme>/v1/audit-log",
)
AUDIT_WITNESS_POLICY: str = section.text(
    "AUDIT_WITNESS_POLICY",
    "",
    "C2SP tlog-policy file: the witnesses that cosign checkpoints, their URLs and the quorum; empty: none.",
)
AUDIT_WITNESS_CA_FILE: str = section.text(
    "AUDIT_WITNESS_CA_FILE", "", "PEM file of roots to check witnesses against.", default_is="public roots"
)
AUDIT_VERIFIED_FILE: str = section.text(
    "AUDIT_VERIFIED_FILE",
    "",
    "Where `audit_verify` [keeps the checkpoint it verified last](audit-log.md#verify); no database role"
    " should write there.",
)
AUDIT_RETENTION_DAYS: int = section.integer(
    "AUDIT_RETENTION_DAYS",
    1827,
    "How long audit entries keep their contents; hashes stay. Less than 183 is refused, less than five years"
    " warned of, as for events.",
    unit="days",
    most=36_525,
)

EVENT_RETENTION_DAYS: int = section.integer(
    "EVENT_RETENTION_DAYS",
    1827,
    "Age at which a partition of events is archived and dropped. With less than 183 nothing starts (EU AI"
    " Act, Art. 19 and 26(6)); `doctor` and `check --deploy` (`events.W003`) warn of less than five years"
    " if a live agent of any tenant has a `financial_scope` (MiCA, Art. 68(9)).",
    unit="days",
    most=36_525,
)
EVENT_ARCHIVE_DIR: str = section.text(
    "EVENT_ARCHIVE_DIR",
    f"/var/lib/{SERVICE_NAME}/archive",
    "Existing folder of the [archives](operations.md#archives-of-events), which all workers share; without"
    " it no event is dropped.",
    default_is="/var/lib/<SERVICE_NAME>/archive",
)
EVENT_RESTORED_DAYS: int = section.integer(
    "EVENT_RESTORED_DAYS",
    30,
    "How long a restored partition is not dropped again.",
    unit="days",
    least=0,
    most=36_525,
)
EVENT_PARTITION: str = section.text(
    "EVENT_PARTITION", "month", "Span of a new partition of events: `day`, `week` or `month`."
)

HIGH_RISK_STRIKES: int = section.integer(
    "HIGH_RISK_STRIKES", 3, "High-risk events that stop an agent, within the window.", least=1
)
HIGH_RISK_WINDOW = timedelta(
    minutes=section.integer(
        "HIGH_RISK_WINDOW_MINUTES",
        15,
        "The window of those events.",
        unit="minutes",
        least=1,
        most=525_600,
    )
)
RISK_WINDOW = timedelta(days=30)

INCIDENT_REGIMES: list[str] = section.words(
    "INCIDENT_REGIMES", ["ai_act", "dora"], "The laws whose [reporting clocks](incidents.md) run."
)
