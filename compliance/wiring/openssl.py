"""The `openssl` command line as an independent judge of certificates and lists."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory


def openssl_verdict(*, certificate_pem: str, root_pem: str, issuing_pem: str, crl_pem: str) -> str:
    """What `openssl verify -x509_strict -crl_check` says: `OK`, or its complaint."""
    with TemporaryDirectory() as folder:
        names = {"leaf": certificate_pem, "root": root_pem, "issuing": issuing_pem, "crl": crl_pem}
        for name, text in names.items():
            (Path(folder) / f"{name}.pem").write_text(text)
        judged = subprocess.run(
            [
                "openssl", "verify", "-x509_strict", "-crl_check",
                "-CAfile", "root.pem", "-untrusted", "issuing.pem", "-CRLfile", "crl.pem", "leaf.pem",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    return "OK" if judged.returncode == 0 else (judged.stderr or judged.stdout).strip()
