"""Pages of certificates, CAs, revocation lists and keys in the console."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.decorators import display

from agents.admin import AgentAdmin
from agents.models import AgentStatus, Blueprint
from auditlog.actors.requests import user_of
from certificates import models, services
from certificates.models import CertificateStatus
from certificates.pki.decoded import decoded
from certificates.pki.serials import format_serial, parse_serial
from certificates.querysets import ends_within
from certificates.renewing.admin import BlueprintAdmin
from compliance.console import filters
from compliance.console.access import EVERYONE
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, SystemAdmin, TenantScopedAdmin
from compliance.console.display import (
    block,
    chip,
    chips,
    code,
    column,
    facts,
    pretty_json,
    shortened,
    status_chip,
    visible,
)
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.wording import counted, spoken
from compliance.keys.base import KeyStorage

WHERE_KEYS_LIE = {
    KeyStorage.RESIDENT: "resident: in the HSM for good",
    KeyStorage.WRAPPED: "wrapped: encrypted by a key of the HSM, in the database",
}
SOON, VERY_SOON = timedelta(days=30), timedelta(days=7)

CERTIFICATE_TONES = {"on hold": "warning", "expired": "danger", "revoked": "danger"}


def _run(service: Callable[..., Any], identifier: str, done: Callable[[Any], str], call: ActionCall) -> str:
    """Call a service with the row's id as `identifier`; `done` returns the message about its result."""
    told = {identifier: call.row.id, "reason": call.data["reason"]}
    return done(service(**told, **user_of(call.request, call.row)))


REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke certificate",
    icon="block",
    explanation=(
        "The next verification answers revoked, and the revocation list will name the certificate. It can't "
        "be undone: the agent needs a new certificate. A reason that begins with one of RFC 5280's (key "
        "compromise, superseded, privilege withdrawn, …) is put on the list, too."
    ),
    run=partial(
        _run,
        services.revoke,
        "certificate_id",
        lambda row: f"Certificate {row.serial_number} is revoked; the next verification says so.",
    ),
    is_offered=lambda certificate: (
        certificate.status_at(now()) == CertificateStatus.ACTIVE or certificate.is_on_hold(now())
    ),
    is_destructive=True,
)
SUSPEND = ConfirmedAction(
    name="suspend",
    label="Suspend agent",
    icon="pause_circle",
    explanation=(
        "The agent's events are refused and its certificate is on hold until it is reinstated: verification "
        "answers revoked (certificateHold), and the revocation list names it. Subscribed webhooks receive "
        "agent.suspended and certificate.revoked."
    ),
    run=partial(_run, services.suspend_agent, "agent_id", lambda agent: f"{visible(agent)} is suspended."),
    is_offered=lambda agent: agent.status in (AgentStatus.PENDING, AgentStatus.ACTIVE),
    is_destructive=True,
)
REINSTATE = ConfirmedAction(
    name="reinstate",
    label="Reinstate agent",
    icon="restart_alt",
    explanation=(
        "Closes the review. A certificate on hold is released and the agent is active at once. Where the "
        "certificate was revoked for good or has ended, the agent is pending, and certifying it issues a "
        "certificate with a new serial number. Do this once the cause is fixed."
    ),
    run=partial(
        _run,
        partial(services.reinstate_agent, may_undo_stop=True),
        "agent_id",
        lambda agent: f"{visible(agent)} is {agent.status} again.",
    ),
    is_offered=lambda agent: agent.status == AgentStatus.SUSPENDED,
)
RETIRE = ConfirmedAction(
    name="retire",
    label="Retire agent",
    icon="archive",
    explanation="Ends the agent for good: its certificate is revoked and it can't be certified again.",
    run=partial(_run, services.retire_agent, "agent_id", lambda agent: f"{visible(agent)} is retired."),
    is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
    is_destructive=True,
)

admin.site.register(Blueprint, BlueprintAdmin)


class CertifiedAgentAdmin(AgentAdmin):
    """Agents with the state of their latest certificate: without a valid one an agent is not green."""

    # Suspending, reinstating and retiring an agent change its certificate too, which `agents` cannot import.
    confirmed_actions = (*AgentAdmin.confirmed_actions, SUSPEND, REINSTATE, RETIRE)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        own = models.Certificate.objects.filter(tenant=OuterRef("tenant"))
        latest = own.latest_state(OuterRef("pk"), now())
        rows: QuerySet[Any] = super().get_queryset(request).annotate(certificate_state=Subquery(latest))
        return rows

    @display(description="status", ordering="status")
    def state(self, agent: Any) -> str:
        certificate, is_valid = agent.certificate_state, agent.certificate_state in (None, "active")
        found = "" if is_valid else chip(f"certificate {certificate}", CERTIFICATE_TONES[certificate])
        keeps_colour = is_valid or agent.status != AgentStatus.ACTIVE
        status = status_chip(agent.status) if keeps_colour else chip(agent.status)
        return format_html('<span class="console-chips">{}{}{}</span>', status, found, self.mark(agent))


