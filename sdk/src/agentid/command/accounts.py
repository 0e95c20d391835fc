"""`login` and `whoami`: an API key in the user's own folder."""

import argparse
import getpass
import json
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentid.client.service import Client
from agentid.command.output import Output
from agentid.errors import ConfigurationError, NotPermitted

_PREFIX = re.compile(r"[a-z0-9]+_(live|test)_")


def stored_account(path: Path) -> dict[str, str]:
    """The stored `base_url` and `api_key`; empty if there are none.

    Raises: ConfigurationError for a file that is none.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        return {name: str(found[name]) for name in ("base_url", "api_key")}
    except FileNotFoundError:
        return {}
    except (ValueError, LookupError, TypeError):
        raise ConfigurationError(f"{path}: not an account; log in again") from None


def account_path() -> Path:
    """The file, in XDG_CONFIG_HOME."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "agentid" / "account.json"


def client_for(given: argparse.Namespace) -> Client:
    """A client by the arguments, else the environment, else the stored account.

    The stored key is sent only to the address that it was stored with.
    """
    account = stored_account(account_path())
    base_url = given.base_url or os.environ.get("AGENTID_BASE_URL") or account.get("base_url")
    key = os.environ.get("AGENTID_API_KEY")
    if key is None and base_url == account.get("base_url"):
        key = account.get("api_key")
    return Client(base_url, key)


def register(commands: Any) -> None:
    login = commands.add_parser("login", help="check an API key and keep it")
    login.set_defaults(run=log_in)
    who = commands.add_parser("whoami", help="show where and with which key the command works")
    who.set_defaults(run=show)


def log_in(given: argparse.Namespace, output: Output) -> None:
    base_url = given.base_url or os.environ.get("AGENTID_BASE_URL") or input("Base URL: ").strip()
    with Client(base_url, _ask_key()) as client:
        _check(client)
        configuration = client.transport.configuration
    path = account_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # only its owner may read it
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"base_url": configuration.base_url, "api_key": configuration.api_key}, file)
    Path(name).replace(path)
    output.note(f"kept in {path}")


def show(given: argparse.Namespace, output: Output) -> None:
    with client_for(given) as client:
        configuration = client.transport.configuration
        if configuration.api_key is None:
            raise ConfigurationError("no API key: log in, or set AGENTID_API_KEY")
        _check(client)
    prefix = _PREFIX.match(configuration.api_key)
    output.data(
        base_url=configuration.base_url,
        environment=prefix and prefix[1],
        api_key=f"{prefix[0] if prefix else ''}…",
    )


def _ask_key() -> str:
    """The key, from the environment, a pipe or a prompt that does not show it."""
    key = os.environ.get("AGENTID_API_KEY")
    if key is None:
        key = getpass.getpass("API key: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise ConfigurationError("no API key given")
    return key.strip()


def _check(client: Client) -> None:
    """Raise NotAuthenticated unless the key counts; one that may not list agents does."""
    with suppress(NotPermitted):
        next(client.agents.list(limit=1), None)
