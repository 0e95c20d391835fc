"""`GET /v1/schema`: the OpenAPI description, in JSON unless YAML is asked for; `GET /v1/docs`: to browse it.

The description is the same for everyone, so a process draws it once, at its start, and keeps it as bytes. The
generator keeps state that threads would share: it runs under a lock.
"""

import hashlib
from threading import Lock
from typing import Any

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.text import slugify
from drf_spectacular import renderers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from compliance.api.rest.renderers import FastJSONRenderer
from compliance.api.rest.throttling import PublicThrottle
from compliance.api.rest.views import PublicView

MAX_AGE_SECONDS = 300
_drawing = Lock()
Text = tuple[bytes, str]  # the description in one form, and its entity tag
_texts: dict[str, Text] = {}


def draw() -> dict[str, Text]:
    """The description by form (`json`, `yaml`), drawn by the first call of the process."""
    with _drawing:
        if not _texts:
            description = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
            _texts["json"] = _text(renderers.OpenApiJsonRenderer().render(description))
            _texts["yaml"] = _text(renderers.OpenApiYamlRenderer().render(description))  # type: ignore[no-untyped-call]
    return _texts


def _text(body: bytes) -> Text:
    return (body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class DescribingView(PublicView):
    """A view whose answers are no JSON of ours; its errors are the envelope all the same."""

    throttle_classes = (PublicThrottle,)

    def handle_exception(self, exc: Exception) -> Any:
        self.request.accepted_renderer = FastJSONRenderer()
        self.request.accepted_media_type = FastJSONRenderer.media_type
        return super().handle_exception(exc)


class DescriptionView(DescribingView):
    """Chosen by `Accept` or `?format=yaml`; JSON first, which readers of YAML take as well."""

    renderer_classes = [
        *(renderers.OpenApiJsonRenderer, renderers.OpenApiJsonRenderer2),
        *(renderers.OpenApiYamlRenderer, renderers.OpenApiYamlRenderer2),
    ]
    content_negotiation_class = DefaultContentNegotiation

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        body, etag = draw()[renderer.format]
        response = HttpResponse(content_type=renderer.media_type)
        response["ETag"] = etag
        response["Cache-Control"] = f"public, max-age={MAX_AGE_SECONDS}"
        name = slugify(spectacular_settings.TITLE)
        response["Content-Disposition"] = f'inline; filename="{name}.{renderer.format}"'
        conditional = get_conditional_response(request._request, etag, None, response)
        if conditional is not None and conditional is not response:
            return conditional
        response.content = body
        return response


class DocumentationView(DescribingView, SpectacularSwaggerSplitView):
    """The description as pages."""
