"""The inbox's safety net beside reviews of the same events."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from agents.tests.factories import make_agent
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.threads import in_thread, somebody_waits_for_a_lock
from events.inbox import collecting, reviewing
from events.inbox.models import OpenEvent
from events.models import BehaviorEvent, ReviewVerdict, ScorerProgress
from events.tests.factories import store_event


def test_review_that_is_under_way_is_collected_as_one(committed: None) -> None:
    """The review has found no row to delete, and commits after the collector has looked."""
    agent = make_agent(make_tenant("Acme"))
    event = store_event(agent, 0.9, now() - timedelta(hours=1))
    ScorerProgress.objects.filter(name=collecting.NAME).update(upto=collecting.NOTHING)

    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            review_event(event)
            collected = pool.submit(in_thread, lambda: collecting.collect(now=now()))
            while not collected.done() and not somebody_waits_for_a_lock():
                time.sleep(0.01)
        collected.result(10)

    assert not OpenEvent.objects.filter(event_id=event.id).exists()


def review_event(event: BehaviorEvent) -> None:
    reviewing.review(
        tenant_id=event.tenant_id,
        event_id=event.id,
        verdict=ReviewVerdict.DISMISSED,
        note=None,
        actor=Actor.system("tests"),
        now=now(),
    )
