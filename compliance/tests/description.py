"""The service's own OpenAPI description, from which tests are generated."""

import json
from typing import Any

from compliance.api.rest.description import draw


def description() -> dict[str, Any]:
    """Return it as clients read it; the caller may change the copy."""
    found: dict[str, Any] = json.loads(draw()["json"][0])
    return found
