"""The console's pages of issued tokens and of token keys."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from auditlog.actors.requests import user_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, SystemAdmin, TenantScopedAdmin
from compliance.console.display import chip, chips, code, column, pretty_json, status_chip, visible
from compliance.console.filters import (
    ChoicesDropdownFilter,
    RangeDateTimeFilter,
    TenantFilter,
)
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from delegation import services
from delegation.issued.listing import ListedToken, TokenState, listed
from delegation.models import IssuedToken, TokenKey

TONES = {
    TokenState.ACTIVE: "success",
    TokenState.EXPIRED: "default",
    TokenState.REVOKED: "danger",
    TokenState.STOPPED: "danger",
}


def revoke(call: ActionCall) -> str:
    row = services.revoke(token_id=call.row.id, reason=call.data["reason"], **user_of(call.request, call.row))
    return f"The token for {visible(row.principal)} and all that came of it are revoked."


REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke token",
    icon="block",
    explanation=(
        "The token and every token handed on from it, of any tenant, stop counting at once for "
        "introspection, gateways and handing on, and within seconds in the status list. A check of the "
        "signature alone does not show it. It can't be undone, but the agent may issue another token."
    ),
    run=revoke,
    is_offered=lambda row: row.revoked_at is None and not row.has_expired(now()),
    is_destructive=True,
)


def told(row: Any) -> ListedToken:
    """Return the row with its state, as its list has found it or as it is now."""
    if not hasattr(row, "told"):
        (row.told,) = listed([row], now=now())
    found: ListedToken = row.told
    return found


@admin.register(IssuedToken)
class IssuedTokenAdmin(TenantScopedAdmin):
    """Issued delegation tokens, which officers may revoke; their text is not stored."""

    navigation = NavigationLine("Agents", 6, "Delegations", "share")
    confirmed_actions = (REVOKE,)
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        RelatedLink("Handed on from it", "share", "delegation_issuedtoken", "parent_token_id__exact"),
        RelatedLink(
            AUDIT_TRAIL.label, AUDIT_TRAIL.icon, AUDIT_TRAIL.model, AUDIT_TRAIL.parameter,
            lambda row: row.agent_id,
        ),
    )  # fmt: skip
    list_display = (
        *("chain_shown", "state", "agent_name", "tenant", "root", "binding", "issued_at", "expires_at"),
    )
    list_select_related = ("agent", "tenant")
    list_filter = (
        TenantFilter,
        ("revoked_at", RangeDateTimeFilter),
        ("issued_at", RangeDateTimeFilter),
        ("expires_at", RangeDateTimeFilter),
    )
    search_fields = ("principal", "agent__name")
    search_ids = ("pk", "agent_id", "parent_token_id")
    search_help_text = "Principal, agent name or an ID"
    date_hierarchy = "issued_at"
    fieldsets = (
        (None, {"fields": ("chain_shown", "state", "why", "agent", "tenant", "granted", "aimed_at")}),
        ("Trust", {"fields": ("root", "vouched", "binding", "key", "certificate")}),
        ("Validity", {"fields": ("issued_at", "expires_at")}),
        ("Revocation", {"fields": ("revoked_at", "revoked_by", "revocation_reason")}),
        ("Ids", {"fields": ("identifier", "parent")}),
    )

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Look at the standing of all rows of the page at once."""
        page = super().get_changelist_instance(request)
        for found in listed(list(page.result_list), now=now()):
            found.row.told = found  # type: ignore[attr-defined]
        return page

    chain_shown = column(
        "chain", lambda row: visible(" → ".join(one["sub"] for one in row.chain)), ordering="principal"
    )
    agent_name = column("agent", lambda row: visible(row.agent.name), ordering="agent__name")
    aimed_at = column("audience", lambda row: visible(row.audience) if row.audience else "Anyone")
    key = column("key", lambda row: code(row.bound_to) if row.bound_to else "None")
    certificate = column(
        "certificate", lambda row: code(row.certificate_serial) if row.certificate_serial else "None yet"
    )
    identifier = column("token ID", lambda row: code(row.pk))
    parent = column(
        "handed on from", lambda row: code(row.parent_token_id) if row.parent_token_id else "Nothing"
    )

    state = column("state", lambda row: chip(told(row).state, TONES[told(row).state]))
    why = column("why it does not stand", lambda row: (told(row).reason or "It stands").replace("_", " "))
    granted = column(
        "scope", lambda row: chips(row.scope.split(), "primary") if row.scope else "Grants no action"
    )
    root = column(
        "root", lambda row: chip(row.root_assurance.value, "success" if row.root_issuer else "default")
    )
    vouched = column(
        "verified by",
        lambda row: visible(f"{row.root_issuer}: {row.root_subject}") if row.root_issuer else "Nobody",
    )
    binding = column(
        "holder", lambda row: chip("bound to a key", "success") if row.bound_to else chip("bearer", "default")
    )


@admin.register(TokenKey)
class TokenKeyAdmin(SystemAdmin):
    navigation = NavigationLine("Trust", 5, "Token keys", "vpn_key")
    related_links = ()
    list_display = ("key_id", "state", "published_at", "active_from", "retired_at", "destroyed_at")
    list_filter = (("status", ChoicesDropdownFilter),)
    search_fields = ("kid",)
    fieldsets = (
        (None, {"fields": ("key_id", "state", "public_key")}),
        ("Life", {"fields": ("published_at", "active_from", "retired_at", "destroyed_at")}),
    )

    key_id = column("key ID", lambda key: code(key.kid), ordering="kid")
    state = column("status", lambda key: status_chip(key.status), ordering="status")
    public_key = column("public key", lambda key: pretty_json(key.public_jwk))
