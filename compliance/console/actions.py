"""State changes from the console: a page explains the action, asks for a reason, and confirms.

An action calls one service.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from inspect import cleandoc
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from unfold.widgets import UnfoldAdminTextareaWidget

from compliance.console.access import OFFICERS, ConsoleRole

NUMBERS_AND_DATES = (forms.IntegerField, forms.DateField, forms.DateTimeField, forms.MultiValueField)


class AsciiForm(forms.BaseForm):
    """Refuses numbers and dates in digits of other scripts, which Django's fields read."""

    def full_clean(self) -> None:
        super().full_clean()
        for name, field in self.fields.items() if self.is_bound else ():
            data = self[name].data
            parts = data if isinstance(field, forms.MultiValueField) else [data]
            is_read = isinstance(field, NUMBERS_AND_DATES)
            if is_read and not all(str(part).isascii() for part in parts):
                self.add_error(name, "Use the digits 0 to 9.")


def with_ascii_digits(form: Any) -> Any:
    """Return the form's class as an `AsciiForm`."""
    return type(form)(form.__name__, (AsciiForm, form), {})


class ReasonForm(forms.Form):
    """The reason for an action, which the audit log keeps."""

    reason = forms.CharField(
        max_length=500,
        help_text="Kept in the audit log beside your name; 1 to 500 characters.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "autofocus": True}),
    )


@dataclass(frozen=True)
class ActionCall:
    """A confirmed action: the request, the row, the form's cleaned data and the time."""

    request: HttpRequest
    row: Any
    data: dict[str, Any]
    now: datetime


@dataclass(frozen=True)
class ConfirmedAction:
    """A state change offered on a row's page.

    `run` calls one service and returns a message for the user, or a page (a secret shown once). `is_offered`
    only hides the button: the service itself enforces the rules. `form_for`: the form where it depends on the
    row.
    """

    name: str
    label: str
    icon: str
    explanation: str
    run: Callable[[ActionCall], str | HttpResponse]
    is_offered: Callable[[Any], bool] = lambda row: True
    roles: frozenset[ConsoleRole] = OFFICERS
    form_class: type[forms.Form] = ReasonForm
    form_for: Callable[[Any], type[forms.Form]] | None = None
    is_destructive: bool = False


def confirmed_action(
    name: str, label: str, icon: str, **options: Any
) -> Callable[[Callable[[ActionCall], str | HttpResponse]], ConfirmedAction]:
    """Make the decorated function a `ConfirmedAction`, whose explanation is the function's docstring."""
    return lambda run: ConfirmedAction(name, label, icon, cleandoc(run.__doc__ or ""), run, **options)
