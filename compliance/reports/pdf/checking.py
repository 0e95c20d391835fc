"""How a reader checks the report with openssl alone; the same commands are printed and tested."""

from collections.abc import Iterable

from reportlab.platypus import CondPageBreak, Flowable

from compliance.reports.pdf.parts import Text
from compliance.reports.pdf.styles import BODY, HEADING, MONO, ROOM_FOR_HEADING, safe

SIGNATURE = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in manifest.json -sigfile manifest.sig"
DIGESTS = "openssl dgst -r -sha256 report.json report.pdf evidence/*.jsonl"
FINGERPRINT = "openssl pkey -pubin -in key.pem -outform DER | openssl dgst -r -sha256"


def checking(digest: str, fingerprint: str) -> Iterable[Flowable]:
    """Yield the commands, with the digest of the JSON and the fingerprint of the key."""
    yield CondPageBreak(ROOM_FOR_HEADING)
    yield Text("Check this report", HEADING)
    yield Text(
        "The bundle (report.json, report.pdf, the lists of rows, manifest.json, manifest.sig, key.pem) is "
        "checked with OpenSSL 3, in the folder where it is unpacked. The first command must print "
        "\u201cSignature Verified Successfully\u201d, the second the digests that manifest.json states, the "
        "third the fingerprint of the audit log's key:",
        BODY,
    )
    for command in (SIGNATURE, DIGESTS, FINGERPRINT):
        yield Text(safe(command), MONO)
    yield Text(f"Fingerprint: {safe(fingerprint)}<br/>report.json: {safe(digest)}", BODY)
