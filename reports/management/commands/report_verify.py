"""`report_verify`: verify the bundle of a report."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from auditlog.sealing import keys
from auditlog.tlog.lines import TlogError
from auditlog.tlog.notes import VerifierKey
from compliance.core import environments
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from reports.bundles.archive import KEY, MANIFEST, SIGNATURE, unpack
from reports.bundles.manifest import FORMAT, REPORT_JSON, SAME, pem

NOT_SIGNED = "The signature of the manifest does not verify"


def findings(files: Mapping[str, bytes], trusted: Collection[bytes]) -> list[str]:
    """Return what is wrong with a bundle; nothing if it is what the holder of a trusted key signed.

    `trusted`: Ed25519 keys of 32 octets. Nothing of a manifest is believed that none of them signed.
    """
    missing = sorted({MANIFEST, SIGNATURE, KEY} - set(files))
    if missing:
        return [f"{name} is missing" for name in missing]
    signer = next((key for key in trusted if _signed(files, key)), None)
    if signer is None:
        return [NOT_SIGNED]
    try:
        manifest = json.loads(files[MANIFEST])
    except ValueError:  # the key signs the audit log's checkpoints, too
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return [f"The manifest is not of the format {FORMAT}"]
    found = [] if files[KEY] == pem(signer) else [f"{KEY} is another key than the one that signed"]
    return [*found, *_differences(manifest, files)]


def _signed(files: Mapping[str, bytes], key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(files[SIGNATURE], files[MANIFEST])
    except InvalidSignature:
        return False
    return True


def _differences(manifest: dict[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """Compare the manifest with the files, and with the report if that is what was signed."""
    stated = {each["name"]: each["sha256"] for each in manifest["files"]}
    surplus = set(files) - set(stated) - {MANIFEST, SIGNATURE, KEY}
    found = [f"{name} is not in the manifest" for name in sorted(surplus)]
    for name, digest in stated.items():
        if name not in files:
            found.append(f"{name} is missing")
        elif sha256(files[name]).hexdigest() != digest:
            found.append(f"{name} is not what was signed")
    text = files.get(REPORT_JSON, b"")
    if sha256(text).hexdigest() == stated.get(REPORT_JSON):
        report = json.loads(text)
        differing = [name for name in SAME if manifest[name] != report[name]]
        found += [f"{name} differs between manifest and report" for name in differing]
    return found


class Command(ServiceCommand):
    help = (
        "Verify the bundle of a report: signature, key and digests. Exit code 0: verified, 6: not verified."
    )
    requires_system_checks = []
    is_check = True
    arguments: ClassVar = {
        "bundle": {"type": Path, "help": "the ZIP of a report"},
        "--key": {
            "action": "append",
            "default": [],
            "metavar": "VKEY",
            "help": "trust this key of the audit log instead of this service's own; no database is used then",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        try:
            packed = options["bundle"].read_bytes()
            trusted = [VerifierKey.parse(vkey).public for vkey in options["key"]]
        except (OSError, TlogError) as error:
            raise Invalid(str(error)) from error
        for environment in () if trusted else Environment:
            with environments.use(environment):
                trusted += [key.public for key in keys.verifier_keys(now=now)]
        found = findings(unpack(packed), trusted)
        return [{"bundle": str(options["bundle"]), "verified": not found, "findings": found}]
