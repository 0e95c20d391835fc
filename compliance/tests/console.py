"""The console as a test uses it: people by role, a browser, a tenant with a row of every kind."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent, make_blueprint
from auditlog.vocabulary import Actor
from certificates.models import EndedHold, Issuance, OcspResponder, RevocationList
from certificates.tests.factories import make_certificate
from compliance.console.addresses import prefix_of, within
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encryption import encrypt
from compliance.core.environments import Environment
from compliance.core.plain_text import is_plain_text
from delegation.issuers.tests.factories import make_issuer
from delegation.lifecycle import KeyStatus
from delegation.models import TokenKey
from delegation.reviews.tests.factories import make_access_review
from delegation.stops.tests.factories import make_stop
from delegation.tests.factories import make_issued_token
from events.inbox.models import InboxComment, OpenEvent
from events.models import (
    ActionType,
    EventReview,
    MarkedPlace,
    ReviewVerdict,
    Simulation,
)
from events.otlp.models import NameSource, TracedName
from events.risk.evaluation import simulations
from events.tests.factories import make_open_event
from gateway.approvals.models import Approval
from gateway.models import AskPolicy, GatewayRoute
from incidents.tests.factories import make_incident
from people.models import Person
from reports.models import Report, ReportSchedule
from reports.vocabulary import Cadence, ReportType
from signals.tests.factories import make_poll_stream
from tenancy import memberships, services
from tenancy.models import Role, Tenant
from webhooks.models import Attempt, DeliveryStatus, Webhook
from webhooks.tests.factories import make_finished_delivery
from webhooks.vocabulary import EventName

ACTOR = Actor.system("tests")
CANDIDATE = {"threshold": 0.85, "strikes": 2, "window_minutes": 15}
WEBHOOK_SECRET = "whsec_never_shown_anywhere"


def make_operator(username: str = "root") -> User:
    return User.objects.create_superuser(username, password=None)


def make_staff(username: str = "nobody", **fields: Any) -> User:
    """Somebody who may sign in and is a member of nothing."""
    return User.objects.create_user(username, is_staff=True, **fields)


def make_member(tenant: Tenant, role: Role, username: str | None = None) -> User:
    user = make_staff(username or role.value)
    join(user, tenant, role)
    return user


def join(user: User, tenant: Tenant, role: Role) -> None:
    memberships.grant(user=user, tenant_id=tenant.id, role=role, actor=ACTOR, now=now())


class ConsoleBrowser(Client):
    """A browser that looks at one environment.

    Outside a request `reverse` gives the live address of a page; this browser opens the page in its own. It
    reads answers to their end, as browsers do: one that streams holds resources until then.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self.environment = environment

    def generic(self, method: str, path: Any, *args: Any, **kwargs: Any) -> Any:
        live, mine = prefix_of(Environment.LIVE), prefix_of(self.environment)
        shown = mine + path.removeprefix(live) if path.startswith(live) else path
        answer: Any = super().generic(method, shown, *args, **kwargs)
        if answer.streaming:
            answer.streaming_content = [answer.getvalue()]
        return answer


def address_in(environment: Environment, page: str, *args: object) -> str:
    """The address of the admin's `page` in `environment`."""
    with within(environment):
        return reverse(f"admin:{page}", args=args)


def actor_id_of(username: str) -> str:
    """How the audit log names a user."""
    return Actor.person(Person.objects.get(user__username=username).id).id


def console_of(user: User, environment: Environment = Environment.LIVE) -> ConsoleBrowser:
    """A browser that is signed in and looks at `environment`; it checks CSRF tokens no more than Django's."""
    client = ConsoleBrowser(environment)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def populate(tenant: Tenant, environment: Environment, label: str = "row") -> dict[str, Any]:
    """A row of every kind for `tenant` in `environment`; by name of its page (`app_model`)."""
    moment, action = now(), f"{label} action"[:256]
    with environments.use(environment):
        mirrored = services.get_tenant(tenant_id=tenant.id)
        agent = make_agent(mirrored, name=f"{label} agent")
        return {
            "agents_agent": agent,
            "agents_blueprint": make_blueprint(mirrored, name=f"{label} kind"),
            "tenancy_tenant": mirrored,
            "tenancy_apikey": services.create_key(
                tenant=mirrored, name=f"{label} key", actor=ACTOR, now=now()
            ).row,
            "incidents_incident": make_incident(mirrored, agent_id=agent.id, agent_name=agent.name),
            "gateway_gatewayroute": GatewayRoute.objects.create(
                tenant=mirrored, name=f"route-{agent.id}", credentials=["dpop"], action=action,
                created_at=moment, updated_at=moment,
            ),
            "gateway_askpolicy": AskPolicy.objects.create(
                tenant=mirrored, agent_id=agent.id, always_ask=[action], created_at=moment, updated_at=moment
            ),
            "approvals_approval": Approval.objects.create(
                tenant=mirrored, agent_id=agent.id, agent_name=agent.name, action_name=action,
                details={"said": label}, action_hash="0" * 64, reasons=[], requested_by=ACTOR.id,
                requested_at=moment, expires_at=moment + timedelta(days=1),
            ),
            "reports_reportschedule": ReportSchedule.objects.create(
                tenant=mirrored, type=ReportType.MICA, cadence=Cadence.MONTH, next_start=moment,
                created_at=moment, ended_at=moment,
            ),
            "reports_report": Report.objects.create(
                tenant=mirrored, type=ReportType.MICA, period_start=moment - timedelta(days=1),
                period_end=moment, created_at=moment,
            ),
            **_authority_rows(agent, label),
            **_event_rows(agent, label),
            **_webhook_rows(mirrored, label),
            "stops_kindstop": make_stop(mirrored, match={"model_hash": label}, reason=label),
            "reviews_accessreview": make_access_review(mirrored, agent, label),
            "otlp_tracedname": TracedName.objects.create(
                tenant=mirrored, source=NameSource.SERVICE, name=label, seen_at=now()
            ),
            "issuers_trustedissuer": make_issuer(
                mirrored,
                f"https://example.com/{quote(label.replace(' ', '-'))}",
                audiences=["".join(filter(is_plain_text, label))],
                required_claims={"groups": [label]},
            ),
        }  # fmt: skip


