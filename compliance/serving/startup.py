"""What a web process does once, done at its start, so that no request pays for it.

Nothing here stops the start or holds it up: what is away is tried again by the request that needs it.
"""

import logging
import threading
from collections.abc import Callable
from importlib import import_module

from django.db import DatabaseError, InterfaceError, connections
from django.urls import get_resolver

from certificates.authorities import issuer_info, signing_key
from certificates.models import CertificateAuthority
from compliance.api.rest import description
from compliance.core import environments, tasks
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.stores import sql

log = logging.getLogger(__name__)

# What Celery imports when the first message is sent
OF_A_MESSAGE = (
    *("celery.app.amqp", "celery.app.events", "celery.backends.base", "celery.events.dispatcher"),
    *("celery.events.receiver", "kombu.transport.redis"),
)
ENVIRONMENT = Environment.LIVE  # the sandbox's connections are opened when they are needed


def load() -> None:
    """Import every view and what sends messages, and draw the API's description from the views."""
    _ = get_resolver().reverse_dict
    description.draw()
    for module in OF_A_MESSAGE:
        import_module(module)


def begin_process() -> None:
    """Have a thread connect the process to the broker and to the key service."""
    threading.Thread(target=_connect_process, name="warming", daemon=True).start()


def begin_thread() -> None:
    """Connect this thread to the database."""
    with environments.use(ENVIRONMENT):
        sql.reach()


def _connect_process() -> None:
    try:
        _tried("broker", tasks.connect)
        _tried("key service", _reach_signing_key)
    finally:
        connections.close_all()


def _reach_signing_key() -> None:
    """Read the CA's certificate and find its key."""
    with environments.use(ENVIRONMENT):
        authority = CertificateAuthority.objects.issuing_at(now())
        issuer_info(authority)
        signing_key(authority)


def _tried(what: str, action: Callable[[], object]) -> None:
    try:
        action()
    except (*tasks.BROKER_AWAY, DatabaseError, InterfaceError, ServiceError) as error:
        log.info("%s not reached at the start: %s", what, type(error).__name__)
