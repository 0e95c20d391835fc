"""A connection to a running stack that sends octets as they are given, well-formed or not."""

import json
import select
import socket
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from compliance.tests.stack import Stack


@dataclass
class Reply:
    """A response off the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)["data"]


class Connection:
    """A keep-alive connection that sends exactly what it is given."""

    def __init__(self, stack: Stack) -> None:
        address = urlsplit(stack.exports["BASE_URL"])
        self._key = stack.exports["LIVE_API_KEY"]
        self._socket = socket.create_connection((address.hostname, address.port), timeout=60)
        self._reader = self._socket.makefile("rb")

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def head(self, *lines: str, content_type: str = "application/json", path: str = "/v1/events") -> bytes:
        usual = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self._key}"]
        return "\r\n".join([*usual, f"Content-Type: {content_type}", *lines, "", ""]).encode()

    def request(self, body: bytes, *, content_type: str = "application/json") -> bytes:
        return self.head(f"Content-Length: {len(body)}", content_type=content_type) + body

    def chunked(self, *pieces: bytes) -> bytes:
        sized = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece)
        return self.head("Transfer-Encoding: chunked") + sized + b"0\r\n\r\n"

    def send(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def receive(self) -> Reply:
        """The next response; raises `ConnectionError` where the server hung up."""
        line = self._reader.readline()
        if not line:
            raise ConnectionError("no answer")
        headers: dict[str, str] = {}
        while (header := self._reader.readline().strip()) != b"":
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = self._reader.read(int(headers.get("content-length", "0")))
        return Reply(int(line.split()[1]), headers, body)

    def has_answer(self) -> bool:
        """Return whether something came that was not received yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def ask(self, raw: bytes) -> Reply:
        self.send(raw)
        return self.receive()

    def reset(self) -> None:
        """End the connection at once, with what was sent last perhaps still under way."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def finish(self) -> None:
        """Send no more."""
        self._socket.shutdown(socket.SHUT_WR)


def body_for(agent: str, **more: Any) -> bytes:
    return json.dumps({"agentId": agent, "actionType": "api_call", **more}).encode()
