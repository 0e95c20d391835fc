"""One key host: performs requests on the tokens of its own PKCS#11 module, until SIGTERM."""

import faulthandler
import fcntl
import logging
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Final

import msgspec
from django.conf import settings

from compliance.core.environments import Environment
from compliance.core.errors import Conflict, Unavailable
from compliance.keys.base import KeyServiceUnavailable
from compliance.keys.hosts import protocol
from compliance.keys.hosts.protocol import ConnectionLost, KeyHostRequest, KeyHostResponse
from compliance.keys.pkcs11.backend import Pkcs11Backend, pkcs11_backend
from compliance.keys.pkcs11.module import module_at

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 512
BACKLOG: Final = 512
MESSAGE_SECONDS: Final = 5.0  # for a request, and for reading a response
POLL_SECONDS: Final = 0.5
WATCHDOG_SECONDS: Final = 10.0  # a process that hangs for so long ends itself
REST_SECONDS: Final = 0.1  # after a connection that could not be accepted
LAST_RESPONSES_SECONDS: Final = 0.05  # for responses on their way when the host ends


class KeyHostServer:
    """Serve the socket of host `number` in `folder`, each request in a thread."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number
        self._module = module_at(settings.PKCS11_MODULE)
        self._backends: dict[Environment, Pkcs11Backend] = {}
        self._connections = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Start the module, then serve until SIGTERM or SIGINT; raises `Conflict` if it runs already."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        protocol.make_folder(self._folder)
        with (self._folder / f"host-{self._number}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict("This key host runs already") from error
            try:
                with self._module.entered():
                    pass
            except Unavailable as error:  # the next request tries again
                logger.warning("The module has not started: %s", error.message)
            with protocol.listen(self._folder, self._number, backlog=BACKLOG) as listener:
                logger.info("Key host %d serves", self._number)
                self._accept(listener)
            (self._folder / protocol.SOCKET.format(self._number)).unlink(missing_ok=True)
            self._module.close()
            time.sleep(LAST_RESPONSES_SECONDS)
            faulthandler.cancel_dump_traceback_later()
        logger.info("Key host %d ends", self._number)

    @property
    def is_blocked(self) -> bool:
        """Return whether so many calls hang in the module that none can be made."""
        return any(backend.calls.is_blocked for backend in list(self._backends.values()))

    def _accept(self, listener: socket.socket) -> None:
        listener.settimeout(POLL_SECONDS)
        while not self._stopping.is_set():
            if not self.is_blocked:
                faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:  # such as too many open files
                logger.warning("Key host %d accepts no connection: %s", self._number, error)
                time.sleep(REST_SECONDS)
                continue
            if self._connections.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                logger.warning("Key host %d refuses connection %d", self._number, MAX_CONNECTIONS + 1)
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                protocol.require_same_user(connection)
                request = protocol.receive(connection, KeyHostRequest, seconds=MESSAGE_SECONDS)
                protocol.send(connection, self._respond(request), seconds=MESSAGE_SECONDS)
            except ConnectionLost as error:
                logger.debug("A connection ended: %s", error)
            except OSError as error:
                logger.warning("A connection was ended: %s", error)
            finally:
                self._connections.release()

    def _respond(self, request: KeyHostRequest) -> KeyHostResponse:
        types, _ = protocol.types_of(request.operation)
        arguments = protocol.decode(request.arguments, types)
        try:
            backend = self._backends.get(request.environment)
            if backend is None:
                backend = self._backends.setdefault(request.environment, pkcs11_backend(request.environment))
            operation = protocol.OPERATIONS[request.operation]
            if request.token:
                result = backend.perform(request.token, operation, *arguments)
            else:
                result = operation(backend, *arguments)
            return KeyHostResponse(msgspec.Raw(protocol.encode(result)))
        except Exception as error:
            known: Exception = error
            if not isinstance(error, tuple(protocol.ERRORS.values())):
                logger.exception("%s failed", request.operation)
                known = KeyServiceUnavailable()
            name = next(name for name, kind in protocol.ERRORS.items() if isinstance(known, kind))
            return KeyHostResponse(
                failure=name, message=str(known), retry_after=getattr(known, "retry_after", None)
            )
