"""JSON out, through orjson."""

import json
from typing import Any

import orjson
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Compact JSON; date-times in UTC with a Z, UUIDs as text, integers of any size.

    orjson refuses integers beyond 64 bits, which clients may well store: those go the slow way.
    """
    try:
        return orjson.dumps(value, default=str, option=OPTIONS | (orjson.OPT_SORT_KEYS if sort_keys else 0))
    except orjson.JSONEncodeError:

        def plain(one: Any) -> Any:
            return orjson.loads(orjson.dumps(one, default=str, option=OPTIONS))

        separators = (",", ":")
        return json.dumps(
            value, default=plain, sort_keys=sort_keys, ensure_ascii=False, separators=separators
        ).encode()


class FastJSONRenderer(BaseRenderer):
    """`application/json`; date-times in UTC with a Z, UUIDs as text."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else dumps(data)


class AlwaysFirstRenderer(DefaultContentNegotiation):
    """The first renderer, always, whatever a client accepts."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type
