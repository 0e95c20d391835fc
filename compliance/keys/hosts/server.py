"""One key host: accepts connections and serves each in a thread, until SIGTERM."""

import faulthandler
import fcntl
import logging
import signal
import socket
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from compliance.core.errors import Conflict
from compliance.keys.hosts import sockets
from compliance.keys.hosts.messages import MAX_REQUEST, ConnectionLost, MessageConnection, read_request
from compliance.keys.hosts.service import KeyHostService

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 512
BACKLOG: Final = 128
MESSAGE_SECONDS: Final = 5.0  # for the rest of a request, and for reading a response
POLL_SECONDS: Final = 0.5
WATCHDOG_SECONDS: Final = 10.0  # a process that hangs for so long ends itself
LAST_RESPONSES_SECONDS: Final = 0.05  # for responses on their way when the host ends


class KeyHostRunsAlready(Conflict):
    """409: another process is this key host."""

    message = "This key host runs already"


class KeyHostServer:
    """Serve the socket of host `number` in `folder`."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number
        self._service = KeyHostService()
        self._connections = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._is_stopping = False

    def run(self) -> None:
        """Start the module, then serve until SIGTERM or SIGINT; raises `KeyHostRunsAlready`."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        sockets.make_folder(self._folder)
        with (self._folder / f"host-{self._number}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise KeyHostRunsAlready from error
            self._service.start()
            with sockets.listen(self._folder, self._number, backlog=BACKLOG) as listener:
                logger.info("Key host %d serves", self._number)
                self._accept(listener)
            (self._folder / sockets.socket_name(self._number)).unlink(missing_ok=True)
            self._service.close()
            time.sleep(LAST_RESPONSES_SECONDS)
            faulthandler.cancel_dump_traceback_later()
        logger.info("Key host %d ends", self._number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _accept(self, listener: socket.socket) -> None:
        listener.settimeout(POLL_SECONDS)
        while not self._is_stopping:
            if not self._service.is_blocked:
                faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if self._connections.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                logger.warning("Key host %d refuses connection %d", self._number, MAX_CONNECTIONS + 1)
                connection.close()

    def _serve(self, accepted: socket.socket) -> None:
        """Serve one connection to its end; an error on it ends it alone."""
        connection = MessageConnection(accepted, limit=MAX_REQUEST)
        try:
            sockets.require_same_user(accepted)
            while True:
                number, payload = connection.receive(timeout=MESSAGE_SECONDS, is_idle=True)
                response = self._service.respond(read_request(payload))
                connection.send(number, response, timeout=MESSAGE_SECONDS)
        except ConnectionLost as error:
            logger.debug("A connection ended: %s", error)
        except OSError as error:
            logger.warning("A connection was ended: %s", error)
        finally:
            connection.close()
            self._connections.release()
