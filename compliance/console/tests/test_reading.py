"""What the console's pages read is bounded, by statement and by tenant."""

import time
from collections import Counter
from functools import partial
from uuid import uuid4

import pytest
from django.urls import reverse

from compliance.console.reading import TooMany, TooSlow, slots
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import ConsoleBrowser, console_of, make_member
from compliance.tests.owner import locked_table
from compliance.tests.threads import all_at_once
from tenancy.models import Role
from tenancy.tests.factories import make_tenant

NO_BOUND = 10  # seconds: the session's own timeouts begin here


def member() -> ConsoleBrowser:
    with environments.use(Environment.LIVE):
        return console_of(make_member(make_tenant(), Role.OFFICER, f"reader-{uuid4()}"))


@pytest.mark.usefixtures("committed")
def test_slow_pages_of_a_tenant_end_and_leave_the_others_theirs() -> None:
    slow, other = member(), member()
    agents, reports = reverse("admin:agents_agent_changelist"), reverse("admin:reports_report_changelist")
    many = slots.size + 2

    with environments.use(Environment.LIVE), locked_table("agents_agent IN ACCESS EXCLUSIVE MODE"):
        began = time.monotonic()
        *hostile, others = all_at_once([*[partial(slow.get, agents)] * many, partial(other.get, reports)])
        took = time.monotonic() - began

    assert others.status_code == 200
    assert {answer.status_code for answer in hostile} == {503}
    said = Counter(
        error.__name__ for answer in hostile for error in (TooSlow, TooMany) if error.message in answer.text
    )
    assert said == {"TooSlow": slots.share, "TooMany": many - slots.share}
    assert took < NO_BOUND
