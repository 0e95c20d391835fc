"""`python -m bench.console.child`: people, sealing, and every address with its queries.

Each line of the input is a JSON list, a command and its arguments; the answer is a line of JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
import psycopg

django.setup()

from django.contrib.admin import AdminSite, ModelAdmin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import DatabaseError, connections  # noqa: E402
from django.test import Client, RequestFactory  # noqa: E402

from agents.models import Agent  # noqa: E402
from auditlog.sealing import sealer  # noqa: E402
from auditlog.vocabulary import Actor  # noqa: E402
from bench.console.addresses import Target, lists, of_list, of_row, whole_pages  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.people.doors import second_factor  # noqa: E402
from compliance.tenancy import memberships  # noqa: E402
from compliance.tenancy.models import Role, Tenant  # noqa: E402
from compliance.tests.url_table import PAGES  # noqa: E402
from events.figures.days import sum_up_days  # noqa: E402
from events.models import (  # noqa: E402
    BehaviorEvent,
    RiskBand,
    RiskDay,
    Simulation,
    SimulationStatus,
)
from events.risk.evaluation import simulations  # noqa: E402

ACTOR = Actor.system("bench")
OPERATOR = "operator"
MARK = "bench-"
CROWD = 200
WRITES = ("INSERT", "UPDATE", "DELETE", "SAVEPOINT", "RELEASE", "SET")


@dataclass
class Watch:
    """Counts the statements that it wraps, times them, and keeps those that only read."""

    count: int = 0
    seconds: float = 0.0
    reads: list[tuple[str, str, Any]] = field(default_factory=list)

    def __call__(self, execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(statement, params, many, context)
        finally:
            self.count += 1
            self.seconds += time.perf_counter() - began
            if not statement.startswith(WRITES):
                self.reads.append((context["connection"].alias, statement, params))


def people(tenant: str) -> list[str]:
    """Make an operator and, in the tenant, a person of each role; return their actors' ids."""
    User.objects.create_superuser(MARK + OPERATOR, password=None)
    for role in Role:
        user = User.objects.create_user(MARK + role.value, is_staff=True, first_name=role.value)
        memberships.grant(user=user, tenant_id=UUID(tenant), role=role, actor=ACTOR, now=now())
    found = User.objects.filter(username__startswith=MARK).select_related("person")
    return [Actor.person(user.person.id).id for user in found.order_by("pk")]


def settle(tenant: str) -> int:
    """Make the auditor a member of two more tenants, whose lists are of several, and a crowd of users.

    Seal all entries and sum up the days. Return how many entries were sealed.
    """
    others = Tenant.objects.exclude(pk=tenant).order_by("pk").values_list("pk", flat=True)[:2]
    auditor = User.objects.get(username=MARK + Role.AUDITOR)
    for each in others:
        memberships.grant(user=auditor, tenant_id=each, role=Role.AUDITOR, actor=ACTOR, now=now())
    for number in range(CROWD):
        User.objects.create_user(f"person-{number}", is_staff=True)
    _simulations(UUID(tenant))
    sealed = sealer.seal_all()
    sealer.sign_head(now=now())
    sum_up_days(now=now())
    return sealed


def _simulations(tenant_id: UUID) -> None:
    """Request a simulation, and have as many given up as a year leaves."""
    made = simulations.request_simulation(tenant_id=tenant_id, changes={"strikes": 2}, actor=ACTOR, now=now())
    Simulation.objects.bulk_create(
        Simulation(
            tenant_id=tenant_id,
            requested_by=made.requested_by,
            policies=made.policies,
            status=SimulationStatus.FAILED,
            created_at=now() - timedelta(days=day),
            completed_at=now() - timedelta(days=day),
        )
        for day in range(1, 80)
    )


def browser_of(name: str) -> Client:
    """Return a browser in which the person is signed in."""
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(
        User.objects.get(username=MARK + name), backend="django.contrib.auth.backends.ModelBackend"
    )
    session = client.session
    session[second_factor.SESSION_FLAG] = True
    session.save()
    return client


