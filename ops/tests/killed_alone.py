"""A process that does one thing of the CA and dies in it: `DATABASE STEP WHAT …`, for the drills.

Steps are what happens between it and PostgreSQL: before each statement, and after each commit. At number STEP
the process kills itself with SIGKILL; 0: never. It prints how many steps there were, if it gets that far.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()

from django.db import connection  # noqa: E402

from auditlog.vocabulary import Actor  # noqa: E402
from certificates import authorities  # noqa: E402
from certificates.issuing import issuance, key_pool  # noqa: E402
from certificates.lists import publication  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.keys.registry import backend_for  # noqa: E402
from compliance.stores import sql  # noqa: E402

ACTOR = Actor.system("drill")
# Quick keys.
vars(authorities)["CA_KEY_BITS"] = 2048


def issue(tenant_id: str, agent_id: str) -> None:
    issuance.issue(tenant_id=UUID(tenant_id), agent_id=agent_id, actor=ACTOR, now=now())


def publish(authority_id: str) -> None:
    publication.publish(authority_id=UUID(authority_id), actor=ACTOR, now=now(), force=True)


def rotate() -> None:
    authorities.rotate(actor=ACTOR, now=now(), force=True)


def fill() -> None:
    """Keys, until it is killed from outside."""
    while True:
        key_pool.put_back(key=key_pool.generate(now=now()), now=now())


class Steps:
    """Counts, and kills at the chosen one."""

    def __init__(self, last: int) -> None:
        self._last, self.count = last, 0

    def take(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around_statement(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        self.take()
        return execute(*arguments)

    def before_sending(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """For prepared statements, which pass by Django's cursors."""

        def sent(*arguments: Any) -> Any:
            self.take()
            return send(*arguments)

        return sent

    def after_commit(self, commit: Callable[[], Any]) -> Callable[[], Any]:
        def committed() -> Any:
            done = commit()
            self.take()
            return done

        return committed


WHAT: dict[str, Callable[..., None]] = {"issue": issue, "publish": publish, "rotate": rotate, "fill": fill}


def serve() -> None:
    """Each line of the input is one thing to do, by a fork of this process: starting Django takes seconds."""
    for line in sys.stdin:
        step, what, *arguments = line.split()
        pid = os.fork()
        if pid == 0:
            work(int(step), what, arguments)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def work(last: int, what: str, arguments: list[str]) -> None:
    code = 70
    try:
        with environments.use(Environment.LIVE):
            backend_for(Environment.LIVE).check()
            connection.ensure_connection()
            steps = Steps(last)
            vars(sql)["send"] = steps.before_sending(sql.send)
            connection.connection.commit = steps.after_commit(connection.connection.commit)
            with connection.execute_wrapper(steps.around_statement):
                WHAT[what](*arguments)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
