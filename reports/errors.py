"""The errors of reports."""

from compliance.core.errors import Conflict, Invalid, InvalidState, LimitReached, NotFound, TooEarly


class ReportNotFound(NotFound):
    message = "Report not found"


class ReportGenerating(TooEarly):
    message = "The report is still generating; poll again"
    retry_after = 2


class ReportFailed(InvalidState):
    message = "The report could not be generated; request it again"


class ReportUnsigned(NotFound):
    message = "The report has no manifest; request it again"


class TooManyReports(LimitReached):
    message = "Too many reports of this tenant are being generated; request more once one is ready"


class NotRegisteredThen(NotFound):
    message = "The agent was not registered at that time"


class PeriodNotOver(Invalid):
    message = "The period has not ended; choose an end that is not in the future"


class ReportNotFailed(InvalidState):
    message = "Only a report that failed can be generated again"


class ScheduleEnded(InvalidState):
    message = "The schedule has ended already"


class ScheduleNotFound(NotFound):
    message = "Report schedule not found"


class ScheduleExists(Conflict):
    message = "Another schedule of the tenant has this type and cadence"


class PeriodReported(InvalidState):
    message = "A part of the new period is reported already; end the schedule and create another"
