"""One run of `./run bench nodes`: its options, place, nodes and tables, and a connection to a node."""

import argparse
import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from bench.harness.place import Place
from bench.harness.report import Tables
from bench.harness.web import WebServer
from compliance.localdev.ports import HOST

CALL_SECONDS = 60.0


@dataclass
class NodesRun(Tables):
    """One run, from its nodes to its tables. `is_broken`: a promise without exceptions was broken."""

    options: argparse.Namespace
    place: Place
    nodes: list[WebServer]
    is_broken: bool = False
    is_held: bool = True

    def clients(self) -> list["NodeClient"]:
        """A connection to each node."""
        return [NodeClient(node.port, self.place.api_key) for node in self.nodes]


class NodeClient:
    """One kept connection to one node."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=CALL_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return its status and data."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        found = json.loads(answer.read() or b"{}")
        return answer.status, found.get("data", found)

    def close(self) -> None:
        self._connection.close()
