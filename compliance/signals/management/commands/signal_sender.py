"""`signal_sender`: follow the audit log and push signals of both environments until SIGTERM or SIGINT."""

from django.conf import settings

from compliance.core.environments import Environment
from compliance.signals import wakeup
from compliance.signals.sending.sender import SignalSender
from webhooks.sending.process import SenderCommand


class Command(SenderCommand):
    help = "Derive and push signals of both environments, until SIGTERM or SIGINT. Several may run."
    mark_alive = staticmethod(wakeup.mark_sender_alive)

    def senders(self) -> list[SignalSender]:
        return [
            SignalSender(environment, size=settings.SIGNALS_SENDER_THREADS) for environment in Environment
        ]
