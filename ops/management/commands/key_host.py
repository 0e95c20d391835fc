"""`key_host`: one process that opens the PKCS#11 module for all others."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings

from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid
from compliance.keys.hosts.server import KeyHostServer
from compliance.observing import metrics_server


class Command(ServiceCommand):
    help = (
        "Open the HSM for all other processes, as one of PKCS11_HOSTS key hosts, which listens in "
        "PKCS11_HOST_FOLDER until SIGTERM or SIGINT. Have a process supervisor restart it when it ends."
    )
    # They import the whole service, which a key host does not need in its memory.
    requires_system_checks = []
    arguments: ClassVar = {
        "--number": {"type": int, "required": True, "metavar": "N", "help": "0 to PKCS11_HOSTS - 1"},
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        number, hosts, confs = options["number"], settings.PKCS11_HOSTS, settings.PKCS11_HOST_CONFS
        if not 0 <= number < hosts:
            raise Invalid(f"There is no key host {number}: PKCS11_HOSTS is {hosts}")
        if confs and len(confs) != hosts:
            raise Invalid(f"PKCS11_HOST_CONFS names {len(confs)} files for {hosts} hosts")
        if confs:
            os.environ["SOFTHSM2_CONF"] = confs[number]
        metrics_server.start()
        KeyHostServer(Path(settings.PKCS11_HOST_FOLDER), number).run()
