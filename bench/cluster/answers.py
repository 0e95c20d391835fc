"""What the cluster's programs answer over HTTP."""

import json
import urllib.error
import urllib.request
from typing import Any

from bench.cluster.configurations import NodeAddress


def rest_status(node: NodeAddress, path: str) -> int | None:
    """Return the status that Patroni's REST API answers; None if it does not."""
    return status_of(f"http://{node.host}:{node.rest}{path}", seconds=1.0)


def status_of(url: str, *, seconds: float = 5.0) -> int | None:
    """Return the status of a GET; None without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as response:  # noqa: S310  (ours)
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError):
        return None


def etcd_status(node: NodeAddress) -> dict[str, Any] | None:
    """Return what an etcd member says of itself; None without an answer."""
    request = urllib.request.Request(
        f"http://{node.host}:{node.etcd}/v3/maintenance/status", data=b"{}", method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=1.0) as response:  # noqa: S310  (ours)
            found: dict[str, Any] = json.load(response)
            return found
    except (OSError, ValueError):
        return None
