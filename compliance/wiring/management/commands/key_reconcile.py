"""`key_reconcile`: keys without certificates, and certificates without keys."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from auditlog.vocabulary import Actor
from compliance.commands import EXIT_FINDINGS, ServiceCommand
from compliance.wiring import key_inventory
from compliance.wiring.key_inventory import Shelf

ACTOR = Actor.system("key_reconcile")


class Command(ServiceCommand):
    help = (
        "Compare the keys in each token with those that the database names; changes nothing. "
        "Exits with 6 when there are orphan keys, or keys are missing. `doctor --fix` destroys agents' "
        "orphans, --destroy a single one."
    )
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--grace-minutes",
            type=int,
            default=key_inventory.GRACE // timedelta(minutes=1),
            metavar="N",
            help="a key younger than this may yet be named (%(default)s)",
        )

        parser.add_argument(
            "--destroy",
            action="append",
            default=[],
            metavar="URI",
            help="first destroy this key, which nothing may name: a CA's that a killed ca_rotate left, say",
        )

    def run(self, *, now: datetime, **options: Any) -> None:
        for uri in options["destroy"]:
            key_inventory.destroy(uri=uri, actor=ACTOR, now=now)
        grace = timedelta(minutes=options["grace_minutes"])
        shelves = key_inventory.reconcile(now=now, grace=grace)
        self._show([_told(shelf, options["environment"]) for shelf in shelves], as_json=options["json"])
        if not all(shelf.is_sound for shelf in shelves):
            orphans = sum(len(shelf.orphans) for shelf in shelves)
            missing = sum(len(shelf.missing) for shelf in shelves)
            self._fail(f"{orphans} orphan keys, {missing} keys missing", EXIT_FINDINGS)


def _told(shelf: Shelf, environment: str) -> dict[str, Any]:
    return {
        "environment": environment,
        "token": shelf.token,
        "keys": shelf.keys,
        "young": shelf.young,
        "orphans": [key.uri for key in shelf.orphans],
        "missing": shelf.missing,
    }
