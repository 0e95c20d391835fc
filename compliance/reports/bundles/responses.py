"""The bundle as an HTTP answer, the same for the API and the console."""

from django.http import HttpResponse

from compliance.reports.bundles.archive import bundle
from compliance.reports.models import Report


def bundle_file(report: Report) -> HttpResponse:
    """Return the bundle of a signed report as a file to store."""
    name = report.file_name("zip")
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return HttpResponse(bundle(report), content_type="application/zip", headers=headers)
