"""The environment of the service's processes that a test starts, over the tests' databases."""

import os
from urllib.parse import urlsplit, urlunsplit

from django.db import connections

from compliance.core.environments import Environment
from compliance.localdev.environment import OPERATORS


def node_environment() -> dict[str, str]:
    """Return this process's variables, without the owners' credentials, with the tests' databases."""
    found = {name: value for name, value in os.environ.items() if name not in OPERATORS}
    for environment, prefix in ((Environment.LIVE, ""), (Environment.TEST, "TEST_")):
        database = connections[environment.alias].settings_dict["NAME"]
        for name in (f"{prefix}DATABASE_URL", f"{prefix}DATABASE_DIRECT_URL"):
            if name in found:
                found[name] = urlunsplit(urlsplit(found[name])._replace(path=f"/{database}"))
    return found
