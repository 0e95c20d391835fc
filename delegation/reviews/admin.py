"""Access reviews in the console: a form that opens one, and the page on which its agents are decided."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from agents.admin import SuccessorForm, person_shown
from agents.serializers import EMAIL_PATTERN
from auditlog.actors.names import NamesActors, actor_shown
from auditlog.actors.requests import user_of
from compliance.console.access import OFFICERS, access_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import RowPage, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, code, column, moment, pretty_json, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from delegation.reviews import services
from delegation.reviews.facts import items_shown
from delegation.reviews.models import (
    MOST_NOTE,
    QUARTER,
    AccessReview,
    AccessReviewDecision,
    ItemNotFound,
    is_undecided,
)
from people.doors.second_factor import is_shown

ON_A_PAGE = 50
TICKED = "_ticked"
_email = RegexValidator(EMAIL_PATTERN, "Must be an e-mail address")
STOPPING = (AccessReviewDecision.SUSPEND, AccessReviewDecision.RETIRE)


class AccessReviewForm(forms.ModelForm):
    """Whose agents are reviewed, by whom and until when."""

    owner = forms.CharField(
        label="Agents of the owner",
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True}),
        help_text="The owner's e-mail; empty for all agents.",
    )
    reviewer = forms.CharField(
        max_length=254, validators=[_email], widget=UnfoldAdminTextInputWidget, help_text="Their e-mail."
    )
    days = forms.IntegerField(
        label="Days to decide", min_value=1, max_value=365, initial=14, widget=UnfoldAdminIntegerFieldWidget
    )
    quarterly = forms.BooleanField(label="Each quarter", required=False, widget=UnfoldBooleanSwitchWidget)

    class Meta:
        model = AccessReview
        fields = ("tenant", "reviewer")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self.errors:
            owner = data["owner"].strip()
            data["match"] = {"owner": owner} if owner else {"all": True}
            try:
                services.to_review(tenant_id=data["tenant"].id, match=data["match"])
            except ServiceError as error:
                self.add_error("owner", error.message)
        return data


def agents_page(page: TenantScopedAdmin, request: HttpRequest, review: AccessReview) -> HttpResponse:
    """Show the agents of a review, of which one is selected; a POST decides on it, or on those ticked."""
    url, items = page.row_url(review, "agents"), review.rows.order_by("id")
    order = list(items.values_list("agent_id", flat=True))
    undecided = {*items.filter(is_undecided()).values_list("agent_id", flat=True)}
    waiting = [place for place, agent_id in enumerate(order) if agent_id in undecided]
    may_decide = access_of(request).may(OFFICERS, review.tenant_id)
    wanted = parse_id((request.POST if request.method == "POST" else request.GET).get("agent"))
    place = order.index(wanted) if wanted in order else next(iter(waiting), 0)

    def at(place: int) -> str:
        return f"{url}?{urlencode({'agent': order[place]})}" if 0 <= place < len(order) else ""

    if request.method == "POST":
        if not may_decide:
            raise PermissionDenied
        try:
            if wanted not in order:
                raise ItemNotFound()
            if _decide(request, review, wanted):
                place = next((one for one in waiting if one > place), min(place + 1, len(order) - 1))
        except ServiceError as error:
            messages.error(request, f"Nothing was decided: {error.message}.")
        return HttpResponseRedirect(at(place))
    first = place // ON_A_PAGE * ON_A_PAGE
    found = items_shown(list(items.filter(agent_id__in=order[first : first + ON_A_PAGE])), now())
    rows = [{**_told(facts), "url": at(first + number)} for number, facts in enumerate(found)]
    context = {
        **page.admin_site.each_context(request),
        "title": f"Access review of {review}",
        "review": review,
        "due": moment(review.due_at),
        "waiting": len(waiting),
        "rows": rows,
        "it": rows[place - first],
        "next": at(place + 1),
        "previous": at(place - 1),
        "page_after": at(first + ON_A_PAGE),
        "page_before": at(first - ON_A_PAGE),
        "is_ticked": request.GET.get("tick") == "all",
        "may_decide": may_decide,
    }
    return TemplateResponse(request, "admin/reviews/agents.html", context)


def _decide(request: HttpRequest, review: AccessReview, agent_id: Any) -> bool:
    """Decide as the form says; return whether it was on the selected agent. Raises: ServiceError."""
    act, ticked = request.POST.get("act", ""), map(parse_id, request.POST.getlist("ticked"))
    is_ticked, decision = act.endswith(TICKED), act.removesuffix(TICKED)
    chosen = [one for one in ticked if one] if is_ticked else [agent_id]
    note = request.POST.get("note", "").replace("\0", "").strip()
    if decision not in AccessReviewDecision.values or not chosen or len(note) > MOST_NOTE:
        raise Invalid(f"tick agents, with a note of at most {MOST_NOTE} characters")
    if is_ticked and decision in STOPPING and not is_shown(request):
        raise Invalid("sign in with a second factor to stop agents together")
    made = services.decide(
        review_id=review.id,
        agent_ids=chosen,
        decision=AccessReviewDecision(decision),
        note=note,
        leave=is_ticked,
        **user_of(request, review),
    )
    count = sum(item.decision == decision for item in made)
    problems = {item.problem for item in made if item.problem}
    more = f" Not carried out yet: {', '.join(sorted(problems))}." if problems else ""
    left = f", {len(made) - count} left as they are" if count < len(made) else ""
    messages.success(request, f"{decision.capitalize()}: {count} decided{left}.{more}")
    return not is_ticked


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """Return an agent's facts as the page shows them."""
    used, permitted = {one["name"] for one in facts["used"]}, facts["permitted_actions"]
    return {
        **facts,
        **{name: visible(facts[name] or "") for name in ("name", "owner", "problem")},
        **{name: [visible(one) for one in facts[name]] for name in ("unused", "refused", "removed")},
        "status": status_chip(facts["status"]),
        "permitted": "any" if permitted is None else len(permitted),
        "used": [visible(f"{one['name']} ({one['count']})") for one in facts["used"]],
        "used_count": len(used & {*(permitted or used)}),
        "last": (facts["last_active_at"] or EMPTY)[:16].replace("T", " "),
        "decision": chip(facts["decision"]) if facts["decision"] else "",
    }


