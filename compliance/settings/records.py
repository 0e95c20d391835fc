"""Audit log, events and their archives, risk and incidents."""

from datetime import timedelta

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL, SERVICE_NAME

section = Section("Audit log, events and risk")

AUDIT_LOG_ORIGIN: str = section.text(
    "AUDIT_LOG_ORIGIN",
    f"{BASE_URL.partition('://')[2]}/v1/audit-log",
    default_is="<BASE_URL without its scheme>/v1/audit-log",
)
AUDIT_WITNESS_POLICY: str = section.text("AUDIT_WITNESS_POLICY", "")
AUDIT_WITNESS_CA_FILE: str = section.text("AUDIT_WITNESS_CA_FILE", "", default_is="public roots")
AUDIT_VERIFIED_FILE: str = section.text("AUDIT_VERIFIED_FILE", "")
AUDIT_RETENTION_DAYS: int = section.integer("AUDIT_RETENTION_DAYS", 1827, unit="days", most=36_525)

EVENT_RETENTION_DAYS: int = section.integer("EVENT_RETENTION_DAYS", 1827, unit="days", most=36_525)
EVENT_ARCHIVE_DIR: str = section.text(
    "EVENT_ARCHIVE_DIR", f"/var/lib/{SERVICE_NAME}/archive", default_is="/var/lib/<SERVICE_NAME>/archive"
)
EVENT_RESTORED_DAYS: int = section.integer("EVENT_RESTORED_DAYS", 30, unit="days", least=0, most=36_525)
EVENT_PARTITION: str = section.text("EVENT_PARTITION", "month")

REPORT_RETENTION = timedelta(
    days=section.integer("REPORT_RETENTION_DAYS", 1827, unit="days", least=1, most=36_525)
)

HIGH_RISK_STRIKES: int = section.integer("HIGH_RISK_STRIKES", 3, least=1)
HIGH_RISK_WINDOW = timedelta(
    minutes=section.integer("HIGH_RISK_WINDOW_MINUTES", 15, unit="minutes", least=1, most=525_600)
)
RISK_WINDOW = timedelta(days=30)

DORMANT_DAYS: int = section.integer("DORMANT_DAYS", 30, unit="days", least=1, most=36_525)
DORMANT_SUSPEND_DAYS: int | None = section.integer(
    "DORMANT_SUSPEND_DAYS", None, unit="days", least=1, most=36_525
)
if DORMANT_SUSPEND_DAYS is not None and DORMANT_SUSPEND_DAYS < DORMANT_DAYS:
    Section.problems.append("DORMANT_SUSPEND_DAYS is less than DORMANT_DAYS")
