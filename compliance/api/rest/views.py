"""The base of the API's views."""

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from compliance.api import gate
from compliance.api.endpoint import PUBLIC_HEADERS
from compliance.api.gate import GateRequest, Scope
from compliance.api.idempotency import idempotent
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.throttling import count_request
from compliance.core.errors import Invalid


class LimitedView(APIView):
    """Tells on every answer, refusals included, how the caller stands against the rate limit."""

    http_method_names = ["get", "post", "patch", "delete", "head"]
    ignores_unknown_parameters: ClassVar[bool] = False
    bucket: str | None = "key"
    """The rate limit that counts its requests, a key of `RATE_LIMITS`; None: they are not counted."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse query parameters that are repeated or, under `/v1`, that the operation does not declare.

        The paths elsewhere belong to standards. OAuth's requires that unknown parameters are ignored
        (RFC 6749 §3.2).
        """
        super().initial(request, *args, **kwargs)
        handler, given = getattr(self, str(request.method).lower(), None), request.query_params
        if handler is None or not given:
            return
        known = _declared_names(handler.__func__)
        if repeated := [name for name in known if len(given.getlist(name)) > 1]:
            raise Invalid(f"Query parameter given more than once: {min(repeated)}")
        if self.ignores_unknown_parameters or not request.path.startswith("/v1/"):
            return
        if unknown := given.keys() - known:
            names = ", ".join(sorted(known)) or "none"
            raise Invalid(f"Unknown query parameter: {min(unknown)[:100]}; known here: {names}")

    @staticmethod
    def presented_key(request: HttpRequest) -> str | None:
        """The API key that a request to this view brings."""
        return gate.bearer_token(GateRequest.of(request))

    def check_permissions(self, request: Request) -> None:
        # What the caller may not do counts as well.
        if self.bucket is not None:
            count_request(request, self.bucket)
        super().check_permissions(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        limit = getattr(request, "rate_limit", None)
        if limit is not None:
            for name, value in limit.headers().items():
                response.headers.setdefault(name, value)
        if isinstance(response, Response):
            response.add_post_render_callback(_untie)
        return response


@cache
def _declared_names(operation: Callable[..., Any]) -> frozenset[str]:
    """The query parameters that `extend_schema` declares for an operation."""
    described = getattr(operation, "kwargs", {}).get("schema")
    if described is None:
        return frozenset()
    schema = described()
    # All that it asks of a view is the version, and the API has one.
    schema.view = SimpleNamespace(determine_version=lambda _: (None, None), request=None, kwargs={})
    declared = schema.get_override_parameters()
    return frozenset(each.name for each in declared if each.location == OpenApiParameter.QUERY)


def _untie(response: Any) -> None:
    """Cut the circles through request, view and answer.

    What they hold, a batch's events say, is then freed with the last who uses them. Else it would wait for
    the garbage collector, which would look at all of it.
    """
    context = response.renderer_context
    context["request"].parser_context.clear()
    vars(context["view"]).clear()
    context.clear()


class ApiViewSet(LimitedView, ViewSet):
    """An authenticated resource; `required_scopes` are those that its operations name."""

    required_scopes: ClassVar[dict[str, Scope]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: action.scope for name, action in vars(cls).items() if hasattr(action, "scope")}
        cls.required_scopes = {**cls.required_scopes, **own}


def operation(
    operation_id: str,
    summary: str,
    scope: Scope,
    answer: Any = None,
    *,
    status: int = 200,
    parameters: Sequence[OpenApiParameter] = (),
    repeats: bool = False,
    **described: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Define an action of an `ApiViewSet`: the scope its key must hold, and its OpenAPI description.

    `answer` is the serializer of what `data` holds, a schema of the whole answer, or answers by status.
    `repeats`: the action honours `Idempotency-Key`. `e404="Agent not found"` names an error beside those of
    any call with a key; the rest goes to `extend_schema`.
    """
    texts = {name: described.pop(name) for name in [*described] if name[1:].isdecimal()}
    if repeats:
        parameters = [*parameters, IDEMPOTENCY_KEY]
    statuses = (*KEYED, 409) if IDEMPOTENCY_KEY in parameters else KEYED
    if isinstance(answer, type):
        answer = enveloped(answer)
    answers = answer if isinstance(answer, dict) else {status: answer}
    describe = extend_schema(
        operation_id=operation_id,
        summary=summary,
        parameters=[*parameters],
        responses={**answers, **errors(*statuses, **texts)},
        **described,
    )

    def define(action: Callable[..., Any]) -> Any:
        defined: Any = describe(idempotent(action) if repeats else action)
        defined.scope = scope
        return defined

    return define


def listing(
    operation_id: str,
    summary: str,
    scope: Scope,
    rows: type[Serializer[Any]],
    *,
    parameters: Sequence[OpenApiParameter] = (),
    **described: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """An `operation` that answers a page of rows, newest first, from `before` on, `limit` at most."""
    parameters = [*parameters, BEFORE, LIMIT]
    return operation(operation_id, summary, scope, paged(rows), parameters=parameters, **described)


class PublicView(LimitedView):
    """A view that needs no credentials; sent credentials are ignored, and any web page may read it."""

    authentication_classes = ()
    permission_classes = ()
    bucket: str | None = None

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.method in SAFE_METHODS:
            for name, value in PUBLIC_HEADERS.items():
                response[name] = value
        return response


class PublicViewSet(PublicView, ViewSet):
    """A resource that needs no credentials, limited by address."""

    bucket = "public"


def is_public(view: Any) -> bool:
    """Return whether a view that a route leads to (`as_view()`'s) needs no credentials."""
    return issubclass(getattr(view, "cls", object), PublicView)


def validated(serializer: type[BaseSerializer], request: Request, **kwargs: Any) -> dict[str, Any]:
    """The request's body through an input serializer; raises DRF's `ValidationError` or `Invalid`."""
    return checked(serializer, request.data, **kwargs)


def checked(serializer: type[BaseSerializer], body: Any, **kwargs: Any) -> dict[str, Any]:
    """A parsed body through an input serializer. Raises: REST framework's ValidationError, Invalid."""
    if not isinstance(body, dict):
        raise Invalid("Request body must be a JSON object")
    bound = serializer(data=body, **kwargs)
    bound.is_valid(raise_exception=True)
    found: dict[str, Any] = bound.validated_data
    return found