@admin.register(AccessReview)
class AccessReviewAdmin(NamesActors, TenantScopedAdmin):
    """Access reviews, newest first."""

    adding = "Open an access review"
    navigation = NavigationLine("Agents", 4, "Access reviews", "fact_check")
    form = AccessReviewForm
    actor_field = "started_by"
    add_roles = OFFICERS
    row_pages = (RowPage("agents", "Decide on the agents", "fact_check", agents_page),)
    list_display = ("started_at", "shown_reviewer", "standing", "agent_count", "due_at", "tenant")
    list_select_related = ("tenant",)
    list_filter = (("state", ChoicesDropdownFilter), TenantFilter)
    fieldsets = (
        (None, {"fields": ("standing", "shown_reviewer", "agent_count", "due_at", "shown_match", "tenant")}),
        ("Life", {"fields": ("identifier", "started_at", "officer", "next_at", "ended_at", "merkle_root")}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "owner", "reviewer", "days", "quarterly")}),)

    shown_reviewer = column("reviewer", lambda row: visible(row.reviewer))
    standing = column(
        "state",
        lambda row: chip("overdue", "danger") if row.is_overdue(now()) else status_chip(row.state),
        ordering="state",
    )
    shown_match = column("match", lambda row: pretty_json(row.match))
    officer = column("opened by", lambda row: actor_shown(row.started_by, row.actor_name))
    merkle_root = column("Merkle root", lambda row: code(row.root) if row.root else EMPTY)

    def save_model(self, request: HttpRequest, obj: AccessReview, form: Any, change: bool) -> None:
        data, asked = form.cleaned_data, user_of(request, obj)
        made = services.open_review(
            match=data["match"],
            reviewer=data["reviewer"],
            due_at=asked["now"] + timedelta(days=data["days"]),
            every=QUARTER if data["quarterly"] else None,
            **asked,
        )
        obj.pk, obj.agent_count = made.pk, made.agent_count


def replace_owner(call: ActionCall) -> str:
    role, name, email = (call.data[key] for key in ("role", "name", "email"))
    leaving = getattr(call.row, role)
    if leaving is None:
        raise Invalid(f"The agent has no {role.replace('_', ' ')}")
    count = services.replace_person(
        email=leaving["email"], name=name, new_email=email, **user_of(call.request, call.row)
    )
    successor = person_shown({"name": name, "email": email})
    return f"{successor} took the place of {person_shown(leaving)} at {counted(count, 'agent')}."


REPLACE_OWNER = ConfirmedAction(
    name="successor",
    label="Replace owner everywhere",
    icon="group",
    explanation=(
        "For a person who leaves: another takes their place as owner and backup owner of all agents of the "
        "tenant, retired ones too, of its blueprints, and in access reviews. Links for approvals that the "
        "person before was sent decide nothing."
    ),
    run=replace_owner,
    is_offered=lambda agent: agent.owner is not None or agent.backup_owner is not None,
    form_class=SuccessorForm,
)
