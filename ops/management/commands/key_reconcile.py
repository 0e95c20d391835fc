"""`key_reconcile`: find keys that no row names, and rows whose key is gone."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import EXIT_FINDINGS, ServiceCommand, between
from ops import key_inventory

ACTOR = Actor.system("key_reconcile")


class Command(ServiceCommand):
    help = (
        "Compare the keys in each token with those that the database names, and change nothing. "
        "Exits with 6 if there are orphan keys, or keys are missing. `doctor --fix` destroys agents' "
        "orphans, --destroy a single key."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--grace-minutes": {
            "type": between(0, 525_600),
            "default": key_inventory.GRACE // timedelta(minutes=1),
            "metavar": "N",
            "help": "age of an orphan key (%(default)s)",
        },
        "--destroy": {
            "action": "append",
            "default": [],
            "metavar": "URI",
            "help": "first destroy this key, if no row names it",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        for uri in options["destroy"]:
            key_inventory.destroy(uri=uri, actor=ACTOR, now=now)
        grace = timedelta(minutes=options["grace_minutes"])
        inventories = key_inventory.reconcile(now=now, grace=grace)
        about = {"environment": options["environment"]}
        rows = [{**about, **vars(one), "orphans": [key.uri for key in one.orphans]} for one in inventories]
        self._show(rows, as_json=options["json"])
        if not all(one.is_sound for one in inventories):
            orphans = sum(len(one.orphans) for one in inventories)
            missing = sum(len(one.missing) for one in inventories)
            self._fail(f"{orphans} orphan keys, {missing} keys missing", EXIT_FINDINGS)
