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
from compliance.stores import redis  # noqa: E402
from delegation import proofs  # noqa: E402
from delegation.proofs import PresentedProof, Proof  # noqa: E402

uri = sys.argv[1]
redis.ping()
sys.stdout.write("ready\n")
sys.stdout.flush()
presented = [PresentedProof(text, "POST", uri) for text in json.loads(sys.stdin.readline())]
with environments.use(Environment.LIVE):
    found = [proofs.check_each([one], now=now())[0] for one in presented]
outcomes = [True if isinstance(one, Proof) else str(one) for one in found]
sys.stdout.write(f"{json.dumps(outcomes)}\n")
