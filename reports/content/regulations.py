"""The provisions that evidence is mapped to, and the dates from which they apply: read from `law.json`.

Dates change (the AI Act's were deferred once): change them there, with the act in the Official Journal that
says so, and nowhere else.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from compliance.core.json_values import Json
from reports.vocabulary import ReportType

LAW = Path(__file__).with_name("law.json")


@dataclass(frozen=True)
class Regulation:
    """The act of a report, its provisions by their control's id, and the dates of all, each once."""

    act: Json
    provisions: dict[str, Json]
    applications: list[Json]


def read_law(text: str) -> dict[ReportType, Regulation]:
    """Return the regulation of each report."""
    law = json.loads(text)
    dates = law["applications"]
    found = {}
    for kind, report in law["reports"].items():
        names = dict.fromkeys(name for each in report["provisions"] for name in each["applications"])
        provisions = {
            each["id"]: each | {"applications": [dates[name] for name in each["applications"]]}
            for each in report["provisions"]
        }
        act, applications = law["acts"][report["act"]], [dates[name] for name in names]
        found[ReportType(kind)] = Regulation(act, provisions, applications)
    return found


REGULATIONS = read_law(LAW.read_text())
