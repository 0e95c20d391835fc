"""Serves the tools over standard input and output: `python -m agentid.mcp`, `agentid mcp`."""

import os
import sys

from agentid.mcp.server import Configuration, make_server


def main() -> None:
    """Serve until standard input ends."""
    try:
        configuration = Configuration.of(os.environ)
    except KeyError as error:
        sys.exit(f"{error.args[0]} is not set")
    make_server(configuration).run("stdio")


if __name__ == "__main__":
    main()
