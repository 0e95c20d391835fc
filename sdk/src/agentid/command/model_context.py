"""`mcp`: the Model Context Protocol server, if its extra is installed."""

import argparse
import importlib
from typing import Any

from agentid.command.output import Output
from agentid.errors import ConfigurationError


def register(commands: Any) -> None:
    found = commands.add_parser("mcp", help="serve the Model Context Protocol over stdio")
    found.set_defaults(run=run)


def run(given: argparse.Namespace, output: Output) -> None:
    try:
        module = importlib.import_module("agentid.mcp.__main__")
    except ImportError:
        raise ConfigurationError("install agentid[mcp]") from None
    module.main()