def look(name: str, only: str) -> dict[str, Any]:
    """Open every address that the person can reach; return each with its queries, and their session."""
    client = browser_of(name)
    seen: dict[str, dict[str, Any]] = {}
    for target in _targets(client):
        if target.url not in seen and target.route.startswith(tuple(only.split(","))):
            seen[target.url] = {**asdict(target), **_measured(client, target)}
    return {"session": client.cookies["sessionid"].value, "pages": list(seen.values())}


def _targets(client: Client) -> Iterator[Target]:
    yield from whole_pages()
    for route in lists():
        answer: Any = client.get(route.url())
        if answer.status_code != 200:
            continue
        page, found = route.page or "", answer.context_data.get("cl")
        if found is None:
            yield Target(route.name, "", route.url())
            continue
        row = _row(page, found)
        yield from of_list(route, found, row)
        if row is not None:
            yield from of_row(page, row)


def _row(page: str, found: Any) -> Any:
    """The row whose pages are opened: the busiest agent, its newest high event, else the newest row."""
    rows = found.root_queryset
    if page == "agents_agent":
        busiest = RiskDay.objects.filter(agent__in=rows).order_by("-events").values_list("agent_id")[:1]
        return Agent.objects.filter(pk__in=busiest).first() or rows.first()
    if page == "events_behaviorevent":
        high = BehaviorEvent.objects.filter(
            tenant_id__in=rows.values("tenant_id")[:1], risk_band=RiskBand.HIGH
        )
        newest = high.order_by("-id").values_list("pk", flat=True)[:1]
        return rows.filter(pk__in=list(newest)).first() or found.result_list[0]
    return next(iter(found.result_list), None)


def _measured(client: Client, target: Target) -> dict[str, Any]:
    """Open the page twice; the second time, when nothing is new, counts."""
    first = client.get(target.url)
    if first.status_code != 200 or first.streaming or b"<html" not in first.content:
        return {"status": first.status_code, "is_page": False}
    watch = Watch()
    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(watch))
        began, worked = time.perf_counter(), time.process_time()
        client.get(target.url)
        whole, worked = time.perf_counter() - began, time.process_time() - worked
    return {
        "status": 200,
        "is_page": True,
        "queries": watch.count,
        "seconds": whole,
        "worked": worked,
        "database": watch.seconds,
        "bare": _bare(watch),
    }


def _bare(watch: Watch) -> float:
    """Seconds that the page's reads take without Django: its physical limit."""
    began = time.perf_counter()
    for alias, statement, params in watch.reads:
        connection: Any = connections[alias].connection
        with suppress(psycopg.errors.QueryCanceled):
            connection.execute(statement, params).fetchall()
    return time.perf_counter() - began


def plain(only: str) -> dict[str, float]:
    """Return the seconds of Django's own list of each model, bare: columns, no relations; by route."""
    site, found = AdminSite(), {}
    operator = User.objects.get(username=MARK + OPERATOR)
    for route in lists():
        if not route.name.startswith(tuple(only.split(","))) or route.page not in PAGES:
            continue
        model = PAGES[route.page].model
        columns = [field.name for field in model._meta.concrete_fields if not field.is_relation][:8]
        made = type("Plain", (ModelAdmin,), {"list_display": columns})(model, site)
        request = RequestFactory().get("/")
        request.user = operator
        with suppress(DatabaseError):
            began = time.perf_counter()
            shown = made.get_changelist_instance(request)
            for row in shown.result_list:
                [str(getattr(row, column)) for column in columns]
            found[route.name] = time.perf_counter() - began
    return found


COMMANDS: dict[str, Callable[..., Any]] = {"plain": plain, "people": people, "settle": settle, "look": look}


def main() -> None:
    with environments.use(Environment.LIVE):
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            sys.stdout.write(json.dumps(COMMANDS[name](*arguments)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