def _authority_rows(agent: Agent, label: str) -> dict[str, Any]:
    certificate = make_certificate(agent)
    tomorrow = now() + timedelta(days=1)
    return {
        "certificates_certificate": certificate,
        "certificates_issuance": Issuance.objects.get(serial_number=certificate.serial_number),
        "certificates_certificateauthority": certificate.authority,
        "certificates_ocspresponder": OcspResponder.objects.get(authority=certificate.authority),
        "certificates_revocationlist": RevocationList.objects.latest_of(certificate.authority),
        "certificates_endedhold": EndedHold.objects.create(
            certificate=certificate, authority=certificate.authority, held_at=tomorrow, ended_at=tomorrow,
            crl_entry=b"",
        ),
        "delegation_issuedtoken": make_issued_token(agent, principal="".join(filter(is_plain_text, label))),
        "delegation_tokenkey": TokenKey.objects.create(
            kid=f"{label} kid"[:64], uri="pkcs11:object=kept", public_jwk={"kty": "EC"},
            status=KeyStatus.WITHDRAWN, published_at=now(), active_from=now(), retired_at=now(),
        ),
    }  # fmt: skip


def _event_rows(agent: Agent, label: str) -> dict[str, Any]:
    event = make_open_event(
        agent,
        action_type=ActionType.DATA_ACCESS,
        details={"said": label},
        reasons=[{"name": "scope", "observed": label, "expected": "less", "weight": 1.0}],
        model_version="tests",
    )
    about = {"tenant": agent.tenant, "agent": agent, "event_id": event.id}
    by = {"actor_type": ACTOR.type, "actor_id": ACTOR.id}
    return {
        "events_behaviorevent": event,
        "events_eventreview": EventReview.objects.create(
            **about, **by, number=1, verdict=ReviewVerdict.CONFIRMED, note=label, reviewed_at=now()
        ),
        "events_markedplace": MarkedPlace.objects.create(
            tenant=agent.tenant, event_id=event.id, name=f"{label}.example", marked_at=now()
        ),
        "events_simulation": _simulation(agent.tenant, label),
        "inbox_openevent": OpenEvent.objects.get(event_id=event.id),
        "inbox_inboxcomment": InboxComment.objects.create(
            **about, **by, text=label, case_number=label[:64], created_at=now()
        ),
    }


def _simulation(tenant: Tenant, label: str) -> Simulation:
    made = simulations.request_simulation(tenant_id=tenant.id, changes=CANDIDATE, actor=ACTOR, now=now())
    simulations.step(simulation_id=made.id, now=now())
    return made


def _webhook_rows(tenant: Tenant, label: str) -> dict[str, Any]:
    events = [EventName.AGENT_CREATED, EventName.CERTIFICATE_REVOKED]
    # Past the service, which would judge the label's characters.
    webhook = Webhook.objects.create(
        tenant=tenant, url=f"https://{label}.example/hook", events=events, secret_hint="…here",
        secret=encrypt(WEBHOOK_SECRET.encode()), created_at=now(), updated_at=now(),
    )  # fmt: skip
    delivery = make_finished_delivery(webhook, DeliveryStatus.FAILED)
    Attempt.objects.create(
        tenant=tenant, delivery=delivery, number=1, url=webhook.url, started_at=now(), response_status=500
    )
    stream = make_poll_stream(tenant, description=f"{label} stream")
    return {"signals_stream": stream, "webhooks_webhook": webhook, "webhooks_delivery": delivery}
