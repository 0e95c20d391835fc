"""Bodies sent in chunks are read as others are."""

import json
from io import BytesIO
from typing import Any

import pytest

from compliance.wsgi import application


def send_chunked(body: bytes) -> tuple[int, Any]:
    """Status and body of an answer to what a server hands on for a chunked request."""
    told: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/v1/delegation/verify",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input": BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.url_scheme": "http",
    }
    answer = application(environ, lambda status, headers: told.append(status))
    return int(told[0].split()[0]), json.loads(b"".join(answer))


def test_chunked_body_is_read() -> None:
    status, answer = send_chunked(b'{"token": "nonsense"}')

    assert status == 200
    assert answer == {"data": {"valid": False, "reason": "malformed"}}


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 3 * 1024 * 1024])
def test_chunked_body_over_a_mebibyte_is_413(size: int) -> None:
    status, answer = send_chunked(b" " * size)

    assert status == 413
    assert list(answer) == ["error"]
