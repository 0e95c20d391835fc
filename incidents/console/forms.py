"""The forms of an incident's actions. What is left empty stays as it is."""

from typing import Final

from django import forms
from unfold.widgets import (
    INPUT_CLASSES,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from incidents.duties.clocks import ClockKind
from incidents.vocabulary import DoraClass, IncidentSeverity, SeriousHarm

KEEP: Final = ("", "Leave as it is")
SENT_FIELDS: Final = {
    ClockKind.AI_ACT_REPORT: "ai_act_reported_at",
    ClockKind.DORA_INITIAL: "dora_initial_at",
    ClockKind.DORA_INTERMEDIATE: "dora_intermediate_at",
    ClockKind.DORA_FINAL: "dora_final_at",
}


def _choice(label: str, choices: list[tuple[str, str]], help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        choices=[KEEP, *choices],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=help_text,
    )


def _moment(label: str, help_text: str) -> forms.DateTimeField:
    """Return a field for a time in UTC, in the browser's own input."""
    attrs = {"type": "datetime-local", "class": " ".join(INPUT_CLASSES)}
    widget = forms.DateTimeInput(attrs=attrs, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, required=False, widget=widget, help_text=help_text)


class TimelineNoteForm(forms.Form):
    note = forms.CharField(
        max_length=5_000,
        help_text="Kept in the timeline and in the audit log beside your name.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autofocus": True}),
    )


class OptionalNoteForm(forms.Form):
    note = forms.CharField(
        max_length=5_000, required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3})
    )


class AssessForm(OptionalNoteForm):
    severity = _choice("Severity", list(IncidentSeverity.choices))
    owner = forms.CharField(max_length=255, required=False, widget=UnfoldAdminTextInputWidget)
    serious_harm = _choice(
        "AI Act, Article 3(49)",
        list(SeriousHarm.choices),
        "Until it is decided, the clock of 15 days runs.",
    )
    aware_at = _moment("Aware since (UTC)", "When your organisation became aware; empty: the detection.")
    dora_class = _choice("DORA, Article 18", list(DoraClass.choices))
    classified_at = _moment("Classified as major at (UTC)", "Empty: now, if it is major.")
    field_order = (
        *("severity", "owner", "serious_harm", "aware_at", "dora_class", "classified_at"),
        "note",
    )


class SentForm(forms.Form):
    report = forms.ChoiceField(choices=ClockKind.choices, widget=UnfoldAdminSelectWidget)
    sent_at = _moment("Sent at (UTC)", "Empty: now.")
    note = forms.CharField(
        max_length=5_000,
        required=False,
        label="Receipt or reference",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
    )


class MergeForm(OptionalNoteForm):
    into = forms.CharField(
        max_length=64,
        label="Goes on in",
        help_text="Reference (INC-…) or ID of the other incident.",
        widget=UnfoldAdminTextInputWidget,
    )
    field_order = ("into", "note")


class AttachForm(forms.Form):
    """A script fills in the fields from a chosen file, which is not sent."""

    name = forms.CharField(max_length=255, widget=UnfoldAdminTextInputWidget)
    size = forms.IntegerField(
        min_value=0, max_value=2**53, widget=UnfoldAdminIntegerFieldWidget, help_text="In octets."
    )
    sha256 = forms.RegexField(
        r"^[0-9a-f]{64}\Z",
        label="SHA-256",
        widget=UnfoldAdminTextInputWidget,
        help_text="In lowercase hex, as sha256sum prints it.",
        error_messages={"invalid": "64 lowercase hex digits."},
    )

    class Media:
        js = ("console/digest.js",)
