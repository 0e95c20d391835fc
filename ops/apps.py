"""Operations as a Django app: commands, checks and tasks, and the lease of the scheduler."""

from django.apps import AppConfig
from django.core.checks import register

from ops.checks import check_distribution, check_owners, check_roles, check_session_defaults
from ops.unsafe_settings import check_unsafe


class OpsConfig(AppConfig):
    """The app's label, `wiring`, stands in databases and stays."""

    name = "ops"
    label = "wiring"

    def ready(self) -> None:
        register(check_owners)
        register(check_roles, "security", deploy=True)
        # Alone by this tag: it needs no database.
        register(check_unsafe, "security", "unsafe_settings", deploy=True)
        register(check_session_defaults, "security", deploy=True)
        register(check_distribution, "security", deploy=True)
