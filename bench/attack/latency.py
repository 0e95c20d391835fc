"""How long verifying takes beside four connections that send 1 MB of legal JSON; a figure, no verdict."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import cycle

from bench.attack.core import Budget, Siege
from bench.attack.wire import Hang, Line, NoAnswer, call
from bench.attack.world import World, certified_agent
from bench.harness.stats import percentile

CONNECTIONS = 4
RATE = 50
GOAL_P95_MS = 25
SIZE = 1_000_000
SECONDS = 8.0


def run(siege: Siege, world: World) -> None:
    """Each kind of body in turn, in the long run; the short one leaves it out."""
    if siege.is_short:
        return
    with Line(siege) as line:
        agent, certificate = certified_agent(line, world.keys.live)
    path = f"/v1/verify/{certificate['serial_number']}"
    siege.figures.append(f"verify at {RATE} a second beside {CONNECTIONS} connections of 1 MB JSON, in ms:")
    for name, body in siege.within([("nothing", None), *_bodies(agent)], "kinds of body", spare=SECONDS + 2):
        taken = sorted(_measured(siege, world, path, body))
        if not taken:
            siege.report("no verification was answered", name, "")
            continue
        p50, p95, p99 = (percentile(taken, share) * 1_000 for share in (0.5, 0.95, 0.99))
        verdict = (
            "" if body is None else f"  goal p95 ≤ {GOAL_P95_MS}: {'met' if p95 <= GOAL_P95_MS else 'missed'}"
        )
        siege.figures.append(f"  {name:<28} p50 {p50:6.1f}  p95 {p95:6.1f}  p99 {p99:6.1f}{verdict}")


def _measured(siege: Siege, world: World, path: str, body: bytes | None) -> list[float]:
    """The seconds that each verification took, from when it was due."""
    budget, stop = Budget.of(SECONDS), threading.Event()
    senders = [
        threading.Thread(target=_send, args=(siege, world.keys.live, body, stop), daemon=True)
        for _ in range(CONNECTIONS if body is not None else 0)
    ]
    for sender in senders:
        sender.start()
    time.sleep(0.5)
    taken: list[float] = []
    # Several lines, so that one slow answer holds back none of those due after it.
    lines = [Line(siege) for _ in range(8)]
    locks = [threading.Lock() for _ in lines]
    running: list[threading.Thread] = []

    def ask(number: int, due: float) -> None:
        with locks[number]:
            try:
                if lines[number].ask(call("GET", path)).status == 200:
                    taken.append(time.monotonic() - due)
            except (NoAnswer, Hang) as error:
                siege.report(type(error).__name__, "GET /v1/verify/{serial}", "beside large bodies")

    began = time.monotonic()
    for number in range(int(SECONDS * RATE)):
        due = began + number / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        thread = threading.Thread(
            target=ask, args=(number % len(lines), max(due, time.monotonic() - 0.001)), daemon=True
        )
        thread.start()
        running.append(thread)
        if budget.is_over:
            break
    for thread in running:
        thread.join()
    stop.set()
    for sender in senders:
        sender.join()
    for line in lines:
        line.close()
    return taken


def _send(siege: Siege, key: str, body: bytes, stop: threading.Event) -> None:
    with Line(siege, timeout=30) as line:
        for path in cycle(("/v1/events", "/v1/events/batch")):
            if stop.is_set():
                return
            try:
                line.ask(call("POST", path, key=key, body=body))
            except (NoAnswer, Hang):
                line.close()


def _bodies(agent: str) -> Iterator[tuple[str, bytes]]:
    """Legal JSON of about 1 MB that takes long to read."""
    kinds: dict[str, Callable[[int], str]] = {
        "arrays of nothing": lambda _: "[]", "small numbers": lambda number: str(number % 10),
        "floats": lambda number: f"{number}.{number}e-7",
        "names, each once": lambda number: f'{{"n{number}":0}}', "nesting": lambda _: "[" * 12 + "]" * 12,
        "long strings": lambda _: '"' + "x" * 60_000 + '"',
        "escapes": lambda _: '"' + "\\u00e9\\n" * 40 + '"',
    }  # fmt: skip
    for name, piece in kinds.items():
        items, length, number = [], 0, 0
        while length < SIZE - 70_000:
            items.append(piece(number))
            length += len(items[-1]) + 1
            number += 1
        event = json.dumps({"agentId": agent, "actionType": "data_access", "details": {"a": "HERE"}})
        yield name, event.replace('"HERE"', f"[{','.join(items)}]").encode()
    members = ",".join(f'"member{number}":{number}' for number in range(SIZE // 22))
    event = json.dumps({"agentId": agent, "actionType": "data_access", "details": "HERE"})
    yield "one object of many names", event.replace('"HERE"', f"{{{members}}}").encode()
