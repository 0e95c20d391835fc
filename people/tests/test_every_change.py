"""Every page of the console that changes something leaves an entry of the person; generated from the URLs."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from agents.models import AgentStatus
from auditlog.models import AuditEntry
from auditlog.sealing import keys as log_keys
from auditlog.tests.factories import ACTOR, seal_and_sign
from compliance.console.access import ConsoleAccess
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import actor_id_of, console_of, make_member, make_operator, make_staff, populate
from events.inbox.decisions import ACTS
from incidents.tests.factories import make_incident
from ops.console_urls import urlpatterns as console_urls
from people.sso import identities
from people.sso.tests.providers import configure
from people.tests.authenticators import code_of, make_authenticator, offered_code
from people.tests.security_keys import confirmed, make_security_key, registered, row_of
from reports import services
from reports.models import NotificationDraft, Report, ReportSchedule
from reports.notifications import services as notifications
from reports.vocabulary import NotificationTemplate, ReportStatus
from signals.vocabulary import StreamStatus
from tenancy.models import Membership, Role, Tenant
from tenancy.tests.factories import make_tenant

PASSWORD = "correct horse battery"
ISSUER = "https://id.example.org"
# Pages that only show, or that belong to no person yet.
READING = {
    *(
        "index",
        "login",
        "password_change_done",
        "autocomplete",
        "jsi18n",
        "search",
        *("app_list", "agents_agent_trail", "reports_report_progress"),
        *("console_overview", "console_system"),
    ),
    *("auditlog_auditentry_proof", "auditlog_auditentry_verify"),
    *("link", "link_password", "approval_link", "approval_link_form"),
    *("enrol_app", "enrol_key", "account_login", "account_set_password"),
    # Other tests show a password and key again; a key's name is its person's own affair.
    *("account_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_edit_webauthn"),
    *("mfa_index", "mfa_authenticate", "mfa_view_recovery_codes", "mfa_download_recovery_codes"),
    # The addresses of django-allauth's pages, which come first.
    *("logout", "password_change", "mfa_list_webauthn"),
    # What follows at the provider is audited: people/sso/tests.
    *("sso_begin", "sso_callback", "sso_invitation"),
}
ALLAUTH = ("account_", "mfa_", "usersessions_")
READING_ENDS = ("_changelist", "_history")


@pytest.fixture(autouse=True)
def single_sign_on(settings: Any) -> None:
    configure(settings, ISSUER)


def pages(patterns: Any = None) -> Iterator[str]:
    for pattern in console_urls if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield pattern.name


def changing_pages() -> list[str]:
    """The names of all pages that may change something, but those of rows that nobody may add or edit."""
    found = []
    for name in dict.fromkeys(pages()):
        if name in READING or name.endswith(READING_ENDS) or is_closed(name):
            continue
        found.append(name)
    return found


def is_closed(name: str) -> bool:
    """Whether a page of a row refuses even operators: then another test demands the refusal."""
    for model, page in admin.site._registry.items():
        label = f"{model._meta.app_label}_{model._meta.model_name}"
        for verb in ("add", "change", "delete"):
            if name == f"{label}_{verb}":
                return not getattr(page, f"has_{verb}_permission")(Operators())
    return False


class Operators:
    """A request of an operator, as far as permissions ask."""

    def __init__(self) -> None:
        self.console = ConsoleAccess(Environment.LIVE, is_operator=True)


@dataclass
class World:
    """A tenant with a row of every kind, a user to change, and an operator's browser."""

    tenant: Tenant
    rows: dict[str, Any]
    operator: User
    user: User
    client: Client

    def own_entries(self) -> int:
        count = 0
        for environment in Environment:
            with environments.use(environment):
                count += AuditEntry.objects.filter(actor_id=actor_id_of(self.operator.username)).count()
        return count


@pytest.fixture(scope="module")
def stored(world_transaction: None) -> tuple[dict[str, Any], User]:
    """The rows, and the operator."""
    tenant = make_tenant("Acme")
    rows, user = populate(tenant, Environment.LIVE), make_staff("kim")
    rows["auth_user"] = user
    rows["tenancy_membership"] = Membership.objects.create(user=user, tenant_id=tenant.id, role="auditor")
    return rows, make_operator()


