"""`python -m bench.rulers.echo PORT`: answers 201 to whatever comes, as fast as Python can."""

import select
import socket
import sys

BODY = b'{"data":{"id":"01a1fad5-2662-7348-86ea-8ffb2ba48a5c"}}'
ANSWER = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)


def main(port: int) -> None:
    """Serve until killed; a request is taken to arrive in one piece."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    poll = select.epoll()
    poll.register(listener.fileno(), select.EPOLLIN)
    connections: dict[int, socket.socket] = {}
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                poll.register(connection.fileno(), select.EPOLLIN)
            elif not _answer(connections[fd]):
                connections.pop(fd).close()


def _answer(connection: socket.socket) -> bool:
    try:
        if connection.recv(65_536):
            connection.send(ANSWER)
            return True
    except OSError:
        pass
    return False


if __name__ == "__main__":
    main(int(sys.argv[1]))
