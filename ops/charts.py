"""Charts of the overview and of an agent: bars drawn as SVG on the server, with the table of their numbers.

They read the daily figures of `events.figures`, a row a tenant and day, and the daily sums of agents.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Max, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse

from agents.models import Agent
from agents.risk import HIGH, MEDIUM
from compliance.console.access import EVERYONE, access_of
from compliance.console.display import visible
from compliance.core.wording import counted, measured
from events.figures.models import DayFigures
from events.models import BehaviorEvent, RiskBand, RiskDay
from events.risk.rolling import summed_until

DAYS, RISK_DAYS, AGENTS = 14, 30, 5
WIDTH, HEIGHT = 420, 84
UNSUMMED = 1_000  # newest events of an agent that are read besides its daily sums
GAP = 0.25  # share of a bar's place that stays empty
SHORT = 60.0  # seconds that the scale of a delay reaches at least
LEAST = 1.5  # height of a bar that is not zero
RISK_NOTE = f"Each day's highest score; the lines are at {MEDIUM} (medium) and {HIGH} (high)."
OF_RISK: dict[str, Any] = {"top": 1.0, "lines": [f"{HEIGHT * (1 - bound):.2f}" for bound in (MEDIUM, HIGH)]}
"""The scale of a score."""

SUMS = ("events", "medium", "high", "delivered", "undelivered", "reviews", "revocations")
MAXIMA = ("review_delay", "revocation_delay", "longest_revocation_delay")
"""The fields of a day's figures, by how those of several tenants become one."""

_count, _score = "{:,.0f}".format, "{:.2f}".format
_number = "{:.2f}".format
"""Write a number as SVG reads it, whatever the language."""

Numbers = Sequence[float | None]
Figures = Mapping[date, Mapping[str, Any]]


@dataclass(frozen=True)
class Bar:
    """A day's rectangle, in the units of the picture; `label` is what it says when pointed at.

    `kind` is that of a mark above or across a day: `strike` or `stop`.
    """

    x: str
    y: str
    width: str
    height: str
    label: str
    kind: str = ""


@dataclass
class Plot:
    """One row of bars, the worst day's number and the axis' end; `tone` names colour and pattern."""

    title: str
    tone: str
    bars: list[Bar]
    worst: str
    axis: str
    summary: str
    url: str = ""
    lines: Sequence[str] = ()


@dataclass
class Chart:
    """Plots over the same days, and the numbers behind them. `note` says what is counted.

    `keys` says of each kind of mark how many there are.
    """

    title: str
    note: str
    plots: Sequence[Plot]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    first: str
    last: str
    keys: Mapping[str, str] = field(default_factory=dict)


def charts(request: HttpRequest, figures: Figures, now: datetime) -> list[Chart]:
    """Return the charts over the user's tenants."""
    today = now.astimezone(UTC).date()
    days = _days(today, DAYS)
    series = {
        name: [figures[day][name] if day in figures else None for day in days] for name in (*SUMS, *MAXIMA)
    }
    every, high, medium = series["events"], series["high"], series["medium"]
    done, failed = series["delivered"], series["undelivered"]
    low = [
        None if e is None else e - (h or 0) - (m or 0) for e, h, m in zip(every, high, medium, strict=True)
    ]
    shares = [
        None if not (d or f) else 100.0 * (d or 0) / ((d or 0) + (f or 0))
        for d, f in zip(done, failed, strict=True)
    ]
    return [
        _chart(
            "Events by band",
            "By the day of receipt (UTC); each band has a scale of its own.",
            days,
            [("High", "high", high), ("Medium", "medium", medium), ("Low", "low", low)],
            _count,
        ),
        _chart(
            "Webhook deliveries that succeeded",
            "Share of the day's deliveries that ended; cancelled ones do not count.",
            days,
            [("Succeeded", "low", shares)],
            lambda value: f"{value:.1f} %",
            top=100.0,
            is_low_worst=True,
            also=[("Delivered", done, _count), ("Failed", failed, _count)],
        ),
        _chart(
            "Time from event to review",
            "Median of the day's first verdicts; of several tenants, the slowest tenant's.",
            days,
            [("Median", "medium", series["review_delay"])],
            _seconds,
            least_top=SHORT,
            also=[("Reviews", series["reviews"], _count)],
        ),
        _chart(
            "Time from breach to revocation",
            "From the receipt of the event that reached the threshold; 0 s is within its own transaction.",
            days,
            [("Longest", "high", series["longest_revocation_delay"])],
            _seconds,
            least_top=SHORT,
            also=[
                ("Median", series["revocation_delay"], _seconds),
                ("Breaches", series["revocations"], _count),
            ],
        ),
        _agents(request, today),
    ]


def figures_of(request: HttpRequest, now: datetime) -> Figures:
    """Return each day's figures of the user's tenants together; of medians, that of the slowest tenant."""
    rows = DayFigures.objects.filter(day__gte=_days(now.astimezone(UTC).date(), DAYS)[0])
    tenants = access_of(request).tenants_for(EVERYONE)
    if tenants is not None:
        rows = rows.filter(tenant_id__in=tenants)
    found: Any = (
        rows.order_by()
        .values("day")
        .annotate(
            **{f"all_{name}": Sum(name) for name in SUMS}, **{f"all_{name}": Max(name) for name in MAXIMA}
        )
    )
    return {row["day"]: {name: row[f"all_{name}"] for name in (*SUMS, *MAXIMA)} for row in found}


def _days(today: date, count: int) -> list[date]:
    return [today - timedelta(days=back) for back in range(count - 1, -1, -1)]