@pytest.fixture
def world(stored: tuple[dict[str, Any], User]) -> World:
    # A test may change its objects, which others would find changed.
    rows, operator = copy.deepcopy(stored)
    return World(rows["tenancy_tenant"], rows, operator, rows["auth_user"], console_of(operator))


def suspend_agent(world: World) -> None:
    agent = world.rows["agents_agent"]
    agent.status = AgentStatus.SUSPENDED
    agent.save(update_fields=["status"])


def give_agent_an_owner(world: World) -> None:
    agent = world.rows["agents_agent"]
    agent.owner_name, agent.owner_email = "Kim", "kim@example.com"
    agent.save(update_fields=["owner_name", "owner_email"])


def switch_webhook_off(world: World) -> None:
    webhook = world.rows["webhooks_webhook"]
    webhook.active = False
    webhook.save(update_fields=["active"])


def switch_issuer_off(world: World) -> None:
    issuer = world.rows["issuers_trustedissuer"]
    issuer.active = False
    issuer.save(update_fields=["active"])


def pause_stream(world: World) -> None:
    stream = world.rows["signals_stream"]
    stream.status = StreamStatus.PAUSED
    stream.save(update_fields=["status"])


def set_own_password(world: World) -> None:
    world.operator.set_password(PASSWORD)
    world.operator.save()
    world.client = console_of(world.operator)


def give_operator_an_app(world: World) -> None:
    make_authenticator(world.operator)
    confirm_operator(world)


def confirm_operator(world: World) -> None:
    world.client = confirmed(world.operator)


def link_accounts(world: World) -> None:
    set_own_password(world)
    for user in (world.operator, world.user):
        identities.link(user=user, issuer=ISSUER, subject=user.username, via="tests", actor=ACTOR, now=now())


def give_user_an_app(world: World) -> None:
    make_authenticator(world.user)


def give_operator_a_key(world: World) -> None:
    world.rows["mfa_remove_webauthn"] = row_of(make_security_key(world.operator))
    confirm_operator(world)


def sign_in_elsewhere(world: World) -> None:
    for user in (world.operator, world.user):
        user.set_password(PASSWORD)
        user.save()
        Client().post(reverse("account_login"), {"login": user.username, "password": PASSWORD})
    world.client = console_of(world.operator)


def finish_report(world: World) -> None:
    log_keys.bootstrap(actor=ACTOR, now=now())
    services.generate_next(now=now())


def fail_report(world: World) -> None:
    Report.objects.filter(pk=world.rows["reports_report"].pk).update(
        status=ReportStatus.FAILED, completed_at=now()
    )


def resume_schedule(world: World) -> None:
    ReportSchedule.objects.filter(pk=world.rows["reports_reportschedule"].pk).update(ended_at=None)


def stop_clocks(world: World) -> None:
    world.client.post(
        reverse("admin:incidents_incident_assess", args=[world.rows["incidents_incident"].pk]),
        {"serious_harm": "not_serious", "dora_class": "not_major"},
    )


def draft_notification(world: World) -> None:
    row = world.rows["incidents_incident"]
    notifications.draft(
        tenant_id=row.tenant_id,
        incident_id=row.id,
        template=NotificationTemplate.AI_ACT,
        actor=ACTOR,
        now=now(),
    )


def seal(world: World) -> None:
    seal_and_sign()


