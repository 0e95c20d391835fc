"""A proof that reaches two processes at the same moment counts in one of them."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from django.conf import settings

from delegation.tests.holders import Holder

URI = "https://api.example/v1/things"
MANY = 300
PROCESSES = 2


def said(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def test_each_of_many_proofs_counts_in_one_of_two_processes() -> None:
    holder = Holder()
    sent = json.dumps([holder.proof("POST", URI) for _ in range(MANY)]) + "\n"
    command = [sys.executable, str(Path(__file__).with_name("use_alone.py")), URI]
    environment = {**os.environ, "REDIS_URL": settings.REDIS_URL, "SERVICE_NAME": settings.SERVICE_NAME}

    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(PROCESSES)
        ]
        assert [said(one.stdout) for one in processes] == ["ready\n"] * PROCESSES
        for one in processes:
            assert one.stdin is not None
            one.stdin.write(sent)
            one.stdin.flush()
        outcomes = [json.loads(said(one.stdout)) for one in processes]

    for each in zip(*outcomes, strict=True):
        assert sorted(each, key=str) == [True, "invalid_dpop_proof: the proof was used before"]
