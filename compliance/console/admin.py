"""Read-only pages of the rows of the request's environment and the user's tenants, with actions by role.

A row of another tenant does not exist here: not in lists, filters, searches, pop-ups, look-ups or actions.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters, ShowFacets
from django.contrib.admin.sites import AdminSite
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.contrib.admin.views.main import ERROR_FLAG
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError
from django.db.models import Model, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from unfold.enums import ActionVariant

from compliance.console.access import EVERYONE, OPERATORS, ConsoleRole, access_of
from compliance.console.actions import ActionCall, ConfirmedAction, with_ascii_digits
from compliance.console.context import may_see
from compliance.console.display import code, column, shortened, spelled, visible
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import parse_id


class KnownChoice(AutocompleteSelect):
    """Shows a submitted key of the wrong form as no choice; Django's widget would fail at it."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        known = []
        for key in value:
            with suppress(ValidationError):
                self.field.target_field.to_python(key)
                known.append(key)
        return super().optgroups(name, known, attr)


if TYPE_CHECKING:  # Unfold carries no types; its classes extend Django's.
    from django.contrib.admin import ModelAdmin
    from django.contrib.admin.views.main import ChangeList
else:
    from unfold.admin import ModelAdmin
    from unfold.views import ChangeList


@dataclass(frozen=True)
class RelatedLink:
    """A link from a row's page to a list filtered by the row; `model` is `app_model`."""

    label: str
    icon: str
    model: str
    parameter: str
    value: Callable[[Any], object] = lambda row: row.pk


@dataclass(frozen=True)
class RowPage:
    """A page of its own about a row, linked from the row's page; for all who see the row."""

    name: str
    label: str
    icon: str
    view: Callable[["TenantScopedAdmin", HttpRequest, Any], HttpResponse]


UNKNOWN_FILTER = "The address has a filter or a value that this list does not know."
AUDIT_TRAIL = RelatedLink("Audit trail", "history", "auditlog_auditentry", "affected_id")


class ReadOnly:
    """Refuses adding, changing and deleting; subclasses allow what a role may do."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


class ConsoleChangeList(ChangeList):
    """Takes the parameters of its filters, of its months and of links to it; Django takes any look-up."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    def get_filters(self, request: HttpRequest) -> Any:
        if any("\x00" in value for values in self.get_filters_params().values() for value in values):
            raise IncorrectLookupParameters  # PostgreSQL cannot store it
        found = super().get_filters(request)
        months = {f"{self.date_hierarchy}__gte", f"{self.date_hierarchy}__lt"}
        page: Any = self.model_admin
        if not found[2].keys() <= months | page.linked_parameters():
            raise IncorrectLookupParameters
        return found


