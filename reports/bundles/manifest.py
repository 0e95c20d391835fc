"""The manifest: what a report's files are, by digest, and what they are about; signed as it is."""

from collections.abc import Iterable
from hashlib import sha256

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from compliance.core.json_values import Json
from reports.bundles.lists import RowList

FORMAT = "report-manifest/1"
REPORT_JSON, REPORT_PDF = "report.json", "report.pdf"
SAME = ("report_id", "type", "environment", "period_start", "period_end", "covered_until", "generated_at")
"""Members that a manifest copies from the report."""


def compose(
    document: Json, pdf: bytes, lists: Iterable[RowList], *, checkpoint: str | None, key: bytes
) -> bytes:
    """Return the manifest in canonical JSON (RFC 8785).

    `checkpoint` is the newest signed head of the audit log, `key` the 32 octets of the key that will sign.
    """
    files = [
        _file(REPORT_JSON, rfc8785.dumps(document)),
        _file(REPORT_PDF, pdf),
        *(_file(each.name, each.content) | {"rows": each.count, "of": each.total} for each in lists),
    ]
    manifest = {
        "format": FORMAT,
        **{name: document[name] for name in SAME},
        "tenant_id": document["tenant"]["id"],
        "model_versions": document["summary"]["model_versions"],
        "files": files,
        "audit_log_checkpoint": checkpoint,
        "key": {"algorithm": "Ed25519", "sha256": fingerprint(key)},
    }
    return rfc8785.dumps(manifest)


def fingerprint(key: bytes) -> str:
    """Return the SHA-256 of an Ed25519 key's SubjectPublicKeyInfo in DER, in lowercase hex."""
    public = Ed25519PublicKey.from_public_bytes(key)
    return sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def pem(key: bytes) -> bytes:
    """Return the key as openssl reads it."""
    return Ed25519PublicKey.from_public_bytes(key).public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )


def _file(name: str, content: bytes) -> Json:
    return {"name": name, "bytes": len(content), "sha256": sha256(content).hexdigest()}
