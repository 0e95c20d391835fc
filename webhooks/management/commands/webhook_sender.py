"""`webhook_sender`: send webhooks of both environments until SIGTERM or SIGINT."""

from django.conf import settings

from compliance.outbound.loop import SenderCommand
from webhooks.sending.sender import Sender


class Command(SenderCommand):
    help = "Send webhooks of both environments, until SIGTERM or SIGINT. Several may run."
    loop, size = Sender, settings.WEBHOOK_SENDER_THREADS
