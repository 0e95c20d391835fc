"""The provisions that evidence is mapped to, and the dates from which they apply, with sources.

Dates change (the AI Act's were deferred once): change them here, with the source, and nowhere else.
`applies_from` None: the date is not recorded here.
"""

from dataclasses import dataclass
from datetime import date

from compliance.reports.vocabulary import ReportType

AI_ACT_TEXT = "Regulation (EU) 2024/1689, Article 113"
MICA_TEXT = "Regulation (EU) 2023/1114, Article 149"
HIGH_RISK = "High-risk systems of"
AI_ACT_DEFERRAL = "Regulation (EU) 2026/1744, as reported by secondary sources"


@dataclass(frozen=True)
class Application:
    """The date from which a part of a regulation applies, and its source."""

    scope: str
    applies_from: date | None
    source: str


@dataclass(frozen=True)
class Provision:
    """An article, as far as this service's records concern it; `summary` is ours, not the legal text."""

    reference: str
    title: str
    summary: str


@dataclass(frozen=True)
class Regulation:
    """A regulation, its dates, and the provisions of a report by their control's id."""

    name: str
    reference: str
    applications: tuple[Application, ...]
    provisions: dict[str, Provision]


EU_AI_ACT = Regulation(
    name="EU AI Act",
    reference="Regulation (EU) 2024/1689",
    applications=(
        Application("Entry into force", date(2024, 8, 1), AI_ACT_TEXT),
        Application("Prohibited practices and AI literacy", date(2025, 2, 2), AI_ACT_TEXT),
        Application("General application", date(2026, 8, 2), AI_ACT_TEXT),
        Application(f"{HIGH_RISK} Annex III (Chapter III, Sections 1-3)", date(2027, 12, 2), AI_ACT_DEFERRAL),
        Application(f"{HIGH_RISK} Annex I (Chapter III, Sections 1-3)", date(2028, 8, 2), AI_ACT_DEFERRAL),
    ),
    provisions={
        "aia-12-2-a": Provision(
            "Article 12(2)(a)",
            "Logging: situations that present a risk",
            "Events that identify situations in which the system may present a risk, or a substantial "
            "modification.",
        ),
        "aia-12-2-b": Provision(
            "Article 12(2)(b)",
            "Logging: post-market monitoring",
            "Events that facilitate the post-market monitoring of Article 72.",
        ),
        "aia-12-2-c": Provision(
            "Article 12(2)(c)",
            "Logging: monitoring of operation",
            "Events by which deployers monitor the operation, as Article 26(5) asks.",
        ),
        "aia-13": Provision(
            "Article 13",
            "Transparency: identity, version and limits",
            "Deployers can tell which system acts, in which version, and within which limits.",
        ),
        "aia-14": Provision(
            "Article 14",
            "Human oversight: intervention and stop",
            "People can intervene and stop the system; who did, and how fast.",
        ),
        "aia-19-26-6": Provision(
            "Articles 19 and 26(6)",
            "Retention of logs: at least six months",
            "Automatically generated logs are kept for at least six months.",
        ),
        "aia-72": Provision(
            "Article 72",
            "Post-market monitoring: trends",
            "Data on performance through the lifetime are collected and analysed.",
        ),
        "aia-73": Provision(
            "Article 73",
            "Serious incidents: reporting clocks",
            "Serious incidents are reported within 15 days of awareness, 10 on a death, 2 on a widespread "
            "infringement or a disruption of critical infrastructure.",
        ),
    },
)

MICA = Regulation(
    name="MiCA",
    reference="Regulation (EU) 2023/1114",
    applications=(
        Application("Crypto-asset service providers", date(2024, 12, 30), MICA_TEXT),
        Application("Record-keeping (Delegated Regulation (EU) 2025/1140)", None, "not recorded here"),
    ),
    provisions={
        "mica-2025-1140-2-a": Provision(
            "Delegated Regulation (EU) 2025/1140, Article 2",
            "Records can be reconstituted",
            "Each stage of an agent's authority and activity can be reconstructed from the records.",
        ),
        "mica-2025-1140-2-b": Provision(
            "Delegated Regulation (EU) 2025/1140, Article 2",
            "Amendments are visible",
            "What stood before an amendment can be told from the records.",
        ),
        "mica-2025-1140-2-c": Provision(
            "Delegated Regulation (EU) 2025/1140, Article 2",
            "Records can't be altered",
            "Records can't be manipulated or altered otherwise.",
        ),
        "mica-2025-1140-10": Provision(
            "Delegated Regulation (EU) 2025/1140, Article 10",
            "Who, or which algorithm, decided",
            "The person or the algorithm behind a decision to trade is identified.",
        ),
        "mica-68-9": Provision(
            "Article 68(9)",
            "Retention of records: five years",
            "Records of services, activities, orders and transactions are kept for five years.",
        ),
        "policy-certificate-validity": Provision(
            "Policy of the service",
            "Certificates are valid for at most 365 days",
            "A rule of this service. Article 70 is about safekeeping of clients' assets and does not ask "
            "for it.",
        ),
        "policy-automatic-stops": Provision(
            "Policy of the service",
            "Agents over the risk threshold are stopped",
            "A rule of this service, which the mode observe suspends for an agent or a tenant.",
        ),
    },
)

REGULATIONS = {ReportType.EU_AI_ACT: EU_AI_ACT, ReportType.MICA: MICA}
