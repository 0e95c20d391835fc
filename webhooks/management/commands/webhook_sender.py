"""`webhook_sender`: send webhooks of both environments until SIGTERM or SIGINT."""

from django.conf import settings

from compliance.core.environments import Environment
from compliance.outbound.loop import SenderCommand
from webhooks.sending.sender import Sender


class Command(SenderCommand):
    help = "Send webhooks of both environments, until SIGTERM or SIGINT. Several may run."

    def senders(self) -> list[Sender]:
        return [Sender(environment, size=settings.WEBHOOK_SENDER_THREADS) for environment in Environment]
