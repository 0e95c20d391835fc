"""`GET /v1/schema`: the OpenAPI description, in JSON unless YAML is asked for; `GET /v1/docs`: to browse it.

The description is the same for everyone, so a process draws it once, before it has threads, and keeps it as
bytes: the generator keeps state that threads would share.
"""

import hashlib
from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.text import slugify
from drf_spectacular import renderers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from drf_spectacular.views import SpectacularSwaggerView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from compliance.api.rest.renderers import FastJSONRenderer
from compliance.api.rest.views import PublicView

MAX_AGE_SECONDS = 300
# Swagger UI sets inline styles.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
Text = tuple[bytes, str]  # the description in one form, and its entity tag


@cache
def draw() -> dict[str, Text]:
    """The description by form (`json`, `yaml`)."""
    description, texts = SchemaGenerator().get_schema(public=True), {}  # type: ignore[no-untyped-call]
    for renderer in (renderers.OpenApiJsonRenderer(), renderers.OpenApiYamlRenderer()):
        body: bytes = renderer.render(description)
        texts[renderer.format] = body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return texts


class DescribingView(PublicView):
    """A view whose answers are no JSON of ours; its errors are the envelope all the same."""

    bucket = "public"

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

    @extend_schema(exclude=True, parameters=[OpenApiParameter("format")])
    def get(self, request: Request) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        body, etag = draw()[renderer.format]
        name = f"{slugify(spectacular_settings.TITLE)}.{renderer.format}"
        headers = {
            "ETag": etag,
            "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
            "Content-Disposition": f'inline; filename="{name}"',
        }
        response = HttpResponse(body, content_type=renderer.media_type, headers=headers)
        return get_conditional_response(request._request, etag, None, response) or response


class DocumentationView(DescribingView, SpectacularSwaggerView):
    """The description as pages."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response