def state_chip(certificate: models.Certificate) -> str:
    moment_now = now()
    status = certificate.status_at(moment_now)
    end = min(certificate.expires_at, certificate.superseded_at or certificate.expires_at)
    left = end - moment_now
    if certificate.is_on_hold(moment_now):
        return chip("revoked, on hold", "warning")
    if status != models.CertificateStatus.ACTIVE or left > SOON:
        return status_chip(status)
    tone = "danger" if left <= VERY_SOON else "warning"
    return chip(f"active, {counted(left.days, 'day')} left", tone)


class SerialColumns:
    short_serial = column(
        "serial number", lambda row: code(shortened(row.serial_number, 17)), ordering="serial_number"
    )
    serial = column("serial number", lambda row: code(row.serial_number))


class AgentColumn:
    agent_name = column("agent", lambda row: visible(row.agent.name), ordering="agent__name")


class KeyFields(SerialColumns):
    decoded = column("fields", lambda row: facts(decoded(bytes(row.certificate_der))))
    key = column("key reference", lambda row: code(row.key_uri))


class StateFilter(filters.DropdownFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("active", "Active"),
            ("30", "Expires within 30 days, not renewed"),
            ("7", "Expires within 7 days, not renewed"),
            ("revoked", "Revoked"),
            ("expired", "Expired"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value, moment_now = self.value(), now()
        if value in ("7", "30"):
            return queryset.filter(ends_within(int(value), moment_now))
        rows = models.Certificate.objects.with_status(value, moment_now)
        return queryset & rows if value in {"active", "revoked", "expired"} else queryset


@admin.register(models.Certificate)
class CertificateAdmin(SerialColumns, AgentColumn, TenantScopedAdmin):
    """Certificates, which officers may revoke; the decoded fields come from the certificate itself."""

    found_by_name = True
    navigation = NavigationLine("Agents", 2, "Certificates", "workspace_premium")
    confirmed_actions = (REVOKE,)
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        RelatedLink("Past holds", "history", "certificates_endedhold", "certificate__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = ("short_serial", "state", "agent_name", "tenant", "issued_at", "expires_at", "revoked_at")
    list_select_related = ("agent", "tenant")
    list_filter = (
        StateFilter,
        filters.TenantFilter,
        ("issued_at", filters.RangeDateTimeFilter),
        ("expires_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("agent__name", "serial_number__startswith")
    search_ids = ("pk", "agent_id")
    search_help_text = "Serial number (colons are fine), agent name or an ID"
    date_hierarchy = "issued_at"
    fieldsets = (
        (None, {"fields": ("serial", "state", "agent", "tenant", "actions_permitted")}),
        ("Validity", {"fields": ("issued_at", "expires_at", "superseded_at")}),
        (
            "Revocation",
            {"fields": ("revoked_at", "revocation_reason", "revocation_code", "first_crl_number")},
        ),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("What was signed of the agent", {"fields": ("signed_claims",)}),
        ("Key and octets", {"fields": ("key_reference", "private_key", "authority", "pem", "identifier")}),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        serial = parse_serial(search_term)
        if serial is not None:
            return queryset.filter(serial_number=format_serial(serial)), False
        return super().get_search_results(request, queryset, search_term)

    state = column("status", state_chip, ordering="status")

    @display(description="permitted actions")
    def actions_permitted(self, certificate: models.Certificate) -> str:
        permitted = (certificate.claims or {}).get("permitted_actions")
        if permitted is None:
            return "None declared"
        return chips(permitted, "primary") if permitted else "Nothing is permitted"

    decoded = column("fields", lambda row: facts(decoded(row.certificate_pem.encode())))
    signed_claims = column("claims", lambda row: pretty_json(row.claims))
    key_reference = column("key reference", lambda row: code(row.kms_key_arn))
    private_key = column("private key", lambda row: WHERE_KEYS_LIE[row.key_storage])
    pem = column("PEM", lambda row: block(row.certificate_pem))


@admin.register(models.CertificateAuthority)
class CertificateAuthorityAdmin(KeyFields, SystemAdmin):
    navigation = NavigationLine("Trust", 1, "Authorities", "account_balance")
    view_roles = EVERYONE
    related_links = (
        RelatedLink(
            "Revocation lists", "playlist_remove", "certificates_revocationlist", "authority__id__exact"
        ),
    )
    list_display = ("common_name", "role_chip", "state", "short_serial", "crl_number", "not_after")
    fieldsets = (
        (None, {"fields": ("common_name", "role_chip", "state", "parent", "crl_number")}),
        ("Validity", {"fields": ("not_before", "not_after", "retired_at")}),
        ("Published at", {"fields": ("certificate_url", "crl_url")}),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("Key", {"fields": ("key",)}),
    )

    role_chip = column("role", lambda authority: chip(authority.role, "primary"), ordering="role")

    @display(description="state")
    def state(self, authority: models.CertificateAuthority) -> str:
        state = authority.state_at(now())
        if state == models.AuthorityState.ACTIVE:
            return chip("in service", "success")
        return chip(state, "danger" if state == models.AuthorityState.EXPIRED else "default")


@admin.register(models.OcspResponder)
class OcspResponderAdmin(KeyFields, SystemAdmin):
    navigation = NavigationLine("Trust", 3, "OCSP responders", "vpn_key")
    view_roles = EVERYONE
    related_links = ()
    list_display = ("authority", "state", "short_serial", "not_before", "not_after")
    list_select_related = ("authority",)
    fieldsets = (
        (None, {"fields": ("authority", "state")}),
        ("Validity", {"fields": ("not_before", "not_after")}),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("Key", {"fields": ("key",)}),
    )

    state = column(
        "state", lambda row: chip("expired") if row.not_after <= now() else chip("answers", "success")
    )


@admin.register(models.RevocationList)
class RevocationListAdmin(SystemAdmin):
    navigation = NavigationLine("Trust", 2, "Revocation lists", "playlist_remove")
    view_roles = EVERYONE
    related_links = ()
    list_display = ("authority_name", "scope", "number", "state", "entry_count", "this_update", "next_update")
    list_select_related = ("authority",)
    fieldsets = (
        (None, {"fields": ("authority", "scope", "number", "base_number", "state", "entry_count", "size")}),
        ("Validity", {"fields": ("this_update", "next_update", "age")}),
    )

    authority_name = column(
        "authority", lambda row: visible(row.authority.common_name), ordering="authority__common_name"
    )

    state = column(
        "state",
        lambda row: chip("out of date", "danger") if row.next_update <= now() else chip("valid", "success"),
    )
    age = column("age", lambda row: spoken(now() - row.this_update))


@admin.register(models.Issuance)
class IssuanceAdmin(SerialColumns, AgentColumn, TenantScopedAdmin):
    navigation = NavigationLine("Trust", 4, "Issuances", "draw")
    related_links = ()
    list_display = (
        "short_serial",
        "state_chip",
        "agent_name",
        "tenant",
        "created_at",
        "finished_at",
        "error",
    )
    list_select_related = ("agent", "tenant")
    list_filter = (
        ("state", filters.ChoicesDropdownFilter),
        filters.TenantFilter,
        ("created_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("serial_number", "agent__name")
    search_ids = ("pk", "agent_id")
    fieldsets = (
        (None, {"fields": ("serial", "state_chip", "agent", "tenant", "error")}),
        ("Times", {"fields": ("created_at", "finished_at")}),
    )

    state_chip = column("state", lambda issuance: status_chip(issuance.state), ordering="state")


@admin.register(models.EndedHold)
class EndedHoldAdmin(TenantScopedAdmin):
    """Past holds of certificates; a present one is on the certificate's page."""

    tenant_field = "certificate__tenant_id"
    related_links = (
        RelatedLink(
            "Certificate",
            "workspace_premium",
            "certificates_certificate",
            "id__exact",
            lambda row: row.certificate_id,
        ),
    )
    list_display = ("short_serial", "held_at", "ended_at")
    list_select_related = ("certificate",)
    search_fields = ("certificate__serial_number__startswith",)
    search_ids = ("pk", "certificate_id")
    fieldsets = (
        (None, {"fields": ("certificate", "held_at", "ended_at")}),
        ("Revocation lists", {"fields": ("hold_crl_number", "end_crl_number")}),
    )

    short_serial = column("serial number", lambda row: code(shortened(row.certificate.serial_number, 17)))
