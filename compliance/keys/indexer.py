"""A thread that reads the handles of a token's keys ahead, so that a key's first use does not have to search.

A look-up goes through every object of its token (PKCS#11 has no index), and each process has to make one for
each key it uses; reading them all is one pass.
"""

import logging
import queue
import threading

from pkcs11 import PKCS11Error

from compliance.errors import Unavailable
from compliance.keys.token import Borrowed, Token

logger = logging.getLogger(__name__)


class Indexer:
    """Takes tokens and reads them one after the other; its thread starts with the first."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Token] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def consider(self, token: Token) -> None:
        """Read the token soon if it is time to; returns at once."""
        if not token.claim_index():
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="keys-index", daemon=True)
                self._thread.start()
        self._queue.put(token)

    def _work(self) -> None:
        while True:
            token = self._queue.get()
            try:
                token.use(Borrowed.remember_all)
            except (PKCS11Error, Unavailable) as error:
                logger.info("Token %s not read ahead: %s", token.label, type(error).__name__)
