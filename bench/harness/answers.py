"""Reading HTTP/1.1 answers with as little work as a load generator can do."""

import re

HEAD_END = b"\r\n\r\n"
_LENGTH = b"ontent-length: "
_LENGTH_TITLED = b"ontent-Length: "
_ID = re.compile(rb'"id": ?"([0-9a-f-]{36})"')


class Unreadable(Exception):
    """An answer without a Content-Length, or none at all."""


def whole(data: bytes) -> bool:
    """Whether `data` holds a whole answer. Raises `Unreadable`."""
    end = data.find(HEAD_END)
    if end < 0:
        return False
    start = data.find(_LENGTH, 0, end)
    if start < 0:
        start = data.find(_LENGTH_TITLED, 0, end)
        if start < 0:
            raise Unreadable(data[:200].decode("latin-1"))
    start += len(_LENGTH)
    stop = data.find(b"\r", start)
    return len(data) - end - len(HEAD_END) >= int(data[start:stop])


def is_last(data: bytes) -> bool:
    """Whether the server ends the connection after this answer."""
    return data.find(b"onnection: close\r\n", 0, data.find(HEAD_END) + len(HEAD_END)) > 0


def status(data: bytes) -> bytes:
    """The status code's three digits."""
    return data[9:12]


def first_id(data: bytes) -> bytes | None:
    """The first `id` of the body, 36 characters; None where it has none."""
    start = data.find(b'"id":"')
    if start < 0:
        found = _ID.search(data)
        return found[1] if found else None
    return data[start + 6 : start + 42]


def all_ids(data: bytes) -> list[bytes]:
    """Every `id` of the body, in order; `agent_id` and its like are none."""
    return _ID.findall(data)


def no_ids(data: bytes) -> list[bytes]:
    """For answers whose ids don't matter."""
    return []
