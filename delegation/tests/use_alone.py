"""Check proofs in a process of its own: a line of JSON with them comes in, one with the outcomes goes out."""

import json
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.core.errors import ServiceError  # noqa: E402
from compliance.stores import redis  # noqa: E402
from delegation import proofs  # noqa: E402

uri = sys.argv[1]
redis.client().ping()
sys.stdout.write("ready\n")
sys.stdout.flush()
outcomes: list[bool | str] = []
with environments.use(Environment.LIVE):
    for text in json.loads(sys.stdin.readline()):
        try:
            proofs.check(proofs.PresentedProof(text, "POST", uri), now=now())
            outcomes.append(True)
        except ServiceError as error:
            outcomes.append(str(error))
sys.stdout.write(f"{json.dumps(outcomes)}\n")
