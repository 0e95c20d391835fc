"""`signal_sender`: follow the audit log and push signals of both environments until SIGTERM or SIGINT."""

from django.conf import settings

from compliance.outbound.loop import SenderCommand
from signals.sending.sender import SignalSender


class Command(SenderCommand):
    help = "Derive and push signals of both environments, until SIGTERM or SIGINT. Several may run."
    loop, size = SignalSender, settings.SIGNALS_SENDER_THREADS
