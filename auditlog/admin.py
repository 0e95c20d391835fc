"""The audit log in the console, read as the auditor, whom PostgreSQL lets read the log and nothing else."""

from collections.abc import Callable
from datetime import UTC
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    QueryDict,
)
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from unfold.enums import ActionVariant
from unfold.paginator import InfinitePaginator

from auditlog.actors.names import NamesActors, actor_shown
from auditlog.actors.requests import actor_of, record_taken
from auditlog.errors import ExportsUnderWay, NothingSealed, NotSealedYet
from auditlog.exporting.export import export_of
from auditlog.exporting.formats import FORMATS
from auditlog.finding import words
from auditlog.finding.words import ActorFilter, add_places
from auditlog.models import AuditEntry, TreeHead
from auditlog.proving import proofs
from auditlog.proving.proofs import MET, MISSING, NO_POLICY, WitnessReport, export_file, log_state, proof_file
from auditlog.sealing.keys import log_keys, verifier_key
from auditlog.verifying import one_entry
from auditlog.vocabulary import SERVICE_TENANT_ID, ActorKind, AuditAction
from compliance.console import filters
from compliance.console.access import access_of
from compliance.console.admin import TenantScopedAdmin
from compliance.console.context import registered
from compliance.console.display import EMPTY, chip, code, column, pretty_json, row_link, short_code, visible
from compliance.console.navigation import NavigationLine
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id

# The model whose page shows the affected row, by the part of an action before its dot.
PAGES = {
    "agent": "agents_agent",
    "api_key": "tenancy_apikey",
    "audit": "auditlog_auditentry",
    "certificate": "certificates_certificate",
    "delegation": "agents_agent",
    "event": "events_behaviorevent",
    "incident": "incidents_incident",
    "membership": "tenancy_membership",
    "message": "agents_agent",
    "notification": "incidents_incident",
    "person": "auth_user",
    "report": "reports_report",
    "simulation": "events_simulation",
    "tenant": "tenancy_tenant",
    "webhook": "webhooks_webhook",
}
TONES = {
    **dict.fromkeys(("revoked", "suspended", "high_risk"), "danger"),
    **dict.fromkeys(("held", "retired", "deleted"), "warning"),
}
KINDS = {**dict(ActorKind.choices), ActorKind.API_KEY: "API key"}
LONGEST_QUERY = 500
EXPORTS = {"jsonl": "Export JSON Lines", "csv": "Export CSV", "ocsf": "Export OCSF"}
SAFE_METHODS = ("GET", "HEAD")
PREFIXES = {Environment.LIVE: "/v1/audit-log", Environment.TEST: "/v1/audit-log/test"}
QUORUM_TONES = {MET: "success", MISSING: "danger", NO_POLICY: "default"}
OUTCOME_TONES = {
    one_entry.StepOutcome.PASSED: "success",
    one_entry.StepOutcome.FAILED: "danger",
    one_entry.StepOutcome.OPEN: "warning",
    one_entry.StepOutcome.NOT_NEEDED: "default",
}


def linked(entry: AuditEntry, shown: str) -> str:
    model = PAGES.get(entry.event_type.partition(".")[0])
    if model is None or registered(model) is None or parse_id(entry.affected_id) is None:
        return shown
    return row_link(shown, model, entry.affected_id)


def seal_chip(entry: Any) -> SafeString:
    if entry.leaf_index is None:
        return chip("waiting", "warning", verbatim=True)
    if entry.leaf_index < entry.witnessed_size:
        return chip(f"witnessed · #{entry.leaf_index} of {entry.witnessed_size}", "success", verbatim=True)
    if entry.leaf_index < entry.signed_size:
        return chip(f"sealed · #{entry.leaf_index} of {entry.signed_size}", "info", verbatim=True)
    return chip(f"sealed · #{entry.leaf_index}, unsigned", "warning", verbatim=True)


def part_column(
    title: str, part: str, show: Callable[[Any], Any], *, is_listed: bool = False, ordering: str | None = None
) -> Any:
    """Return a column of a part of an entry; an erased one is a mark, on the entry's page with its record."""

    def shown(entry: Any) -> Any:
        if part not in (entry.erased or ()):
            return show(entry)
        return chip("erased", "warning") if is_listed else _erasure(entry, part)

    return column(title, shown, ordering=ordering)


def _erasure(entry: AuditEntry, part: str) -> SafeString:
    with environments.auditing():
        record = one_entry.erasures_of(tenant_id=entry.tenant_id, entry_id=entry.id).get(part)
    if record is None:
        return format_html("{} {}", chip("erased", "danger"), "No entry records it.")
    when = f"{record.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    record_link = row_link("Entry that records it", "auditlog_auditentry", record.pk)
    return format_html("{} {} {}", chip("erased", "warning"), when, record_link)


