"""The very first requests after a start, all at once: what the first use makes is made for all of them."""

import time
from concurrent.futures import ThreadPoolExecutor

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.wire import Hang, Line, NoAnswer, call
from bench.attack.world import World

PARALLEL = 16
PATHS = ("/v1/schema", "/v1/docs", "/.well-known/jwks.json", "/v1/ca", "/v1/crl")
READY = "/health/ready"
READY_SECONDS = 60


def run(siege: Siege, world: World) -> None:
    """Ask each public address many times at once; the service has answered nothing but its start's probe."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        for path in PATHS:
            list(pool.map(lambda number, path=path: _ask(siege, path, number), range(PARALLEL)))
        list(pool.map(lambda _: _wait_until_ready(siege), range(PARALLEL)))


def _wait_until_ready(siege: Siege) -> None:
    """Ask until the answer is 200: on a busy machine a process's first checks may outlast a probe's wait."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        try:
            with Line(siege, timeout=30) as line:
                reply = line.ask(call("GET", READY))
        except (NoAnswer, Hang) as error:
            siege.report(type(error).__name__, f"GET {READY}", "at the start")
            return
        if reply.status == 200:
            check(siege, reply, "at the start", where=f"GET {READY}")
            return
        time.sleep(0.2)
    siege.report("not ready", f"GET {READY}", f"{READY_SECONDS} s after the start")


def _ask(siege: Siege, path: str, number: int) -> None:
    where = f"GET {path}"
    try:
        with Line(siege, timeout=30) as line:
            reply = line.ask(call("GET", path))
    except (NoAnswer, Hang) as error:
        siege.report(type(error).__name__, where, f"request {number}")
        return
    check(siege, reply, "at the start", where=where)
    if reply.status != 200:
        siege.report(f"a {reply.status} at the start", where, str(reply))
