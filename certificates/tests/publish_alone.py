"""Publish a CA's lists in a process of its own (`DATABASE AUTHORITY_ID`); prints seconds and megabytes."""

import os
import sys
import time
from pathlib import Path
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()

from auditlog.vocabulary import Actor  # noqa: E402
from certificates.lists import publication  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402

with environments.use(Environment.LIVE):
    started = time.monotonic()
    publication.publish(authority_id=UUID(sys.argv[2]), actor=Actor.system("drill"), now=now())
    seconds = time.monotonic() - started
# Not `ru_maxrss`, which begins with what the parent had.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
sys.stdout.write(f"{seconds} {int(peak.split()[1]) / 1024}\n")
