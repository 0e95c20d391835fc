"""An SMTP server of a test, on loopback, and the settings that lead to it."""

import email
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from compliance.localdev.ports import HOST, free_port

REFUSED = "nobody@example.com"


class MailServer:
    """Keeps what it takes; it refuses mail for `REFUSED`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.taken: list[tuple[list[str], EmailMessage]] = []

    async def handle_RCPT(  # noqa: N802  (aiosmtpd's name)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address == REFUSED:
            return "550 No such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        message: Any = email.message_from_bytes(content, policy=default)
        self.taken.append((envelope.rcpt_tos, message))
        return "250 Taken"

    def texts(self) -> list[str]:
        return [message.get_content() for _, message in self.taken]


@contextmanager
def serving_mail(port: int) -> Iterator[MailServer]:
    """Run a server on this port while the block runs."""
    server = MailServer(port)
    controller = Controller(server, hostname=HOST, port=port)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


@contextmanager
def mail_server(settings: Any) -> Iterator[MailServer]:
    """Run a server on a free port while the block runs; `settings` is pytest-django's."""
    with serving_mail(free_port()) as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_USE_TLS = HOST, False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EMAIL_PORT = server.port
        yield server
