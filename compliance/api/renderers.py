"""JSON out, through orjson."""

from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


class FastJSONRenderer(BaseRenderer):
    """`application/json`; date-times in UTC with a Z, UUIDs as text."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=str, option=OPTIONS)
