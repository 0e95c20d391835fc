"""JSON out, through orjson."""

import json
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Compact JSON; date-times in UTC with a Z, UUIDs as text, integers of any size.

    orjson refuses integers beyond 64 bits, which clients may well store: those go the slow way.
    """
    try:
        return orjson.dumps(value, default=str, option=OPTIONS | (orjson.OPT_SORT_KEYS if sort_keys else 0))
    except orjson.JSONEncodeError:
        text = json.dumps(
            value, default=_plain, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":")
        )
        return text.encode()


def _plain(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value, default=str, option=OPTIONS))


class FastJSONRenderer(BaseRenderer):
    """`application/json`; date-times in UTC with a Z, UUIDs as text."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else dumps(data)
