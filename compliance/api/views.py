"""The base of the API's views."""

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import ViewSet

from compliance.api.permissions import Scope
from compliance.errors import Invalid


class ApiViewSet(ViewSet):
    """An authenticated resource; `required_scopes` names the scope of each action."""

    required_scopes: ClassVar[dict[str, Scope]] = {}


class PublicViewSet(ViewSet):
    """A resource that needs no credentials; sent credentials are ignored."""

    authentication_classes: ClassVar[list[Any]] = []
    permission_classes: ClassVar[list[Any]] = []
    throttle_classes: ClassVar[list[Any]] = []


def validated(serializer: type[BaseSerializer], request: Request, **kwargs: Any) -> dict[str, Any]:
    """The request's body through an input serializer; raises DRF's `ValidationError` or `Invalid`."""
    if not isinstance(request.data, dict):
        raise Invalid("Request body must be a JSON object")
    bound = serializer(data=request.data, **kwargs)
    bound.is_valid(raise_exception=True)
    return bound.validated_data

