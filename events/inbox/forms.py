"""The inbox's form: a note and a case number for whatever is decided."""

from datetime import timedelta
from typing import Any

from django import forms

LONGEST_NOTE, LONGEST_REASON = 1000, 500
SNOOZES = {
    "1": ("for an hour", timedelta(hours=1)),
    "4": ("for four hours", timedelta(hours=4)),
    "24": ("for a day", timedelta(days=1)),
    "72": ("for three days", timedelta(days=3)),
    "168": ("for a week", timedelta(days=7)),
}


class DecisionForm(forms.Form):
    """`needs_note`: stopping an agent takes a reason, which is shorter as certificates keep it."""

    note = forms.CharField(max_length=LONGEST_NOTE, required=False)
    case_number = forms.CharField(max_length=64, required=False)

    def __init__(self, *args: Any, needs_note: str = "", is_reason: bool = False) -> None:
        super().__init__(*args)
        if needs_note:
            longest = LONGEST_REASON if is_reason else LONGEST_NOTE
            self.fields["note"] = forms.CharField(max_length=longest, error_messages={"required": needs_note})

    @property
    def case(self) -> str | None:
        return self.cleaned_data["case_number"] or None
