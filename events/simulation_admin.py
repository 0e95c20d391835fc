"""Policy simulations in the console: what another risk policy would have done to a tenant's agents."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminDateWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from auditlog.actors.names import NamesActors, actor_shown
from auditlog.actors.requests import actor_of
from compliance.console.access import OFFICERS
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import (
    EMPTY,
    STATUS_COLOURS,
    chip,
    column,
    facts,
    row_link,
    status_chip,
    table,
    visible,
)
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from events.models import Simulation
from events.risk.evaluation import simulations
from events.risk.evaluation.policy import live_policy
from events.risk.evaluation.simulations import FATES, UNREVIEWED, VERDICTS
from events.risk.scoring.model import in_words
from events.risk.scoring.reasons import WEIGHTS

TITLE = "Simulate a policy"
DAY = timedelta(days=1)
MOST_SHOWN = 100
WORDS = {
    "missed": "stopped by the live policy only",
    "new": "stopped by the candidate only",
    "earlier": "stopped earlier by the candidate",
    "later": "stopped later by the candidate",
    "neither": "confirmed, stopped by neither",
    "same": "stopped at the same event",
}
COLUMNS = ("Agent", "Stopped then", "Live policy", "Candidate", "Verdict", "Why")


class NewSimulationForm(forms.ModelForm):
    threshold = forms.FloatField(
        widget=UnfoldAdminDecimalFieldWidget, help_text="Score from which an event is a strike, 0 to 1."
    )
    strikes = forms.IntegerField(
        widget=UnfoldAdminIntegerFieldWidget, help_text="Strikes within the window that stop an agent."
    )
    window_minutes = forms.FloatField(widget=UnfoldAdminDecimalFieldWidget, label="Window, minutes")
    scope_rule = forms.BooleanField(
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Off: actions outside the certified scope break no rule. Scores all events anew.",
    )
    alarm_budget = forms.FloatField(
        required=False,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="Share of an agent's ordinary events that may be medium or high, 0.001 to 0.05; empty: as "
        "now. Scores all events anew.",
    )
    weights = forms.CharField(
        required=False,
        initial="{}",
        max_length=2_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text='Weights that differ, as {"BURST": 0.8}. Scores all events anew. '
        + ", ".join(sorted(WEIGHTS)),
    )
    rescore = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label="Score anew",
        help_text="By the present model, instead of counting the stored scores.",
    )
    first_day = forms.DateField(
        required=False,
        widget=UnfoldAdminDateWidget,
        help_text="From midnight UTC; empty: all that is stored.",
    )
    last_day = forms.DateField(
        required=False, widget=UnfoldAdminDateWidget, help_text="Included; empty: up to the present."
    )

    class Meta:
        model = Simulation
        fields = ("tenant",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        live = live_policy()
        for name in ("threshold", "strikes", "window_minutes"):
            if name in self.fields:
                self.fields[name].initial = getattr(live, name)

    def clean_weights(self) -> Any:
        """Return the numbers by name; anything else that is JSON is refused in words."""
        try:
            return msgspec.json.decode(self.cleaned_data["weights"] or "{}", type=dict[str, float])
        except msgspec.DecodeError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                simulations.refuse_second(tenant_id=data["tenant"].id)
                simulations.order_of(**self.request_of(data), now=now())
            except ServiceError as error:
                self.add_error(None, error.message)
        return data

    def request_of(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by which the service is asked for the simulation."""
        names = ("threshold", "strikes", "window_minutes", "scope_rule", "alarm_budget", "weights", "rescore")
        changes = {name: data[name] for name in names}
        first, last = data["first_day"], data["last_day"]
        return {
            "tenant_id": data["tenant"].id,
            "changes": changes,
            "since": datetime.combine(first, time.min, UTC) if first else None,
            "until": datetime.combine(last, time.min, UTC) + DAY if last and last < date.max else None,
        }


def _summary(row: Simulation) -> str:
    policy = row.policies["candidate"]
    scored = ", scored anew" if policy["rescored"] else ""
    return f"{policy['strikes']} of {policy['threshold']:g} in {policy['window_minutes']:g} min{scored}"


