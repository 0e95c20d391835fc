"""Plots of a report, drawn by reportlab; the table with the same figures stands beside each."""

from collections.abc import Iterable
from typing import Any

from reportlab.graphics.charts.barcharts import HorizontalBarChart, VerticalBarChart
from reportlab.graphics.charts.legends import Legend
from reportlab.graphics.shapes import Drawing
from reportlab.lib.units import mm

from compliance.core.json_values import Json
from compliance.reports.pdf.parts import Figure
from compliance.reports.pdf.styles import BAND_COLORS, INK, REGULAR, RULE, WIDTH, fonts, readable

BANDS = ("low", "medium", "high")
MOST_LABELS = 12
RISKIEST = 10
LEFT = 14 * mm
SAME_FIGURES = "The table after it has the same figures."


def events_by_band(points: list[Json]) -> Iterable[Figure]:
    """Yield stacked columns of the events received in each step of the trend; nothing without events."""
    if not points:
        return
    fonts()
    height = 52 * mm
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = LEFT, 12 * mm, WIDTH - LEFT, height - 22 * mm
    chart.data = [[point[band] for point in points] for band in BANDS]
    chart.categoryAxis.style = "stacked"
    step = -(-len(points) // MOST_LABELS)
    chart.categoryAxis.categoryNames = [
        point["from"][5:10] if number % step == 0 else "" for number, point in enumerate(points)
    ]
    chart.valueAxis.valueMin = 0
    chart.valueAxis.labelTextFormat = lambda value: f"{value:,.0f}"
    _paint(chart)
    for number, band in enumerate(BANDS):
        chart.bars[number].fillColor, chart.bars[number].strokeColor = BAND_COLORS[band], None
    drawing = Drawing(WIDTH, height, initialFontName=REGULAR)
    drawing.add(chart)
    drawing.add(_legend(height))
    yield Figure(
        drawing,
        f"Stacked columns of the events received in {len(points)} steps, by risk band. {SAME_FIGURES}",
    )


def riskiest(agents: list[Json]) -> Iterable[Figure]:
    """Yield bars of the risk scores of the riskiest agents; nothing without agents."""
    shown = agents[:RISKIEST][::-1]
    if not shown:
        return
    fonts()
    height = (8 + 6 * len(shown)) * mm
    chart = HorizontalBarChart()
    chart.x, chart.y, chart.width, chart.height = 55 * mm, 7 * mm, WIDTH - 60 * mm, height - 9 * mm
    chart.data = [[agent["risk_score"] for agent in shown]]
    chart.categoryAxis.categoryNames = [readable(agent["name"], 30) for agent in shown]
    chart.valueAxis.valueMin, chart.valueAxis.valueMax, chart.valueAxis.valueStep = 0, 1, 0.25
    _paint(chart)
    chart.bars[0].fillColor, chart.bars[0].strokeColor = BAND_COLORS["high"], None
    drawing = Drawing(WIDTH, height, initialFontName=REGULAR)
    drawing.add(chart)
    yield Figure(
        drawing,
        f"Bars of the risk scores of the {len(shown)} riskiest agents. {SAME_FIGURES}",
    )


def _paint(chart: Any) -> None:
    for axis in (chart.categoryAxis, chart.valueAxis):
        axis.strokeColor = RULE
        axis.labels.fontName, axis.labels.fontSize, axis.labels.fillColor = REGULAR, 6, INK
    chart.valueAxis.visibleGrid, chart.valueAxis.gridStrokeColor = 1, RULE
    chart.categoryAxis.visibleTicks = 0


def _legend(height: float) -> Legend:
    legend = Legend()
    legend.x, legend.y, legend.alignment, legend.columnMaximum = LEFT, height - 2 * mm, "right", 1
    legend.fontName, legend.fontSize, legend.deltax, legend.dx, legend.dy = REGULAR, 7, 60, 7, 7
    legend.colorNamePairs = [(BAND_COLORS[band], band) for band in BANDS]
    return legend
