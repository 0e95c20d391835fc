"""The bundle: one ZIP of a report's files, which are the same octets whenever it is made."""

import io
import zipfile
import zlib
from collections.abc import Mapping

from django.http import HttpResponse

from compliance.core.errors import Invalid
from reports.bundles.manifest import REPORT_JSON, REPORT_PDF, pem
from reports.models import Report

MANIFEST, SIGNATURE, KEY = "manifest.json", "manifest.sig", "key.pem"
MOST_BYTES = 512 * 1024 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
    *(EOFError, ValueError, OSError),
)


class NoBundle(Invalid):
    message = "This is no bundle of a report"


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a ZIP of `files`, without the time of its making."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpack(packed: bytes) -> dict[str, bytes]:
    """Return the files of a ZIP by name.

    Raises: NoBundle, also for more than `MOST_BYTES`, and for two files of a name: another tool would unpack
    the other of the two.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            found = archive.infolist()
            is_twofold = len({each.filename for each in found}) < len(found)
            if is_twofold or sum(each.file_size for each in found) > MOST_BYTES:
                raise NoBundle()
            if any(each.compress_type not in _METHODS for each in found):
                raise NoBundle()
            return {each.filename: archive.read(each) for each in found}
    except _DAMAGE as error:
        raise NoBundle() from error


def file_of(report: Report, kind: str) -> HttpResponse:
    """Return a file of a report to store: its `json`, its `pdf` or, of a signed one, its bundle, `zip`."""
    if kind == "json":
        body = report.document.encode()
    elif kind == "pdf":
        body = bytes(report.pdf)
    else:
        body = pack(
            {
                REPORT_JSON: report.document.encode(),
                REPORT_PDF: bytes(report.pdf),
                **unpack(bytes(report.evidence)),
                MANIFEST: report.manifest.encode(),
                SIGNATURE: bytes(report.signature),
                KEY: pem(bytes(report.signing_key)),
            }
        )
    name = f"{report.type}-{report.period_start:%Y-%m-%d}-{report.id}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return HttpResponse(body, content_type=f"application/{kind}", headers=headers)
