"""The provisions that evidence is mapped to, and the dates from which they apply: read from `law.json`.

Dates change (the AI Act's were deferred once): change them there, with the act in the Official Journal that
says so, and nowhere else.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compliance.reports.vocabulary import ReportType

LAW = Path(__file__).with_name("law.json")


@dataclass(frozen=True)
class Application:
    """The date from which a part of an act applies, and where the Official Journal says so."""

    scope: str
    applies_from: str
    article: str
    source: str


@dataclass(frozen=True)
class Provision:
    """An article, as far as this service's records concern it; `summary` is ours, not the legal text."""

    reference: str
    title: str
    summary: str
    applications: tuple[Application, ...]


@dataclass(frozen=True)
class LegalAct:
    """An act of the Union in the Official Journal, and the acts that amended it."""

    name: str
    reference: str
    title: str
    published: str
    source: str
    amended_by: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Regulation:
    """The act of a report, and its provisions by their control's id."""

    act: LegalAct
    provisions: dict[str, Provision]

    @property
    def applications(self) -> list[Application]:
        """The dates of all provisions, each once."""
        return list(dict.fromkeys(date for each in self.provisions.values() for date in each.applications))


def read_law(text: str) -> dict[ReportType, Regulation]:
    """Return the regulation of each report; raises KeyError or TypeError for a file with mistakes."""
    law = json.loads(text)
    acts = {
        name: LegalAct(**act | {"amended_by": tuple(act["amended_by"])}) for name, act in law["acts"].items()
    }
    dates = {name: Application(**fields) for name, fields in law["applications"].items()}
    return {
        ReportType(kind): Regulation(
            acts[report["act"]], {each["id"]: _provision(each, dates) for each in report["provisions"]}
        )
        for kind, report in law["reports"].items()
    }


def _provision(fields: dict[str, Any], dates: dict[str, Application]) -> Provision:
    words = {name: fields[name] for name in ("reference", "title", "summary")}
    return Provision(**words, applications=tuple(dates[name] for name in fields["applications"]))


REGULATIONS = read_law(LAW.read_text())