PREPARED: dict[str, Callable[[World], None]] = {
    "mfa_activate_totp": confirm_operator,
    "mfa_deactivate_totp": give_operator_an_app,
    "mfa_generate_recovery_codes": give_operator_an_app,
    "mfa_reauthenticate": give_operator_an_app,
    "mfa_add_webauthn": confirm_operator,
    "mfa_remove_webauthn": give_operator_a_key,
    "usersessions_list": sign_in_elsewhere,
    "account_sso": link_accounts,
    "auth_user_unlink_sign_on": link_accounts,
    "auth_user_end_sessions": sign_in_elsewhere,
    "auth_user_reset_second_factor": give_user_an_app,
    "account_change_password": set_own_password,
    "agents_agent_reinstate": suspend_agent,
    "agents_agent_successor": give_agent_an_owner,
    "webhooks_webhook_on": switch_webhook_off,
    "issuers_trustedissuer_on": switch_issuer_off,
    "signals_stream_resume": pause_stream,
    "reports_report_pdf": finish_report,
    "reports_report_zip": finish_report,
    "reports_report_retry": fail_report,
    "reports_reportschedule_end": resume_schedule,
    "incidents_incident_close": stop_clocks,
    "incidents_incident_draft_pdf": draft_notification,
    "incidents_incident_draft_json": draft_notification,
    "reports_report_json": finish_report,
    "auditlog_auditentry_export": seal,
}
DOWNLOADS = {
    *("reports_report_pdf", "reports_report_json", "reports_report_zip", "auditlog_auditentry_export"),
    *("incidents_incident_export", "incidents_incident_draft_pdf", "incidents_incident_draft_json"),
    "agents_agent_attestation",
}
FIXED_ARGUMENTS = {"auditlog_auditentry_export": ["csv"], "account_sso": []}
ROUTE = {"name": "orders", "credentials": ["dpop"], "highest_band": "low", "root": "any", "agents": "own"}
POLICY = {"ask_from": "medium", "always_ask": "pay", "ttl_seconds": "900"}
FORMS: dict[str, Callable[[World], dict[str, Any]]] = {
    "auth_user_add": lambda world: {"username": "new", "usable_password": "false", "is_staff": "on"},
    "auth_user_change": lambda world: {"username": "kim", "email": "kim@example.org", "is_active": "on"},
    "auth_user_password_change": lambda world: {
        "usable_password": "true",
        "password1": PASSWORD,
        "password2": PASSWORD,
        "set-password": "1",
    },
    "account_change_password": lambda world: {
        "oldpassword": PASSWORD,
        "password1": PASSWORD + "!",
        "password2": PASSWORD + "!",
    },
    "account_logout": lambda world: {},
    "mfa_activate_totp": lambda world: {"code": offered_code(world.client)},
    "mfa_deactivate_totp": lambda world: {},
    "mfa_generate_recovery_codes": lambda world: {},
    "mfa_reauthenticate": lambda world: {"code": code_of(world.operator)},
    "mfa_add_webauthn": lambda world: {"name": "blue key", "credential": registered(world.client)},
    "mfa_remove_webauthn": lambda world: {},
    "usersessions_list": lambda world: {},
    "account_sso": lambda world: {"do": "unlink"},
    "tenancy_tenant_add": lambda world: {"name": "Another"},
    "tenancy_apikey_add": lambda world: {"tenant": world.tenant.id, "name": "ci", "scopes": ["agents:read"]},
    "tenancy_membership_add": lambda world: {
        "user": make_staff("lee").pk,
        "tenant": world.tenant.id,
        "role": "officer",
    },
    "tenancy_membership_change": lambda world: {"role": "officer"},
    "tenancy_membership_delete": lambda world: {"post": "yes"},
    "webhooks_webhook_add": lambda world: {
        "tenant": world.tenant.id,
        "url": "https://hooks.example.org/events",
        "events": ["agent.created"],
        "format": "standard",
    },
    "otlp_tracedname_map": lambda world: {"agent": str(world.rows["agents_agent"].pk)},
    "gateway_gatewayroute_add": lambda world: {**ROUTE, "tenant": world.tenant.id},
    "gateway_gatewayroute_change": lambda world: ROUTE,
    "gateway_askpolicy_add": lambda world: {**POLICY, "tenant": world.tenant.id, "applies_to": "tenant"},
    "gateway_askpolicy_change": lambda world: POLICY,
    "issuers_trustedissuer_add": lambda world: {
        "tenant": world.tenant.id,
        "issuer": "https://login.example.org",
        "audiences": "research-app\ndesk",
        "algorithms": ["RS256"],
        "subject_claim": "email",
        "max_age_seconds": "600",
    },
    "reports_reportschedule_add": lambda world: {
        "tenant": world.tenant.id,
        "type": "mica",
        "cadence": "month",
    },
    "incidents_incident_assess": lambda world: {"severity": "high", "owner": "kim"},
    "agents_agent_owner": lambda world: {"role": "owner", "name": "Kim", "email": "kim@example.com"},
    "agents_agent_successor": lambda world: {"role": "owner", "name": "Lee", "email": "lee@example.com"},
    "incidents_incident_merge": lambda world: {"into": make_incident(world.tenant).reference},
    "incidents_incident_sent": lambda world: {"report": "ai_act.report"},
    "incidents_incident_attach": lambda world: {"name": "log.txt", "size": "1", "sha256": "a" * 64},
    "agents_blueprint_add": lambda world: {"tenant": world.tenant.id, "name": "kind"},
    "agents_blueprint_change": lambda world: {"name": "other", "validity_days": "30"},
    "agents_blueprint_renew": lambda world: {"agents": ["all"]},
    "stops_kindstop_add": lambda world: {
        "tenant": world.tenant.id,
        "kind": "all",
        "reason": "drill",
        "typed": str(world.tenant.agents.count()),
    },
    "reviews_accessreview_add": lambda world: {
        "tenant": world.tenant.id,
        "reviewer": "kim@example.com",
        "days": "14",
    },
    "reviews_accessreview_agents": lambda world: {"agent": world.rows["agents_agent"].pk, "act": "keep"},
    "events_simulation_add": lambda world: {
        "tenant": world.tenant.id,
        "threshold": "0.85",
        "strikes": "2",
        "window_minutes": "15",
        "weights": "{}",
        "scope_rule": "on",
    },
    "reports_report_add": lambda world: {
        "tenant": world.tenant.id,
        "type": "mica",
        "first_day": "2026-10-01",
        "last_day": "2026-10-31",
    },
}


