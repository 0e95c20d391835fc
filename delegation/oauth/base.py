"""The base of the OAuth endpoints' views."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from compliance.api.rest.views import ApiViewSet
from compliance.core import environments
from delegation.oauth import clients, errors, forms
from delegation.oauth.forms import Form


class OAuthViewSet(ApiViewSet):
    """An endpoint for clients: `form_of(request)` is its input, an `OAuthError` its refusal.

    A request runs in the environment of the client's key, whether a header or the body presents the key.
    """

    authentication_classes = (clients.ClientAuthentication,)

    @classmethod
    def presented_key(cls, request: HttpRequest) -> str | None:
        return clients.key_of(request)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with environments.use(clients.environment_of(request) or environments.current()):
            return super().dispatch(request, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Any]:
        return errors.handle


def form_of(request: Request) -> Form:
    """The form of an authenticated request. Raises: OAuthError, TooLarge."""
    return forms.of(request._request)
