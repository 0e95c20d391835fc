"""Signing, and the growth of keys: through key hosts, in one process, and what limits both."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

from bench.harness.report import number
from bench.pki.key_ground import Figures, KeyGround
from bench.pki.run import PkiRun
from compliance.localdev.console import say

SIGN_KEYS = 1_000
THREADS = (1, 4, 16)
TURNS = 3
SIGN_HOSTS = 2
"""Of two processors' work they lose least."""
GROWTH_HOSTS = 4
"""So that none holds more keys than fit 300 MB."""
MOST_IN_ONE_PROCESS = 10_000
"""Where each process opens the module, more keys take minutes to make and tell nothing new."""
GROWTH_SAMPLES = "2000"


def signing(run: PkiRun) -> None:
    """Signatures a second of one process, alone and beside key generation, and what limits them.

    Everything is measured in turns, so that a slow minute of the machine hits all of it.
    """
    alone, behind = KeyGround(run.place, SIGN_KEYS), KeyGround(run.place, SIGN_KEYS, hosts=SIGN_HOSTS)
    for ground in (alone, behind):
        ground.ensure()
    seconds = str(run.options.seconds / TURNS)
    rows = [["threads", "measured", "1/s", "p50 ms", "p99 ms", "errors", "of raw PKCS#11", "of cryptography"]]
    with behind.serving():
        for threads in map(str, THREADS):
            measures = {
                "service, key hosts": partial(behind.ask, "sign", threads, seconds, "-"),
                "… keys made through it": partial(behind.ask, "sign", threads, seconds, "generate"),
                "… keys made through another": partial(_beside, behind, threads, seconds),
                "service, module in the process": partial(alone.ask, "sign", threads, seconds, "-"),
                "… keys made in it": partial(alone.ask, "sign", threads, seconds, "generate"),
                "raw PKCS#11": partial(alone.ask, "raw", threads, seconds),
                "cryptography, no HSM": partial(alone.ask, "software", threads, seconds),
            }
            turns = [{name: measure() for name, measure in measures.items()} for _ in range(TURNS)]
            found = {name: _middle([turn[name] for turn in turns]) for name in measures}
            limits = [found[name]["rate"] for name in ("raw PKCS#11", "cryptography, no HSM")]
            for name, one in found.items():
                figures = [number(one[key]) for key in ("rate", "p50_ms", "p99_ms")]
                shares = [f"{one['rate'] / limit:.0%}" for limit in limits]
                rows.append([threads, name, *figures, str(int(one["errors"])), *shares])
            say(f"  … {threads} threads")
    keys = f"{SIGN_KEYS:,} keys, {SIGN_HOSTS} key hosts"
    run.tell(f"Signing through one process, {keys}, medians of {TURNS} turns", rows)


def _middle(turns: list[Figures]) -> Figures:
    """The medians of the turns; of errors the sum."""
    found = {name: median(turn[name] for turn in turns) for name in turns[0]}
    return found | {"errors": sum(turn["errors"] for turn in turns)}


def _beside(ground: KeyGround, threads: str, seconds: str) -> Figures:
    with _working(ground):
        return ground.ask("sign", threads, seconds, "-")


@contextmanager
def _working(ground: KeyGround) -> Iterator[None]:
    process = ground.start("generate")
    try:
        yield
    finally:
        process.kill()
        process.wait()


def key_growth(run: PkiRun) -> None:
    """What processes pay for the number of keys: at their start, in memory, and for a signature."""
    headings = ["keys", "process", "start s", "its processor s", "memory MB"]
    rows = [[*headings, "first signatures p50 ms", "later p50 ms", "p99 ms"]]
    for size in run.options.sizes:
        if size <= MOST_IN_ONE_PROCESS:
            rows.append(_in_one_process(run, size))
        rows += _behind_hosts(run, size)
        say(f"  … {size:,} keys")
    run.tell(f"Growth: keys over 64 shards, in each process or in {GROWTH_HOSTS} key hosts", rows)


def _in_one_process(run: PkiRun, size: int) -> list[str]:
    ground = KeyGround(run.place, size)
    ground.ensure()
    found = ground.ask("growth", GROWTH_SAMPLES)
    wanted = ("start_s", "start_cpu_s", "memory_mb", "first_p50_ms", "p50_ms", "p99_ms")
    return [f"{size:,}", "with the module", *(number(found[key]) for key in wanted)]


def _behind_hosts(run: PkiRun, size: int) -> list[list[str]]:
    """The process that signs, and the worst of the hosts."""
    ground = KeyGround(run.place, size, hosts=GROWTH_HOSTS)
    ground.ensure()
    with ground.serving() as hosts:
        found = ground.ask("growth_behind_hosts", GROWTH_SAMPLES, *map(str, hosts.pids))
        memory = hosts.most_memory_mb()
    wanted = ("start_s", "start_cpu_s", "memory_mb", "first_p50_ms", "p50_ms", "p99_ms")
    started = [number(hosts.start_s), number(found["hosts_cpu_s"]), number(memory)]
    return [
        [f"{size:,}", "behind hosts", *(number(found[key]) for key in wanted)],
        [f"{size:,}", "a host, the worst", *started, "", "", ""],
    ]
