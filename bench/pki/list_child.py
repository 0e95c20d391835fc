"""`python -m bench.pki.list_child`: one process of the service publishes a list; prints JSON."""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from auditlog.vocabulary import Actor  # noqa: E402
from certificates.lists import publication  # noqa: E402
from certificates.models import CertificateAuthority  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402


def publish() -> dict[str, float]:
    """The list of all that is revoked: read, put together, signed and stored."""
    authority = CertificateAuthority.objects.issuing()
    began = time.perf_counter()
    made = publication.publish(authority_id=authority.id, actor=Actor.system("bench"), now=now())
    seconds = time.perf_counter() - began
    if made is None:
        raise SystemExit("no list was due")
    # Not `ru_maxrss`, which begins with what the parent had.
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return {"seconds": seconds, "peak_mb": peak, "size_mb": made.size / 1e6, "entries": made.entry_count}


if __name__ == "__main__":
    with environments.use(Environment.LIVE):
        json.dump(publish(), sys.stdout)