def _linked_short(entry: AuditEntry) -> str:
    kind = entry.event_type.partition(".")[0].replace("_", " ")
    return linked(entry, format_html("{} {}", kind, short_code(entry.affected_id)))


def _filters(request: HttpRequest) -> QueryDict:
    found = request.GET.copy()
    for name in (PAGE_VAR, ORDER_VAR):
        found.pop(name, None)
    return found


@admin.register(AuditEntry)
class AuditEntryAdmin(NamesActors, TenantScopedAdmin):
    navigation = NavigationLine("Evidence", 1, "Audit log", "history")
    related_links = ()
    list_display = (
        *("created_at", "action", "seal", "short_description", "kind", "short_actor", "tenant"),
        "short_affected",
    )
    list_filter = (
        ("event_type", filters.ChoicesDropdownFilter),
        ("actor_kind", filters.ChoicesDropdownFilter),
        ActorFilter,
        filters.TenantFilter,
        ("created_at", filters.RangeDateTimeFilter),
    )
    # Shows the field: `get_search_results` searches.
    search_fields = ("description",)
    search_help_text = "Beginnings of words of descriptions, reasons and notes, or an affected ID"
    search_ids = ("affected_id",)
    date_hierarchy = "created_at"
    # It has one order, which an index has: another would read and sort the whole log.
    sortable_by = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("created_at", "action", "description_shown", "tenant")}),
        ("Actor", {"fields": ("kind", "actor")}),
        ("Affected", {"fields": ("affected", "metadata_shown")}),
        ("Entry", {"fields": ("seal", "identifier")}),
    )

    kind = column("kind", lambda row: KINDS[row.actor_kind], ordering="actor_kind")
    actor = part_column("actor", "actor_id", lambda row: actor_shown(row.actor_id, row.actor_name))
    short_actor = part_column(
        "actor",
        "actor_id",
        lambda row: actor_shown(row.actor_id, row.actor_name, is_short=True),
        is_listed=True,
        ordering="actor_id",
    )
    affected = part_column("affected", "affected_id", lambda row: linked(row, code(row.affected_id)))
    short_affected = part_column("affected", "affected_id", _linked_short, is_listed=True)
    description_shown = part_column(
        "description", "description", lambda row: visible(row.description or EMPTY)
    )
    short_description = part_column(
        "description",
        "description",
        lambda entry: format_html(
            '<span class="console-clamp" title="{0}">{0}</span>', visible(entry.description or EMPTY)
        ),
        is_listed=True,
    )
    metadata_shown = part_column("metadata", "metadata", lambda row: pretty_json(row.metadata))
    seal = column("seal", seal_chip)
    tenant = column(
        "tenant",
        lambda row: (
            "The service" if row.tenant_id == SERVICE_TENANT_ID else visible(row.tenant_name or row.tenant_id)
        ),
    )
    action = column(
        "action",
        lambda row: chip(
            row.event_type, TONES.get(row.event_type.partition(".")[2], "default"), verbatim=True
        ),
        ordering="event_type",
    )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Order as an index serves: one tenant's entries by time, all tenants' by id (UUIDv7, so by time)."""
        return ("-id",) if self._tenants(request) is None else ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        entries = super().get_queryset(request).using(environments.current().auditor_alias)
        named: QuerySet[Any] = filters.with_tenant_name(entries)
        return named

    def named(self, rows: list[Any]) -> list[Any]:
        add_places(rows)
        return super().named(rows)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find an affected row's id, or words; both within the tenants that the user sees."""
        if not search_term.strip() or parse_id(search_term.strip()) is not None:
            return super().get_search_results(request, queryset, search_term)
        return words.saying(queryset, search_term, tenants=self._tenants(request)), False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        if isinstance(answer, TemplateResponse) and answer.context_data is not None:
            query = _filters(request).urlencode()
            answer.context_data["actions_list"] = [
                {
                    "title": EXPORTS[name],
                    "icon": "download",
                    "variant": ActionVariant.DEFAULT,
                    "attrs": {},
                    "dialog": None,
                    "path": f"{reverse('admin:auditlog_auditentry_export', args=[name])}?{query}",
                }
                for name in FORMATS
            ]
        return answer

    def get_urls(self) -> list[URLPattern]:
        export = self.admin_site.admin_view(require_safe(self.export_view))
        pages = [
            path("export/<str:name>/", export, name="auditlog_auditentry_export"),
            self.row_page("proof", require_safe(self.proof_view)),
            self.row_page("verify", require_safe(self.verify_view)),
        ]
        return pages + super().get_urls()

    def buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        return [
            self.button(row, "proof", "Proof", "download"),
            self.button(row, "verify", "Verify", "fact_check"),
        ]

    def proof_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        entry = self._entry(request, object_id)
        try:
            with environments.auditing():
                found = proofs.proof(tenant_id=entry.tenant_id, entry_id=str(entry.id), now=now())
        except NotSealedYet as error:
            messages.warning(request, f"{error.message}.")
            return HttpResponseRedirect(self.row_url(entry))
        return proof_file(found, entry.id)

    def verify_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        entry = self._entry(request, object_id)
        with environments.auditing():
            found = one_entry.verify(tenant_id=entry.tenant_id, entry_id=str(entry.id), now=now())
        context = {
            **self.admin_site.each_context(request),
            "title": "Verify an entry",
            "entry": visible(entry),
            "entry_url": self.row_url(entry),
            "proof_url": reverse("admin:auditlog_auditentry_proof", args=[entry.pk]),
            "outcome": found.outcome,
            "steps": [
                {"step": step, "chip": chip(step.outcome, OUTCOME_TONES[step.outcome])}
                for step in found.steps
            ],
        }
        return TemplateResponse(request, "admin/auditlog/verification.html", context)

    def export_view(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Stream the list as filtered, with proofs; entries of one tenant, as their salts are its own."""
        if name not in FORMATS:
            raise Http404
        if not self.has_view_permission(request):
            raise PermissionDenied
        tenants, back = self._tenants(request) or frozenset(), f"../../?{request.GET.urlencode()}"
        if len(tenants) != 1:
            messages.warning(request, "An export is of one tenant: choose it among the filters.")
            return HttpResponseRedirect(back)
        (tenant_id,) = tenants
        try:
            entries = self.get_changelist_instance(request).get_queryset(request)
            with environments.auditing():
                found = export_of(
                    entries.filter(tenant_id=tenant_id),
                    tenant_id=tenant_id,
                    filters=dict(_filters(request).lists()),
                    form=FORMATS[name],
                    now=now(),
                )
        except IncorrectLookupParameters:
            return HttpResponseRedirect("../../")
        except (NothingSealed, ExportsUnderWay) as error:
            messages.warning(request, f"{error.message}.")
            return HttpResponseRedirect(back)
        try:
            record_taken(
                actor=actor_of(request),
                action=AuditAction.AUDIT_EXPORTED,
                tenant_id=tenant_id,
                description=f"Audit log exported as {name}",
                format=name,
                filters=_filters(request).urlencode()[:LONGEST_QUERY],
            )
        except BaseException:
            found.close()
            raise
        return export_file(found, name)

    def _tenants(self, request: HttpRequest) -> frozenset[UUID] | None:
        """Return the tenants of the list: those that the user sees, or one as filtered; None: all."""
        seen = access_of(request).tenants_for(self.view_roles)
        if not request.GET.get("tenant"):
            return seen
        chosen = parse_id(request.GET["tenant"])
        return frozenset([chosen] if chosen and (seen is None or chosen in seen) else [])

    def _entry(self, request: HttpRequest, object_id: str) -> AuditEntry:
        entry: AuditEntry | None = self.get_object(request, object_id)
        if entry is None:
            raise Http404
        return entry


@admin.register(TreeHead)
class TreeAdmin(TenantScopedAdmin):
    """One page in the place of a list; members see it without the witnesses' addresses and errors."""

    navigation = NavigationLine("Evidence", 2, "Tree and witnesses", "account_tree")
    tenant_field = None

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in SAFE_METHODS:
            return HttpResponseNotAllowed(SAFE_METHODS)
        with environments.auditing():
            state, keys = log_state(now=now()), log_keys(now())
        access = access_of(request)
        context = {
            **self.admin_site.each_context(request),
            "title": "Tree and witnesses",
            "state": state,
            "keys": [
                {
                    "vkey": verifier_key(key).encode(),
                    "active_from": key.active_from,
                    "retired_at": key.retired_at,
                }
                for key in reversed(keys)
            ],
            "quorum": chip(state.quorum, QUORUM_TONES[state.quorum]),
            "is_operator": access.is_operator,
            "witnesses": [
                {
                    "name": visible(each.name),
                    "key_name": code(each.key_name),
                    "url": code(each.url) if access.is_operator else "",
                    "size": each.size,
                    "cosigned_at": each.cosigned_at,
                    "state": _witness_state(each),
                    "problem": visible(each.problem) if access.is_operator else "",
                }
                for each in state.witnesses
            ],
            "prefix": PREFIXES[access.environment],
        }
        return TemplateResponse(request, "admin/auditlog/tree.html", context)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:auditlog_treehead_changelist"))


def _witness_state(witness: WitnessReport) -> SafeString:
    if witness.contradicts:
        return chip("contradicts this log", "danger")
    if witness.problem:
        return chip("did not cosign", "warning")
    if witness.url is None:
        return chip("not asked", "default")
    return chip("cosigns", "success") if witness.cosigned_at else chip("waiting", "default")
