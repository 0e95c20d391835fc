"""Scores through several nodes, compared with those of one node."""

import json
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.harness.traffic import TOOLS, Habits
from bench.nodes.run import NodesRun
from compliance.localdev.console import StepFailed, say, step

SHARE = 0.999
PLAYERS = 8
STRANGE = 0.15
"""The share of events that are not as usual for their agent."""


@dataclass(frozen=True)
class Way:
    """How an agent's events reach nodes: `choose` picks one of so many; `at_once` requests at a time."""

    name: str
    choose: Callable[[str, int], int]
    at_once: int = 1
    is_promised: bool = True


def _of_agent(agent: str, nodes: int) -> int:
    return zlib.crc32(agent.encode()) % nodes


def _at_random(agent: str, nodes: int) -> int:
    return random.randrange(nodes)


def _first(agent: str, nodes: int) -> int:
    return 0


WAYS = (
    Way("one node", _first),
    Way("by agent", _of_agent),
    Way("at random", _at_random),
    Way("one node, two of an agent's events at once", _first, at_once=2, is_promised=False),
    Way("by agent, two of an agent's events at once", _of_agent, at_once=2),
    Way("at random, two of an agent's events at once", _at_random, at_once=2, is_promised=False),
)


def scores(run: NodesRun) -> None:
    """Send every way's agents their events, then judge them again in the order in which they are stored."""
    each = run.options.agents
    agents = run.place.agents(each * len(WAYS))
    rows = [["events of an agent go to", "events", "equal to one node's", "share", "largest difference"]]
    for number, way in enumerate(WAYS):
        share = agents[number * each : (number + 1) * each]
        with step(f"{way.name}: {each * run.options.events:,} events"):
            with ThreadPoolExecutor(PLAYERS) as players:
                list(players.map(lambda agent, way=way: _play(run, agent, way), share))
            found = _judged(run, share)
        equal = found["equal"] / found["events"]
        say(f"  … {equal:.3%} equal")
        run.is_held &= equal >= SHARE or not way.is_promised
        rows.append(
            [
                way.name,
                f"{found['events']:,}",
                f"{found['equal']:,}",
                f"{equal:.2%}",
                f"{found['difference']:.3f}",
            ]
        )
    run.tell(f"Scores through {len(run.nodes)} nodes", rows)


def _play(run: NodesRun, agent: str, way: Way) -> None:
    """Send one agent's events; `at_once` threads take the next one as soon as they are free."""
    chance, habits = random.Random(agent), Habits.of(agent)
    events = iter([_event(habits, chance) for _ in range(run.options.events)])

    def send(_: int) -> None:
        clients = run.clients()
        for event in events:
            node = way.choose(agent, len(clients))
            status, found = clients[node].call("POST", "/v1/events", event)
            if status != 201:
                raise StepFailed(f"an event was answered {status}: {found}", hint="read the nodes' logs")
        for client in clients:
            client.close()

    with ThreadPoolExecutor(way.at_once) as threads:
        list(threads.map(send, range(way.at_once)))


def _event(habits: Habits, chance: random.Random) -> dict[str, Any]:
    """An ordinary event of the agent, or one with a tool and a place that may be new to it."""
    event = habits.event(chance)
    if chance.random() < STRANGE:
        event["details"] |= {
            "tool": chance.choice(TOOLS),
            "to": f"clerk@host{chance.randrange(40)}.example",
            "records": chance.randrange(50),
        }
    return event


def _judged(run: NodesRun, agents: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.nodes.scores_child"]
    done = subprocess.run(
        command,
        env=run.place.environment() | {"LOG_LEVEL": "WARNING"},
        cwd=run.place.servers.layout.root,
        input=json.dumps(agents),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))
