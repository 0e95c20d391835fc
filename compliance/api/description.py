"""`GET /v1/schema`: the OpenAPI description, in JSON unless YAML is asked for."""

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView
from rest_framework.negotiation import DefaultContentNegotiation


@cache
def _drawn() -> Any:
    return SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]


class OnceGenerator(SchemaGenerator):
    """Draws the description once for each process: it takes a second, and anyone may ask for it."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        return _drawn()


class DescriptionView(SpectacularAPIView):
    """Chosen by `Accept` or `?format=yaml`; JSON first, which readers of YAML take as well."""

    generator_class = OnceGenerator
    renderer_classes = [OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer, OpenApiYamlRenderer2]
    content_negotiation_class = DefaultContentNegotiation
