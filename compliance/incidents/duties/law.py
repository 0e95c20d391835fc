"""The reporting terms of `law.toml`."""

import tomllib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from compliance.incidents.vocabulary import SeriousHarm


@dataclass(frozen=True)
class Term:
    """How long a report may take, how long before the end a warning is due, and the provision."""

    span: timedelta
    warning: timedelta
    provision: str


@dataclass(frozen=True)
class DoraTerms:
    """The terms of the three reports; the final one has a number of calendar months."""

    from_classification: timedelta
    from_awareness: timedelta
    intermediate: timedelta
    final_months: int
    warnings: tuple[timedelta, timedelta, timedelta]
    provision: str


LAW: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("law.toml").read_text())


def _ai_act(law: dict[str, Any]) -> dict[SeriousHarm, Term]:
    return {
        SeriousHarm(name): Term(
            timedelta(days=term["days"]),
            timedelta(hours=term["warn_hours"]),
            f"{law['reference']}, {term['provision']}",
        )
        for name, term in law["terms"].items()
    }


def _dora(law: dict[str, Any]) -> DoraTerms:
    initial, intermediate, final = law["initial"], law["intermediate"], law["final"]
    return DoraTerms(
        timedelta(hours=initial["hours_from_classification"]),
        timedelta(hours=initial["hours_from_awareness"]),
        timedelta(hours=intermediate["hours_from_initial"]),
        final["months_from_intermediate"],
        (
            timedelta(hours=initial["warn_hours"]),
            timedelta(hours=intermediate["warn_hours"]),
            timedelta(hours=final["warn_hours"]),
        ),
        f"{law['reference']}; {law['terms_reference']}",
    )


AI_ACT: Final = _ai_act(LAW["ai_act"])
DORA: Final = _dora(LAW["dora"])
