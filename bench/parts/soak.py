"""Memory of the web workers, before and after a long run."""

from bench.harness import machine
from bench.harness.load import Outcome
from bench.parts.run import Run, failures_of
from compliance.localdev.console import say

CHUNK = 50_000
LONGEST = 4 * 3600.0


def soak(run: Run) -> None:
    """So many events in one go, with the memory of each worker now and then."""
    wanted = run.options.soak
    before = memory(run)
    done, failed = 0, ""
    while done < wanted:
        found: list[Outcome] = []

        def measure(found: list[Outcome] = found, rest: int = wanted - done) -> list[Outcome]:
            found.append(run.load(run.service).closed(LONGEST, until=min(CHUNK, rest)))
            return found

        run.checked("soak", measure)
        done, failed = done + found[0].good, failures_of(*found) or failed
        say(
            f"  … soak: {done:,} of {wanted:,} events, {found[0].rate:,.0f}/s, memory {in_words(memory(run))}"
        )
        if not found[0].good:
            break
    run.report.footer.append(
        f"Memory over {done:,} events: {in_words(before)} at first, {in_words(memory(run))} afterwards"
        + (f"; {failed}" if failed else "")
    )


def memory(run: Run) -> list[float]:
    """MB of each web worker of the service."""
    return [machine.resident_mb(pid) for pid in run.service.workers()]


def in_words(megabytes: list[float]) -> str:
    """ "100 + 101 MB"."""
    return " + ".join(f"{one:.0f}" for one in megabytes) + " MB"
