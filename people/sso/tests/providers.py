"""Providers that tests sign in at: a real one in its own process, and one that forges its answers."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from django.conf import settings
from django.test import Client
from django.urls import reverse

from compliance.tests.waiting import eventually
from people.sso.tests import toolkit

START_SECONDS = 60


@dataclass(frozen=True)
class Toolkit:
    """The real provider; `claims` go into each ID token that it makes."""

    issuer: str
    folder: Path

    def add(self, **claims: Any) -> None:
        (self.folder / "claims.json").write_text(json.dumps(claims))

    def sign_in(self, address: str, name: str = "kim") -> str:
        """Give the name's password at `address`, as a browser does; return where the provider sends it."""
        browser = requests.Session()
        page = browser.get(address, timeout=60)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert token, page.text
        form = {"username": name, "password": toolkit.PASSWORD, "csrfmiddlewaretoken": token[1]}
        answer = browser.post(page.url, form, timeout=60, allow_redirects=False)
        answer = browser.get(
            requests.compat.urljoin(page.url, answer.headers["Location"]), timeout=60, allow_redirects=False
        )
        return answer.headers["Location"]


@contextmanager
def running_toolkit(folder: Path, console: str) -> Iterator[Toolkit]:
    """Run the provider for the console at that address, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, toolkit.__file__, str(port), str(folder), console]
    with (folder / "provider.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    found = Toolkit(f"http://127.0.0.1:{port}/o", folder)
    try:
        document = f"{found.issuer}/.well-known/openid-configuration"
        ready = eventually(lambda: process.poll() is not None or answers(document), seconds=START_SECONDS)
        assert ready, "the provider does not answer"
        assert process.poll() is None, (folder / "provider.log").read_text()
        yield found
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).status_code == 200
    except requests.RequestException:
        return False


def configure(given: Any, issuer: str, **more: Any) -> None:
    """Switch single sign-on on, at that issuer."""
    values = {
        "OIDC_ISSUER": issuer,
        "OIDC_CLIENT_ID": toolkit.CLIENT_ID,
        "OIDC_CLIENT_SECRET": toolkit.CLIENT_SECRET,
        "OIDC_LABEL": "Example ID",
        **more,
    }
    for name, value in values.items():
        setattr(given, name, value)


def begin(client: Client, **form: str) -> str:
    """Press the button of the sign-in page; return the address that the browser goes to."""
    page: Any = client.post(reverse("admin:sso_begin"), form)
    assert page.status_code == 200, page.content
    return address_in(page)


def address_in(page: Any) -> str:
    """The address that a page goes to at once."""
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.content.decode())
    assert found, page.content
    return unescape(found[1])


def parameters_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def follow(client: Client, address: str) -> Any:
    """Open an address of the console that the provider sends the browser to."""
    assert address.startswith(settings.BASE_URL), address
    return client.get(address.removeprefix(settings.BASE_URL))
