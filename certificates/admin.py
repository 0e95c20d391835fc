"""Certificates, their authorities, lists and keys in the console."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from agents.admin import AgentAdmin
from certificates.console_actions import REINSTATE, RETIRE, REVOKE, SUSPEND
from certificates.decoded import decoded_der, decoded_pem
from certificates.models import (
    AuthorityState,
    Certificate,
    CertificateAuthority,
    CertificateStatus,
    EndedHold,
    Issuance,
    OcspResponder,
    PooledKey,
    RevocationList,
)
from certificates.serials import format_serial, parse_serial
from compliance.clock import now
from compliance.console import RelatedLink, SystemAdmin, TenantScopedAdmin
from compliance.console.access import EVERYONE
from compliance.console.admin import AUDIT_TRAIL
from compliance.console.display import (
    block,
    chip,
    chips,
    code,
    facts,
    moment,
    pretty_json,
    shortened,
    status_chip,
    visible,
)
from compliance.console.filters import (
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    tenant_filter,
)

SOON, VERY_SOON = timedelta(days=30), timedelta(days=7)

# What stops an agent or readmits it touches its certificate too, so the actions belong to this room.
AgentAdmin.confirmed_actions = (*AgentAdmin.confirmed_actions, SUSPEND, REINSTATE, RETIRE)


class StateFilter(DropdownFilter):
    """By the state at this moment, and by how soon the end comes."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("active", "Active"),
            ("30", "Active, expires within 30 days"),
            ("7", "Active, expires within 7 days"),
            ("revoked", "Revoked"),
            ("expired", "Expired"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value, moment_now = self.value(), now()
        rows = Certificate.objects.with_status("active" if value in ("7", "30") else value, moment_now)
        if value in ("7", "30"):
            rows = rows.filter(expires_at__lt=moment_now + timedelta(days=int(value)))
        return queryset & rows if value in {"active", "7", "30", "revoked", "expired"} else queryset


@admin.register(Certificate)
class CertificateAdmin(TenantScopedAdmin):
    """Officers revoke; the decoded view reads the certificate itself, not what the row says of it."""

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
        tenant_filter(),
        ("issued_at", RangeDateTimeFilter),
        ("expires_at", RangeDateTimeFilter),
    )
    search_fields = ("agent__name", "serial_number__startswith")
    search_ids = ("pk", "agent_id")
    search_help_text = "Serial number (colons are fine), agent name or an ID"
    date_hierarchy = "issued_at"
    ordering = ("-issued_at", "-id")
    fieldsets = (
        (None, {"fields": ("serial", "state", "agent", "tenant", "actions_permitted")}),
        ("Validity", {"fields": ("issued_at", "expires_at")}),
        (
            "Revocation",
            {"fields": ("revoked_at", "revocation_reason", "revocation_code", "first_crl_number")},
        ),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("What was signed of the agent", {"fields": ("signed_claims",)}),
        ("Key and octets", {"fields": ("key_reference", "authority", "pem", "identifier")}),
    )
    readonly_fields = (
        "serial",
        "state",
        "actions_permitted",
        "decoded",
        "signed_claims",
        "key_reference",
        "pem",
        "identifier",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        serial = parse_serial(search_term)
        if serial is not None:
            return queryset.filter(serial_number=format_serial(serial)), False
        return super().get_search_results(request, queryset, search_term)

    @display(description="serial number", ordering="serial_number")
    def short_serial(self, certificate: Certificate) -> str:
        return code(shortened(certificate.serial_number, 17))

    @display(description="serial number")
    def serial(self, certificate: Certificate) -> str:
        return code(certificate.serial_number)

    @display(description="status", ordering="status")
    def state(self, certificate: Certificate) -> str:
        moment_now = now()
        status = certificate.status_at(moment_now)
        left = certificate.expires_at - moment_now
        if certificate.is_on_hold(moment_now):
            return chip("revoked, on hold", "warning")
        if status != CertificateStatus.ACTIVE or left > SOON:
            return status_chip(status)
        return chip(f"active, {left.days} days left", "danger" if left <= VERY_SOON else "warning")

    @display(description="agent", ordering="agent__name")
    def agent_name(self, certificate: Certificate) -> str:
        return visible(certificate.agent.name)

    @display(description="permitted actions")
    def actions_permitted(self, certificate: Certificate) -> str:
        permitted = (certificate.claims or {}).get("permitted_actions")
        if permitted is None:
            return "None declared"
        return chips(permitted, "primary") if permitted else "Nothing is permitted"

    @display(description="fields")
    def decoded(self, certificate: Certificate) -> str:
        return facts(decoded_pem(certificate.certificate_pem))

    @display(description="claims")
    def signed_claims(self, certificate: Certificate) -> str:
        return pretty_json(certificate.claims)

    @display(description="key reference")
    def key_reference(self, certificate: Certificate) -> str:
        return code(certificate.kms_key_arn)

    @display(description="PEM")
    def pem(self, certificate: Certificate) -> str:
        return block(certificate.certificate_pem)

    @display(description="ID")
    def identifier(self, certificate: Certificate) -> str:
        return code(certificate.pk)


@admin.register(CertificateAuthority)
class CertificateAuthorityAdmin(SystemAdmin):
    """CAs are public; everybody may look."""

    view_roles = EVERYONE
    related_links = (
        RelatedLink(
            "Revocation lists", "playlist_remove", "certificates_revocationlist", "authority__id__exact"
        ),
    )
    list_display = ("common_name", "role_chip", "state", "short_serial", "crl_number", "not_after")
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("common_name", "role_chip", "state", "parent", "crl_number")}),
        ("Validity", {"fields": ("not_before", "not_after", "retired_at")}),
        ("Published at", {"fields": ("certificate_url", "crl_url")}),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("Key", {"fields": ("key",)}),
    )
    readonly_fields = ("role_chip", "state", "decoded", "key")

    @display(description="role", ordering="role")
    def role_chip(self, authority: CertificateAuthority) -> str:
        return chip(authority.role, "primary")

    @display(description="state")
    def state(self, authority: CertificateAuthority) -> str:
        state = authority.state_at(now())
        if state == AuthorityState.ACTIVE:
            return chip("in service", "success")
        return chip(state, "danger" if state == AuthorityState.EXPIRED else "default")

    @display(description="serial number", ordering="serial_number")
    def short_serial(self, authority: CertificateAuthority) -> str:
        return code(shortened(authority.serial_number, 17))

    @display(description="fields")
    def decoded(self, authority: CertificateAuthority) -> str:
        return facts(decoded_der(bytes(authority.certificate_der)))

    @display(description="key reference")
    def key(self, authority: CertificateAuthority) -> str:
        return code(authority.key_uri)