class TenantScopedAdmin(ReadOnly, ModelAdmin):
    """A page of rows that belong to tenants.

    It is read-only, but for the `edited` fields of those in `edit_roles`; services set the others.
    """

    tenant_field: str | None = "tenant_id"
    view_roles: frozenset[ConsoleRole] = EVERYONE
    add_roles: frozenset[ConsoleRole] = frozenset()
    edit_roles: frozenset[ConsoleRole] = frozenset()
    edited: tuple[str, ...] = ()
    edit_fieldsets: ClassVar[Any] = None
    secret_fields: frozenset[str] = frozenset()
    # Columns searched for a pasted UUID, through their indexes.
    search_ids: tuple[str, ...] = ("pk",)
    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = ()
    related_links: ClassVar[tuple[RelatedLink, ...]] = (AUDIT_TRAIL,)
    row_pages: ClassVar[tuple[RowPage, ...]] = ()
    navigation: ClassVar[NavigationLine | None] = None
    adding: str
    found_by_name = False  # by the search over all pages; by ID it finds every page's rows
    identifier = column("ID", lambda row: code(row.pk))
    change_form_before_template = "admin/console/related.html"
    list_filter_submit = True
    list_per_page = 50
    # Counting for each value of each filter reads the whole table.
    show_facets = ShowFacets.NEVER
    actions = None

    def __init__(self, model: type[Model], admin_site: AdminSite) -> None:
        super().__init__(model, admin_site)
        for field in model._meta.fields:
            # The name that Django makes of an attribute; one that is written out stays.
            field.verbose_name = spelled(str(field.verbose_name))
        self.adding = getattr(self, "adding", f"Add {spelled(str(self.opts.verbose_name))}")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        access = access_of(request)
        tenants = access.tenants_for(self.view_roles)
        if tenants is None:
            return rows
        if self.tenant_field is None:
            return rows if access.may(self.view_roles) else rows.none()
        return rows.filter(**{f"{self.tenant_field}__in": tenants})

    def tenant_of(self, row: Any) -> UUID | None:
        """Return the tenant of `row`; None if it belongs to the whole service."""
        value = row if self.tenant_field else None
        for part in (self.tenant_field or "").split("__"):
            value = getattr(value, part) if value is not None and part else value
        return value

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        tenant = self.tenant_of(obj) if isinstance(obj, self.model) else None
        return access_of(request).may(self.view_roles, tenant)

    has_module_permission = has_view_permission

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and access_of(request).may(self.edit_roles, self.tenant_of(obj))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).may(self.add_roles)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return every field of the page but those that are edited; the page for adding a row has none."""
        if obj is None:
            return ()
        if not self.edited:
            return super().get_readonly_fields(request, obj)
        shown = flatten_fieldsets(self.get_fieldsets(request, obj))
        return [name for name in shown if name not in self.edited]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        may_edit = self.edit_fieldsets and self.has_change_permission(request, obj)
        return self.edit_fieldsets if may_edit else super().get_fieldsets(request, obj)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the page for adding a row begins with: the user's tenant, if there is only one."""
        tenants = access_of(request).tenants_for(self.add_roles)
        own = {"tenant": next(iter(tenants))} if tenants is not None and len(tenants) == 1 else {}
        return {**own, **super().get_changeform_initial_data(request)}

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only the tenants for which the user may add rows."""
        tenants = access_of(request).tenants_for(self.add_roles)
        if db_field.name == "tenant" and tenants is not None:
            kwargs["queryset"] = db_field.remote_field.model.objects.filter(pk__in=tenants)
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = KnownChoice(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_form(self, *args: Any, **kwargs: Any) -> Any:
        return with_ascii_digits(super().get_form(*args, **kwargs))

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Leave it to the list."""
        return True

    def linked_parameters(self) -> set[str]:
        """Return the parameters by which pages of rows link to this list."""
        pages = self.admin_site._registry.values()
        links = [link for page in pages for link in getattr(page, "related_links", ())]
        own = f"{self.opts.app_label}_{self.opts.model_name}"
        return {link.parameter for link in links if link.model == own}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return ConsoleChangeList

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns; without the tenant's if the user has only one tenant."""
        columns = list(super().get_list_display(request))
        return columns if access_of(request).shows_many_tenants else [c for c in columns if c != "tenant"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if "\x00" in search_term:  # which a look-up's search may hold
            return queryset.none(), False
        identifier = parse_id(search_term.strip())
        if identifier is None:
            return super().get_search_results(request, queryset, search_term)
        is_joined = any(LOOKUP_SEP in name for name in self.search_ids)
        return queryset.filter(Q.create([(name, identifier) for name in self.search_ids], Q.OR)), is_joined

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*(super().get_exclude(request, obj) or ()), *self.secret_fields]

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Refuse filters that the list does not have, and values that fail only when the rows are read."""
        try:
            return super().get_changelist_instance(request)
        except (IncorrectLookupParameters, ValueError, OverflowError, DataError) as error:
            if ERROR_FLAG in request.GET:
                raise Invalid(UNKNOWN_FILTER) from error
            messages.warning(request, f"{UNKNOWN_FILTER} All rows are shown.")
            raise IncorrectLookupParameters from error

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except ServiceError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        """Show the page of a new row's secret, where `save_model` has set one as `request.secret_page`."""
        shown: HttpResponse | None = getattr(request, "secret_page", None)
        return shown or super().response_add(request, obj, post_url_continue)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None and not context.get("is_popup"):
            context["actions_detail"] = self.buttons(request, obj)
            links = [(one.label, one.icon, self.row_url(obj, one.name)) for one in self.row_pages]
            for link in self.related_links:
                if may_see(request, link.model):
                    query = urlencode({link.parameter: link.value(obj)})
                    address = reverse(f"admin:{link.model}_changelist")
                    links.append((link.label, link.icon, f"{address}?{query}"))
            context["related"] = [{"label": label, "icon": icon, "url": url} for label, icon, url in links]
        buttons = ("show_history", "show_save_and_add_another", "show_save_and_continue")
        context.update(dict.fromkeys(buttons, False))
        context["save_label"] = "Save" if obj else self.adding
        context["title"] = context["title"] if obj else self.adding
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the audit trail."""
        target = reverse("admin:auditlog_auditentry_changelist")
        return HttpResponseRedirect(f"{target}?{urlencode({'affected_id': unquote(object_id)})}")

    def log_nothing(self, *args: Any) -> Any:
        """Do nothing: the service that changed the row wrote to the audit log."""

    log_addition = log_change = log_deletions = log_nothing  # type: ignore[assignment]

    def buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """Return the buttons of the actions that the user may take on the row in its present state."""
        return [
            self.button(row, action.name, action.label, action.icon, is_destructive=action.is_destructive)
            for action in self.confirmed_actions
            if action.is_offered(row) and access_of(request).may(action.roles, self.tenant_of(row))
        ]

    def get_urls(self) -> list[URLPattern]:
        pages = [
            self.row_page(action.name, partial(self.action_view, action=action))
            for action in self.confirmed_actions
        ]
        pages += [self.row_page(page.name, partial(self.page_view, page=page)) for page in self.row_pages]
        return pages + super().get_urls()

    def page_view(self, request: HttpRequest, object_id: str, page: RowPage) -> HttpResponse:
        """Show `page` of a row."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self.missing(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return page.view(self, request, row)

    def action_view(self, request: HttpRequest, object_id: str, action: ConfirmedAction) -> HttpResponse:
        """Show the page that explains `action`; on a POST, run it."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self.missing(request, object_id)
        if not access_of(request).may(action.roles, self.tenant_of(row)):
            raise PermissionDenied
        # Without data, as on a GET, a form is never valid.
        form_class = action.form_for(row) if action.form_for else action.form_class
        form = with_ascii_digits(form_class)(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            context = {
                **self.admin_site.each_context(request),
                "title": action.label,
                "action": action,
                "form": form,
                "row_kind": str(self.opts.verbose_name).capitalize(),
                "row_name": visible(row),
                "row_url": self.row_url(row),
                "tenant": getattr(row, "tenant", None),
            }
            return TemplateResponse(request, "admin/console/confirm.html", context)
        try:
            outcome = action.run(ActionCall(request, row, form.cleaned_data, now()))
        except ServiceError as error:
            messages.error(request, error.message)
        else:
            if isinstance(outcome, HttpResponse):
                return outcome
            messages.success(request, outcome)
        return HttpResponseRedirect(self.row_url(row))

    def missing(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Answer that a row does not exist, or is another tenant's, which must read the same."""
        name = f"{self.opts.verbose_name} {visible(shortened(unquote(object_id)))}"
        environment = access_of(request).environment.value
        messages.warning(request, f"There is no {name} in the {environment} environment of your tenants.")
        return HttpResponseRedirect(reverse("admin:index"))

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        return self.missing(request, object_id)

    def row_page(self, name: str, view: Callable[..., HttpResponse]) -> URLPattern:
        """Return the route of a page of a row; `view` takes the request and `object_id`."""
        wrapped: Any = self.admin_site.admin_view(view)
        wrapped.model_admin = self
        page = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        found: URLPattern = path(f"<path:object_id>/{name}/", wrapped, name=page)
        return found

    def button(
        self, row: Any, name: str, label: str, icon: str, *, is_destructive: bool = False
    ) -> dict[str, Any]:
        """Return a button that leads to the page `name` of the row."""
        return {
            "title": label,
            "icon": icon,
            "variant": ActionVariant.DANGER if is_destructive else ActionVariant.DEFAULT,
            "attrs": {},
            "dialog": None,
            "path": self.row_url(row, name),
        }

    def row_url(self, row: Any, page: str = "change") -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=[quote(row.pk)])


class SystemAdmin(TenantScopedAdmin):
    """A read-only page of rows of the whole service; for operators, unless a subclass adds roles."""

    tenant_field = None
    view_roles = OPERATORS