def form_of(name: str) -> dict[str, Any]:
    """Data that the action's form accepts."""
    for page in admin.site._registry.values():
        for action in getattr(page, "confirmed_actions", ()):
            if name == f"{page.opts.app_label}_{page.opts.model_name}_{action.name}":
                return {key: value_for(field) for key, field in action.form_class.base_fields.items()}
    raise KeyError(f"{name} is neither an action nor in FORMS, READING or DOWNLOADS: say how it is used")


def value_for(field: forms.Field) -> Any:
    if isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        return list(choices)[-1][0]
    if isinstance(field, forms.FloatField):
        return field.min_value
    return field.initial if field.initial is not None else "for a reason"


def visit(world: World, name: str) -> Any:
    if name.startswith(ALLAUTH) and name != "account_sso":
        url = reverse(name, args=[world.rows[name].pk] if name in world.rows else [])
    elif name in FIXED_ARGUMENTS:
        url = reverse(f"admin:{name}", args=FIXED_ARGUMENTS[name])
    elif name.endswith("_add"):
        url = reverse(f"admin:{name}")
    else:
        model = max((label for label in world.rows if name.startswith(label)), key=len)
        row = world.rows[model]
        drafts = NotificationDraft.objects.values_list("pk", flat=True) if "_draft_" in name else ()
        url = reverse(f"admin:{name}", args=[row.pk, *drafts])
    if name in DOWNLOADS:
        return world.client.get(url, {"tenant": str(world.tenant.id)})
    return world.client.post(url, FORMS[name](world) if name in FORMS else form_of(name))


@pytest.mark.parametrize("name", changing_pages())
def test_change_leaves_an_entry_of_the_person(
    world: World, name: str, django_capture_on_commit_callbacks: Any
) -> None:
    if name in PREPARED:
        PREPARED[name](world)
    before = world.own_entries()

    with django_capture_on_commit_callbacks(execute=True):
        answer = visit(world, name)

    form = (getattr(answer, "context_data", None) or {}).get("adminform")
    assert answer.status_code in {200, 302}
    assert world.own_entries() > before, form and form.form.errors


@pytest.mark.parametrize("act", list(ACTS))
def test_act_in_the_inbox_leaves_an_entry_of_the_person(world: World, act: str) -> None:
    event, agent = world.rows["events_behaviorevent"], world.rows["agents_agent"]
    form = {"act": act, "agent": agent.pk, "event": event.pk, "ticked": [event.pk], "note": "for a reason"}
    make_member(world.tenant, Role.OFFICER, "olga")
    before = world.own_entries()

    world.client.post(
        reverse("admin:inbox_openevent_changelist"), {**form, "span": "4", "assignee": actor_id_of("olga")}
    )

    assert world.own_entries() > before
