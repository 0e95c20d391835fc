"""`python -m ops.tests.cluster.receiver PORT`: takes webhooks, and tells when each one's first byte came.

`GET /taken` gives a line for each delivery taken since the last time it was asked: event id, Unix time, path.
"""

import asyncio
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

taken: list[str] = []


class Conversation(asyncio.Protocol):
    """One connection, one request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.data, self.since = transport, b"", 0.0

    def data_received(self, data: bytes) -> None:
        self.since = self.since or time.time()
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if len(body) >= int(headers.get("content-length", 0)):
            self._answer(lines[0].split(" ")[1], headers)

    def _answer(self, path: str, headers: dict[str, str]) -> None:
        if path == "/taken":
            text = "".join(taken).encode()
            taken.clear()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
            return
        taken.append(f"{headers.get('webhook-id', '-')} {self.since:.6f} {path}\n")
        self.transport.write(ANSWER)
        self.transport.close()


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Conversation, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
