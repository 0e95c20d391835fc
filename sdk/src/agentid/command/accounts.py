"""`login` and `whoami`: an API key in the user's own folder."""

import argparse
import getpass
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentid.client.service import Client
from agentid.command.output import Output
from agentid.errors import ConfigurationError, NotPermitted

_PREFIX = re.compile(r"[a-z0-9]+_(live|test)_")


@dataclass(frozen=True)
class Account:
    """Where the service is, and the key to it."""

    base_url: str
    api_key: str = field(repr=False)

    def save(self, path: Path) -> None:
        """Write the file anew, which only its owner may read."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"base_url": self.base_url, "api_key": self.api_key}, file)
        Path(name).replace(path)

    @classmethod
    def load(cls, path: Path) -> "Account | None":
        """The stored account, if there is one. Raises: ConfigurationError for a file that is none."""
        try:
            found = json.loads(path.read_text("utf-8"))
            return cls(str(found["base_url"]), str(found["api_key"]))
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError):
            raise ConfigurationError(f"{path}: not an account; log in again") from None


def account_path() -> Path:
    """The file, in XDG_CONFIG_HOME."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "agentid" / "account.json"


def client_for(given: argparse.Namespace) -> Client:
    """A client by the arguments, else the environment, else the stored account.

    The stored key is sent only to the address that it was stored with.
    """
    account = Account.load(account_path())
    base_url = given.base_url or os.environ.get("AGENTID_BASE_URL") or (account.base_url if account else None)
    key = os.environ.get("AGENTID_API_KEY")
    if key is None and account is not None and base_url == account.base_url:
        key = account.api_key
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
    Account(configuration.base_url, configuration.api_key or "").save(account_path())
    output.note(f"kept in {account_path()}")


def show(given: argparse.Namespace, output: Output) -> None:
    with client_for(given) as client:
        configuration = client.transport.configuration
        if configuration.api_key is None:
            raise ConfigurationError("no API key: log in, or set AGENTID_API_KEY")
        _check(client)
    prefix = _PREFIX.match(configuration.api_key)
    output.data(
        {
            "base_url": configuration.base_url,
            "environment": prefix and prefix[1],
            "api_key": f"{prefix[0] if prefix else ''}…",
        }
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
    try:
        next(client.agents.list(limit=1), None)
    except NotPermitted:
        return
