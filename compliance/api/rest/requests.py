"""The type of an authenticated request."""

from collections.abc import Collection
from typing import Any, Protocol
from uuid import UUID

from rest_framework.request import Request


class Credential(Protocol):
    """What a view may ask of the API key behind a request."""

    @property
    def id(self) -> UUID: ...

    @property
    def tenant_id(self) -> UUID: ...

    @property
    def scopes(self) -> Collection[str]: ...


class ApiRequest(Request):
    """A request whose `auth` is an API key; the type of `request` in every authenticated view."""

    auth: Credential


def credential_of(request: Request) -> Credential | None:
    """The API key behind any request; None where nobody authenticated."""
    found: Any = request.auth
    return found or None
