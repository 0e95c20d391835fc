"""Operations as a Django app: commands, checks and tasks, but no tables."""

from django.apps import AppConfig
from django.core.checks import register

from compliance.ops.checks import check_owners, check_roles


class OpsConfig(AppConfig):
    """The app's label, `wiring`, stands in databases and stays."""

    name = "compliance.ops"
    label = "wiring"

    def ready(self) -> None:
        register(check_owners)
        register(check_roles, "security", deploy=True)