class SimulationAdmin(NamesActors, TenantScopedAdmin):
    """Simulations; a task works on them step by step."""

    adding = "Simulate a policy"
    navigation = NavigationLine("Agents", 6, "Simulate a policy", "flight_takeoff")
    form = NewSimulationForm
    actor_field = "requested_by"
    add_roles = OFFICERS
    list_display = ("created_at", "policy", "state", "progress_text", "tenant", "officer")
    list_select_related = ("tenant",)
    list_filter = (
        ("status", ChoicesDropdownFilter),
        TenantFilter,
        ("created_at", RangeDateTimeFilter),
    )
    fieldsets = (
        (None, {"fields": ("state", "progress_text", "tenant", "officer")}),
        ("Policies", {"fields": ("live_facts", "candidate_facts", "period")}),
        ("Check against what happened", {"fields": ("reproduction",)}),
        ("Agents", {"fields": ("counts", "agents")}),
        ("Times", {"fields": ("created_at", "completed_at")}),
    )
    add_fieldsets = (
        (None, {"fields": ("tenant", "threshold", "strikes", "window_minutes")}),
        ("Scoring", {"fields": ("scope_rule", "alarm_budget", "weights", "rescore")}),
        ("Period", {"fields": ("first_day", "last_day")}),
    )

    officer = column("requested by", lambda row: actor_shown(row.requested_by, row.actor_name))
    state = column("status", lambda row: status_chip(row.status), ordering="status")
    progress_text = column("progress", lambda row: f"{row.progress:.0%}, {row.events:,} events read")
    policy = column("candidate", _summary)
    period = column(
        "period",
        lambda row: (
            f"{_moment(row.policies['since']) if row.policies['since'] else 'the first stored event'} to "
            f"{_moment(row.policies['until'])}"
        ),
    )
    live_facts = column("live", lambda row: _policy(row.policies["live"]))
    candidate_facts = column("candidate", lambda row: _policy(row.policies["candidate"]))
    reproduction = column("revocations", lambda row: _reproduction(row.findings))
    counts = column("counts", lambda row: _counts(row.findings))
    agents = column("agents", lambda row: _agents(row.findings))

    def get_queryset(self, request: HttpRequest) -> Any:
        """Defer what may be large; a row's page reads the findings when it shows them."""
        return super().get_queryset(request).defer("checkpoint", "findings")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        try:
            return super().add_view(request, form_url, {"title": TITLE, **(extra_context or {})})
        except simulations.AlreadySimulating as error:  # since the form was checked
            messages.error(request, error.message)
            return HttpResponseRedirect(reverse("admin:events_simulation_changelist"))

    def save_model(self, request: HttpRequest, obj: Simulation, form: Any, change: bool) -> None:
        made = simulations.request_simulation(
            **form.request_of(form.cleaned_data), actor=actor_of(request), now=now()
        )
        obj.pk, obj.created_at = made.pk, made.created_at


def _policy(policy: dict[str, Any]) -> SafeString:
    weights = ", ".join(f"{name} {value:g}" for name, value in policy["weights"].items())
    return facts([
        ("a strike", f"score of {policy['threshold']:g} or more"),
        ("stops at", f"{policy['strikes']} strikes in {policy['window_minutes']:g} minutes"),
        ("scores", "anew" if policy["rescored"] else "as stored"),
        ("scope rule", "on" if policy["scope_rule"] else "off"),
        ("alarm budget", f"{policy['alarm_budget']:g}" if policy.get("alarm_budget") else "each agent's own"),
        ("weights", weights or "as in the model"),
    ])  # fmt: skip


def _reproduction(found: dict[str, Any] | None) -> SafeString | str:
    if found is None:
        return EMPTY
    pairs = [("reproduced under the live policy", f"{found['reproduced']} of {found['recorded']}")]
    pairs += [
        (f"not reproduced: {one['agent_id']}", f"{_moment(one['at'])}: {one['reason']}")
        for one in found["not_reproduced"][:MOST_SHOWN]
    ]
    pairs.append(("stops that the service did not make", str(found["unrecorded"])))
    if found["comparable_scores"]:
        same = f"{found['equal_scores']:,} of {found['comparable_scores']:,}"
        pairs.append(("stored scores of this model met again", same))
    return facts(pairs)


def _counts(found: dict[str, Any] | None) -> SafeString | str:
    if found is None:
        return EMPTY
    rows = [(WORDS[fate], *(found["counts"][fate][verdict] for verdict in VERDICTS)) for fate in FATES]
    return table(("", *VERDICTS), rows)


def _agents(found: dict[str, Any] | None) -> SafeString | str:
    if found is None or not found["agents"]:
        return EMPTY
    rows = []
    for one in found["agents"][:MOST_SHOWN]:
        verdict = chip(one["verdict"], STATUS_COLOURS.get(one["verdict"], "default"))
        stop = one["candidate"] or one["live"] or {"strikes": ()}
        names = dict.fromkeys(name for strike in stop["strikes"] for name in strike["reasons"])
        live, candidate = (_moment(one[policy] and one[policy]["at"]) for policy in ("live", "candidate"))
        apart = timedelta(seconds=round(abs(one["earlier_seconds"] or 0)))
        by = f", by {apart or 'less than a second'}" if one["earlier_seconds"] else ""
        rows.append(
            (
                row_link(visible(one["agent"]), "agents_agent", one["agent_id"]),
                _moment(one["stopped_at"]),
                live,
                format_html("{}<br>{}{}", candidate, WORDS[one["fate"]], by),
                verdict if one["verdict"] != UNREVIEWED else UNREVIEWED,
                format_html_join("", "{}<br>", ((in_words(name),) for name in names)),
            )
        )
    return table(COLUMNS, rows)


def _moment(text: str | None) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S}" if text else "never"
