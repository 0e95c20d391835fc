"""`key_host`: the processes that alone open the PKCS#11 module, until it is told to end."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from compliance.commands import ServiceCommand
from compliance.errors import Invalid
from compliance.keys.hosts.keeper import Keeper


class Command(ServiceCommand):
    help = (
        "Open the HSM for all other processes, in PKCS11_HOSTS processes that listen in PKCS11_HOST_FOLDER, "
        "until SIGTERM or SIGINT. One that dies or hangs is replaced."
    )
    # They would import the whole service, and each host is as large as what was imported before it.
    requires_system_checks = []

    def run(self, *, now: datetime, **options: Any) -> None:
        hosts, confs = settings.PKCS11_HOSTS, settings.PKCS11_HOST_CONFS
        if hosts < 1:
            raise Invalid("PKCS11_HOSTS is 0: each process opens the HSM itself")
        if confs and len(confs) != hosts:
            raise Invalid(f"PKCS11_HOST_CONFS names {len(confs)} files for {hosts} hosts")
        Keeper(Path(settings.PKCS11_HOST_FOLDER), hosts, confs).run()