@admin.register(OcspResponder)
class OcspResponderAdmin(SystemAdmin):
    """Who signs OCSP answers for which CA."""

    view_roles = EVERYONE
    related_links = ()
    list_display = ("authority", "state", "short_serial", "not_before", "not_after")
    list_select_related = ("authority",)
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("authority", "state")}),
        ("Validity", {"fields": ("not_before", "not_after")}),
        ("Certificate, decoded", {"fields": ("decoded",)}),
        ("Key", {"fields": ("key",)}),
    )
    readonly_fields = ("state", "decoded", "key")

    @display(description="state")
    def state(self, responder: OcspResponder) -> str:
        return chip("expired") if responder.not_after <= now() else chip("answers", "success")

    @display(description="serial number", ordering="serial_number")
    def short_serial(self, responder: OcspResponder) -> str:
        return code(shortened(responder.serial_number, 17))

    @display(description="fields")
    def decoded(self, responder: OcspResponder) -> str:
        return facts(decoded_der(bytes(responder.certificate_der)))

    @display(description="key reference")
    def key(self, responder: OcspResponder) -> str:
        return code(responder.key_uri)


@admin.register(RevocationList)
class RevocationListAdmin(SystemAdmin):
    """The newest lists of each CA and how old they are."""

    view_roles = EVERYONE
    related_links = ()
    list_display = ("authority_name", "scope", "number", "state", "entry_count", "this_update", "next_update")
    list_select_related = ("authority",)
    ordering = ("-this_update", "-id")
    fieldsets = (
        (None, {"fields": ("authority", "scope", "number", "base_number", "state", "entry_count", "size")}),
        ("Validity", {"fields": ("this_update", "next_update", "age")}),
    )
    readonly_fields = ("state", "age")

    @display(description="authority", ordering="authority__common_name")
    def authority_name(self, published: RevocationList) -> str:
        return visible(published.authority.common_name)

    @display(description="state")
    def state(self, published: RevocationList) -> str:
        return chip("out of date", "danger") if published.next_update <= now() else chip("valid", "success")

    @display(description="age")
    def age(self, published: RevocationList) -> str:
        return f"{(now() - published.this_update) // timedelta(minutes=1)} minutes"


@admin.register(Issuance)
class IssuanceAdmin(TenantScopedAdmin):
    """Every intent to issue, and what came of it."""

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
    list_filter = (("state", ChoicesDropdownFilter), tenant_filter(), ("created_at", RangeDateTimeFilter))
    search_fields = ("serial_number", "agent__name")
    search_ids = ("pk", "agent_id")
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("serial", "state_chip", "agent", "tenant", "error")}),
        ("Times", {"fields": ("created_at", "finished_at")}),
    )
    readonly_fields = ("serial", "state_chip")

    @display(description="serial number", ordering="serial_number")
    def short_serial(self, issuance: Issuance) -> str:
        return code(shortened(issuance.serial_number, 17))

    @display(description="serial number")
    def serial(self, issuance: Issuance) -> str:
        return code(issuance.serial_number)

    @display(description="state", ordering="state")
    def state_chip(self, issuance: Issuance) -> str:
        return status_chip(issuance.state)

    @display(description="agent", ordering="agent__name")
    def agent_name(self, issuance: Issuance) -> str:
        return visible(issuance.agent.name)


@admin.register(EndedHold)
class EndedHoldAdmin(TenantScopedAdmin):
    """When certificates were on hold; a hold that lasts stands on the certificate's own page."""

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
    ordering = ("-ended_at", "-id")
    fieldsets = (
        (None, {"fields": ("certificate", "held_at", "ended_at")}),
        ("Revocation lists", {"fields": ("hold_crl_number", "end_crl_number")}),
    )

    @display(description="serial number")
    def short_serial(self, hold: EndedHold) -> str:
        return code(shortened(hold.certificate.serial_number, 17))


@admin.register(PooledKey)
class PooledKeyAdmin(SystemAdmin):
    """Keys made in advance, that wait for an agent."""

    related_links = ()
    list_display = ("reference", "made")
    ordering = ("created_at", "id")
    fieldsets = ((None, {"fields": ("reference", "made")}),)
    readonly_fields = ("reference", "made")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("spki")

    @display(description="key reference")
    def reference(self, key: PooledKey) -> str:
        return code(key.key_uri)

    @display(description="made", ordering="created_at")
    def made(self, key: PooledKey) -> str:
        return moment(key.created_at)