def _agents(request: HttpRequest, today: date) -> Chart:
    days = _days(today, RISK_DAYS)
    rows: QuerySet[Agent] = admin.site.get_model_admin(Agent).get_queryset(request)
    riskiest = rows.filter(risk_score__gt=0).order_by("-risk_score", "-id")[:AGENTS]
    worst: dict[Agent, dict[date, float]] = {}
    sums = RiskDay.objects.filter(agent__in=riskiest.values("pk"), day__in=days).select_related("agent")
    for row in sums.order_by("-agent__risk_score", "-agent_id"):
        worst.setdefault(row.agent, {})[row.day] = row.max_score
    series = [
        (visible(agent.name), "high", [scores.get(day) for day in days]) for agent, scores in worst.items()
    ]
    chart = _chart(f"Riskiest agents, {RISK_DAYS} days", RISK_NOTE, days, series, _score, **OF_RISK)
    for plot, agent in zip(chart.plots, worst, strict=True):
        plot.url = reverse("admin:agents_agent_change", args=[agent.pk])
    return chart


def of_agent(agent: Agent, marked: Mapping[str, Sequence[datetime]], now: datetime) -> Chart:
    """Return an agent's risk of 30 days; `marked` names its stops, and what else is to be marked.

    Strikes are its high events. The newest events, which the daily sums do not have yet, are read as rows.
    """
    days = _days(now.astimezone(UTC).date(), RISK_DAYS)
    worst: dict[date, float] = {}
    strikes: Counter[date] = Counter()
    for row in RiskDay.objects.filter(agent=agent, day__gte=days[0]):
        worst[row.day], strikes[row.day] = row.max_score, row.high
    newest = BehaviorEvent.objects.of_agent(agent.id).filter(id__gte=summed_until())
    for event in newest.latest_received(UNSUMMED).only("received_at", "risk_score", "risk_band"):
        day = event.received_at.astimezone(UTC).date()
        worst[day] = max(worst.get(day, 0.0), event.risk_score)
        strikes[day] += event.risk_band == RiskBand.HIGH
    counts = {"strike": strikes}
    for kind, moments in marked.items():
        counts[kind] = Counter(moment.astimezone(UTC).date() for moment in moments)
    series = [("Highest score", "high", [worst.get(day) for day in days])]
    also = [
        (f"{kind.capitalize()}s", [found[day] or None for day in days], _count)
        for kind, found in counts.items()
    ]
    chart = _chart(f"Risk of {RISK_DAYS} days", RISK_NOTE, days, series, _score, also=also, **OF_RISK)
    chart.keys = {kind: counted(sum(found[day] for day in days), kind) for kind, found in counts.items()}
    (plot,), place = chart.plots, WIDTH / len(days)
    plot.summary = f"{plot.summary}; {', '.join(chart.keys.values())}"
    for kind, found in counts.items():
        # Strikes are marked at the upper edge, other things by a line from top to bottom.
        width, height = (place * (1 - GAP), HEIGHT / 12) if kind == "strike" else (place / 4, HEIGHT)
        for at, day in enumerate(days):
            if count := found[day]:
                x, label = _number(at * place + (place - width) / 2), f"{_day(day)}: {counted(count, kind)}"
                plot.bars.append(Bar(x, "0", _number(width), _number(height), label, kind))
    return chart


Shown = Callable[[float], str]


def _chart(
    title: str,
    note: str,
    days: Sequence[date],
    series: Sequence[tuple[str, str, Numbers]],
    show: Shown,
    *,
    also: Sequence[tuple[str, Numbers, Shown]] = (),
    **scale: Any,
) -> Chart:
    """Draw a plot for each series, to a `scale` as `_plot` takes it; `also` are columns of the table only.

    The table has a row a day, the newest first.
    """
    table = [*((name, values, show) for name, _, values in series), *also]
    columns = [["" if value is None else show(value) for value in values] for _, values, show in table]
    return Chart(
        title=title,
        note=note,
        plots=[_plot(name, tone, days, values, show, **scale) for name, tone, values in series],
        columns=["Day", *(name for name, _, _ in table)],
        rows=[[_day(day), *(column[at] for column in columns)] for at, day in enumerate(days)][::-1],
        first=_day(days[0]),
        last=_day(days[-1]),
    )


def _plot(
    title: str,
    tone: str,
    days: Sequence[date],
    values: Numbers,
    show: Shown,
    *,
    top: float | None = None,
    least_top: float = 0.0,
    is_low_worst: bool = False,
    lines: Sequence[str] = (),
) -> Plot:
    known = [value for value in values if value is not None]
    scale = top or max([*known, least_top]) or 1.0
    place = WIDTH / len(days)
    bars = []
    for at, (day, value) in enumerate(zip(days, values, strict=True)):
        if value is None:
            continue
        height = max(HEIGHT * min(value / scale, 1.0), LEAST if value else 0.0)
        corner = _number(at * place + place * GAP / 2), _number(HEIGHT - height)
        size = _number(place * (1 - GAP)), _number(height)
        bars.append(Bar(*corner, *size, f"{_day(day)}: {show(value)}"))
    if not known:
        return Plot(title, tone, bars, "", "", f"{title}: nothing on record", lines=lines)
    worst = f"at least {show(min(known))}" if is_low_worst else f"at most {show(max(known))}"
    return Plot(title, tone, bars, worst, show(scale), f"{title}: {worst} a day", lines=lines)


def _day(day: date) -> str:
    return f"{day:%b} {day.day}"


def _seconds(value: float) -> str:
    return measured(timedelta(seconds=value))
