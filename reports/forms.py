"""The forms of reports and schedules in the console."""

from datetime import UTC, datetime, time
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminDateWidget, UnfoldAdminSelectWidget

from compliance.core.clock import now
from reports.errors import PeriodNotOver
from reports.models import Report, ReportSchedule
from reports.periods import PRESETS, end_of
from reports.serializers import MAX_PERIOD

CHOSEN_DAYS = ("", "The days below")


class NewReportForm(forms.ModelForm):
    """A report of a preset period, or of days."""

    period = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        choices=[CHOSEN_DAYS, *((name, label) for name, (label, _) in PRESETS.items())],
        help_text="By the calendar in UTC; the last 30 days end with the present.",
    )
    first_day = forms.DateField(
        required=False, widget=UnfoldAdminDateWidget, help_text="Included, from midnight UTC."
    )
    last_day = forms.DateField(
        required=False,
        widget=UnfoldAdminDateWidget,
        help_text="Included, until midnight UTC; of today all so far.",
    )

    class Meta:
        model = Report
        fields = ("tenant", "type")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if preset := data.get("period"):
            data["first_day"], data["last_day"] = PRESETS[preset][1](now().date())
            return data
        first, last = data.get("first_day"), data.get("last_day")
        for name, day in (("first_day", first), ("last_day", last)):
            if day is None and name not in self.errors:
                self.add_error(name, "Choose a period, or both days.")
        if first is None or last is None:
            return data
        if last < first:
            self.add_error("last_day", "Must not be before the first day.")
        elif last - first >= MAX_PERIOD:
            self.add_error("last_day", f"The period exceeds {MAX_PERIOD.days} days.")
        elif last > now().date():
            self.add_error("last_day", PeriodNotOver.message)
        return data

    def span(self) -> tuple[datetime, datetime]:
        """Return the period of a valid form, from midnight to midnight or to the present."""
        first, last = self.cleaned_data["first_day"], self.cleaned_data["last_day"]
        return datetime.combine(first, time.min, UTC), end_of(last, now())


class NewScheduleForm(forms.ModelForm):
    """A schedule, unless the tenant has the same one."""

    class Meta:
        model = ReportSchedule
        fields = ("tenant", "type", "cadence")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        same = {name: data.get(name) for name in self.Meta.fields}
        if all(same.values()) and ReportSchedule.objects.lasting().filter(**same).exists():
            self.add_error(None, "This report is scheduled already.")
        return data
