"""`python -m bench.data.hooks TENANT URL…`: registers webhooks, one id a line on stdout."""

import sys
from uuid import UUID

import django

django.setup()

from auditlog.vocabulary import Actor  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from webhooks import services  # noqa: E402

ACTOR = Actor.system("bench")
EVENTS = ["certificate.revoked"]


def main(tenant_id: UUID, urls: list[str]) -> None:
    """Register a webhook of the live environment for each URL."""
    with environments.use(Environment.LIVE):
        for url in urls:
            made = services.create(tenant_id=tenant_id, url=url, events=EVENTS, actor=ACTOR, now=now())
            print(made.webhook.id)


if __name__ == "__main__":
    main(UUID(sys.argv[1]), sys.argv[2:])
