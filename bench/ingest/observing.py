"""What metrics, ids and logs cost of ingest: the service as deployed and with nothing observed, in turns."""

from collections import defaultdict
from contextlib import ExitStack

from bench.harness import machine, web
from bench.harness.load import Outcome
from bench.harness.stats import median
from bench.harness.web import WebServer
from bench.ingest.run import WARM_SECONDS, IngestRun, failures_of
from compliance.localdev.console import StepFailed, say

WITH, WITHOUT = "observed", "unobserved"
SCRAPES, SCRAPE_PERIOD = 10, 15.0


def observing(run: IngestRun) -> None:
    """Single events at saturation by turns, then what a scrape costs."""
    rates: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    outcomes: list[Outcome] = []
    scrape: list[str] = []

    def measure() -> list[Outcome]:
        with ExitStack() as stack:
            servers = {
                WITH: stack.enter_context(web.observed(run.place)),
                WITHOUT: stack.enter_context(web.unobserved(run.place)),
            }
            outcomes.extend(run.single(server, WARM_SECONDS) for server in servers.values())
            for turn in range(run.options.repetitions):
                # Who comes first changes, so that a drift of the machine meets both.
                for name in (WITH, WITHOUT) if turn % 2 else (WITHOUT, WITH):
                    outcome, seconds = _turn(run, servers[name])
                    outcomes.append(outcome)
                    rates[name].append(outcome.rate)
                    costs[name].append(seconds / max(1, outcome.good) * 1e6)
                say(
                    "  … observability: "
                    + ", ".join(
                        f"{name} {rates[name][-1]:,.0f}/s at {costs[name][-1]:.0f} µs" for name in servers
                    )
                )
            scrape.append(_cost_of_a_scrape(servers[WITH]))
        return outcomes

    run.checked("observability", measure)
    run.report.footer += [
        _line("events a second", rates, "1/s"),
        _line("processor time of an event", costs, "µs"),
        f"Observability, a scrape: {scrape[0]}",
    ]
    if failures := failures_of(*outcomes):
        run.report.footer.append(f"Observability, failures: {failures}")


def _turn(run: IngestRun, server: WebServer) -> tuple[Outcome, float]:
    """One turn, with the processor time that all of the server's processes took for it."""
    began = machine.family_seconds(server.process.pid)
    outcome = run.single(server)
    return outcome, machine.family_seconds(server.process.pid) - began


def _cost_of_a_scrape(server: WebServer) -> str:
    """What reading the metrics costs, which Prometheus does every quarter of a minute whatever the load."""
    began, size = machine.family_seconds(server.process.pid), 0
    for _ in range(SCRAPES):
        size = len(_scraped(server))
    seconds = (machine.family_seconds(server.process.pid) - began) / SCRAPES
    share = seconds / SCRAPE_PERIOD
    took = f"{seconds * 1000:.0f} ms of processor time for {size / 1000:.0f} kB"
    return f"{took}; every {SCRAPE_PERIOD:.0f} s {share:.1%} of a core"


def _scraped(server: WebServer) -> bytes:
    body = web.metrics_of(server)
    if "compliance_events_scored_total" not in body:
        raise StepFailed("/metrics has no counts of events", hint="read bench-observed.log")
    return body.encode()


def _line(what: str, found: dict[str, list[float]], unit: str) -> str:
    """The medians of both, and the median of the turns' ratios with their range."""
    ratios = [one / other for one, other in zip(found[WITH], found[WITHOUT], strict=True) if other]
    both = (
        f"{median(found[WITH]):,.0f} {unit} with metrics, ids and logs, {median(found[WITHOUT]):,.0f} without"
    )
    return f"Observability, {what}: {both}; {median(ratios):.3f} times [{min(ratios):.3f}, {max(ratios):.3f}]"
