"""One key host: takes connections and answers their requests, a thread for each, until it is told to end."""

import logging
import os
import signal
import socket
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from compliance.keys.hosts import address
from compliance.keys.hosts.desk import Desk
from compliance.keys.hosts.wire import MAX_REQUEST, Broken, Channel, read_request

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 512
BACKLOG: Final = 128
MESSAGE_SECONDS: Final = 5.0
"""For the rest of a request whose beginning has come, and for a caller to take its answer."""

LAST_WORDS_SECONDS: Final = 0.05
"""For answers that are on their way when the host ends."""


class _Stopped(BaseException):
    """SIGTERM came."""


class Server:
    """Serves one socket; `beat` is the line to the keeper, who sees by it that this process is well."""

    def __init__(self, folder: Path, number: int, beat: socket.socket) -> None:
        self._folder = folder
        self._number = number
        self._beat = beat
        self._desk = Desk()
        self._open = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def run(self) -> None:
        """Serve until SIGTERM, or until the keeper is gone. Listens once the module has started."""
        signal.signal(signal.SIGTERM, _stop)
        threading.Thread(target=self._echo, name="keys-beat", daemon=True).start()
        try:
            self._desk.open()
            listener = address.listen(self._folder, self._number, backlog=BACKLOG)
            logger.info("Key host %d serves", self._number)
            while True:
                self._welcome(listener.accept()[0])
        except _Stopped:
            logger.info("Key host %d ends", self._number)
        self._desk.close()
        time.sleep(LAST_WORDS_SECONDS)

    def _welcome(self, connection: socket.socket) -> None:
        if not self._open.acquire(blocking=False):
            logger.warning(
                "Key host %d has %d connections; one more was refused", self._number, MAX_CONNECTIONS
            )
            connection.close()
            return
        threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        """Answer one connection to its end; whatever is wrong with it ends it alone."""
        channel = Channel(connection, limit=MAX_REQUEST)
        try:
            address.require_same_user(connection)
            while True:
                number, payload = channel.receive(timeout=MESSAGE_SECONDS, is_idle=True)
                for answer in self._desk.answer(read_request(payload)):
                    channel.send(number, answer, timeout=MESSAGE_SECONDS)
        except Broken as error:
            logger.debug("A connection ended: %s", error)
        except (OSError, TimeoutError) as error:
            logger.warning("A connection was ended: %s", error)
        finally:
            channel.close()
            self._open.release()

    def _echo(self) -> None:
        """Send back what the keeper sends while calls into the module come back; end when he is gone."""
        while True:
            try:
                ping = self._beat.recv(1)
            except OSError:
                ping = b""
            if not ping:
                os._exit(1)
            if self._desk.is_well():
                self._beat.send(ping)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped
