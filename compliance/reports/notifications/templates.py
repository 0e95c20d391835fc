"""The fields of the official forms, from `templates.toml`."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from compliance.incidents.vocabulary import NotificationTemplate


class FieldOrigin(StrEnum):
    """Where the value of a field comes from."""

    RECORD = "record"
    STATED = "stated"
    PEOPLE = "people"


@dataclass(frozen=True)
class FormField:
    """A field of a form; `hint` tells people what belongs there."""

    key: str
    label: str
    origin: FieldOrigin
    hint: str


@dataclass(frozen=True)
class FormSection:
    title: str
    fields: tuple[FormField, ...]


_DATA: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("templates.toml").read_text())
_STAGES: Final = {
    NotificationTemplate.DORA_INITIAL: 1,
    NotificationTemplate.DORA_INTERMEDIATE: 2,
    NotificationTemplate.DORA_FINAL: 3,
}


def source_of(template: NotificationTemplate) -> str:
    """Return the legal text that the form is taken from, with its address."""
    source: str = _DATA["sources"]["dora" if template in _STAGES else "ai_act"]
    return source


def sections_of(template: NotificationTemplate) -> tuple[FormSection, ...]:
    """Return the sections of a form; each later report of DORA repeats and updates the earlier ones."""
    stage = _STAGES.get(template)
    sections = (
        _DATA["ai_act"] if stage is None else [part for part in _DATA["dora"] if part["stage"] <= stage]
    )
    return tuple(
        FormSection(section["title"], tuple(_field(field) for field in section["fields"]))
        for section in sections
    )


def _field(field: dict[str, str]) -> FormField:
    return FormField(field["key"], field["label"], FieldOrigin(field["from"]), field.get("hint", ""))
