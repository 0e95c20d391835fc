"""The success envelope: `{"data": …}`."""

from collections.abc import Collection
from typing import Any

from rest_framework.response import Response


def ok(data: Any, *, status: int = 200) -> Response:
    """200 (or `status`) with `{"data": data}`."""
    return Response({"data": data}, status=status)


def page(items: Collection[Any], *, next_cursor: str | None, has_next_page: bool | None = None) -> Response:
    """200 with `{"data": [...], "next_cursor": …}`, and `has_next_page` where the endpoint tells it."""
    body: dict[str, Any] = {"data": items}
    if has_next_page is not None:
        body["has_next_page"] = has_next_page
    return Response({**body, "next_cursor": next_cursor})
