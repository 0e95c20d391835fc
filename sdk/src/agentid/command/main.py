"""The entrance of the command: subcommands by a table, errors as exit codes (`EXIT_CODES`)."""

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

from agentid.command import accounts, events, verifying
from agentid.command.output import Output
from agentid.errors import (
    AgentIdError,
    ConfigurationError,
    NotFound,
    NotValid,
    RateLimited,
    Reason,
    ServerFailed,
    ServiceError,
    UnexpectedAnswer,
    Unreachable,
)

OK, INVALID, USAGE, NOT_FOUND, REFUSED, AWAY = range(6)
INTERRUPTED: Final = 130
EXIT_CODES: Final = (
    "Exit status: 0 valid or done, 1 not valid, 2 wrong usage, 3 not found, 4 refused by the service, "
    "5 the service is away."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = parser().parse_args(arguments)
    output = Output(as_json=given.json)
    try:
        given.run(given, output)
    except NotValid as error:
        output.data(valid=False, reason=error.reason.value, detail=error.detail)
        if error.reason in (Reason.UNTRUSTED_ISSUER, Reason.UNKNOWN_KEY) and "environment" in given:
            other = "live" if given.environment == "test" else "test"
            output.note(f"judged as of the environment {given.environment}; is it --environment {other}?")
        return INVALID
    except (AgentIdError, OSError) as error:
        output.note(f"{type(error).__name__}: {error}")
        return code_of(error)
    except EOFError:
        output.note("standard input ended")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK


def code_of(error: AgentIdError | OSError) -> int:
    """The exit code that tells of an error."""
    if isinstance(error, NotFound | FileNotFoundError):
        return NOT_FOUND
    if isinstance(error, Unreachable | ServerFailed | RateLimited | UnexpectedAnswer):
        return AWAY
    if isinstance(error, ServiceError):
        return REFUSED
    return USAGE if isinstance(error, ConfigurationError | OSError) else INVALID


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="agentid", description="Identity of agents.", epilog=EXIT_CODES)
    found.add_argument("--json", action="store_true", help="write data as JSON, one object a line")
    found.add_argument("--base-url", help="the service's address; else AGENTID_BASE_URL, else that of login")
    commands = found.add_subparsers(required=True, metavar="COMMAND")
    for each in (verifying, events, accounts):
        each.register(commands)  # sets `run`, a function of the arguments and the output
    mcp = commands.add_parser("mcp", help="serve the Model Context Protocol over stdio")
    mcp.add_argument("--http", type=int, metavar="PORT", help="serve http://127.0.0.1:PORT/mcp instead")
    mcp.set_defaults(run=serve_mcp)
    return found


def serve_mcp(given: argparse.Namespace, output: Output) -> None:
    """Serve tools, if the extra is installed."""
    try:
        module = importlib.import_module("agentid.mcp.__main__")
    except ImportError:
        raise ConfigurationError("install agentid[mcp]") from None
    module.main(given.http)
