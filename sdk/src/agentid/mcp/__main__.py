"""Serves the tools: `agentid mcp`, `python -m agentid.mcp`.

Reads AGENTID_BASE_URL, AGENTID_API_KEY, AGENTID_AGENT_ID and AGENTID_DPOP_KEY: a path, at which the
agent's own key is made if there is none.
"""

import os
import sys

from agentid.client.service import AsyncClient
from agentid.client.transport import Retries
from agentid.errors import ConfigurationError
from agentid.keys import DpopKey
from agentid.mcp.server import make_server

RETRIES = Retries(tries=3, total_seconds=10.0)  # a model waits for the answer


def main(port: int | None = None) -> None:
    """Serve until standard input ends; at `port` over streamable HTTP instead, to this machine alone."""
    try:
        client = AsyncClient(retries=RETRIES)
        file = os.environ.get("AGENTID_DPOP_KEY")
        key = DpopKey.load_or_generate(file) if file else None
    except (ConfigurationError, OSError) as error:
        sys.exit(str(error))
    server = make_server(client, agent_id=os.environ.get("AGENTID_AGENT_ID") or None, key=key)
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
