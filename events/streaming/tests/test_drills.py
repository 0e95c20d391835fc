"""A stream whose process is killed at any moment loses nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection

from auditlog.sealing.sealer import seal_all
from auditlog.sealing.tree import head
from auditlog.tests.factories import make_entries
from compliance.core import environments
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answers, receiving
from compliance.tests.waiting import eventually
from events.streaming.models import StreamPosition

KILLS = 20
SCRIPT = Path(__file__).with_name("streams_alone.py")


@pytest.mark.drill
def test_every_entry_is_in_the_bucket_whenever_the_process_is_killed(committed: None) -> None:
    seal_all()
    begun = {"upto": UUID(int=head().size), "caught_up_at": now(), "retry_at": None, "failures": 0}
    StreamPosition.objects.update_or_create(name="s3.audit-log", defaults=begun)
    made: list[str] = []
    with receiving(answers(200)) as bucket:
        url = f"http://{bucket.host}:{bucket.port}/bucket"
        command = [sys.executable, str(SCRIPT), str(connection.settings_dict["NAME"]), url]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd(),
            env=os.environ | {"LOG_LEVEL": "ERROR"},
        ) as server:  # fmt: skip
            assert server.stdin is not None
            assert server.stdout is not None
            for turn in range(KILLS + 1):
                server.stdin.write("\n")
                server.stdin.flush()
                pid = int(server.stdout.readline())
                for _ in range(10):
                    with environments.atomic():
                        made += [str(entry.id) for entry in make_entries(3)]
                    seal_all()
                    time.sleep(random.random() / 50)
                if turn == KILLS:
                    assert eventually(_has_reached)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        put = {one.request_line.split()[1]: one.body for one in bucket.received}

    sent = [json.loads(line)["metadata"]["uid"] for body in put.values() for line in body.splitlines()]
    assert set(made) <= set(sent)
    assert len(sent) == len(set(sent))


def _has_reached() -> bool:
    return StreamPosition.objects.get(name="s3.audit-log").upto.int == head().size
