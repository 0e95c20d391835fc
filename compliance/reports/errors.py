"""What reports refuse."""

from compliance.errors import InvalidState, NotFound, TooEarly

RETRY_SECONDS = 2


class ReportNotFound(NotFound):
    message = "Report not found"


class ReportGenerating(TooEarly):
    message = "The report is still generating; poll again"

    def __init__(self) -> None:
        super().__init__(retry_after=RETRY_SECONDS)


class ReportFailed(InvalidState):
    message = "The report could not be generated; request it again"
